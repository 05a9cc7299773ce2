package import Support

/// A frame of the mesh: `{"eventName": "__join", "data": {"room": "lobby"}}`, the wire of SkyRTC. A value.
///
/// | in | out |
/// |---|---|
/// | `__join{room, ice?}` | `_new_peer{socketId}` to the others, `_peers{connections, you, iceServers?}` to the joiner |
/// | `__offer{socketId, sdp}`, `__answer{socketId, sdp}` | `_offer{sdp, socketId}`, `_answer{sdp, socketId}` to that member, with the sender's id |
/// | `__ice_candidate{socketId, label, candidate, id?}` | `_ice_candidate` likewise, and `sdpMLineIndex`, `sdpMid` |
/// | the connection ends | `_remove_peer{socketId}` to the room |
package enum MeshFrame: Sendable, Equatable {
    /// `room` is nil when the frame names none. `asksICE`: whether the joiner wants the ICE servers too.
    case join(room: String?, asksICE: Bool = false)
    /// For one member of the room. `name` is the outgoing frame's name without underscores: "offer".
    case direct(to: String, name: String, data: [JSONValue.Member])

    /// Bytes of a room's name.
    package static let longestRoom = 256
    /// The room of clients that name none.
    package static let defaultRoom = "__default"

    /// Frames for one member, with the required member of their data.
    private static let directed = ["__offer": "sdp", "__answer": "sdp", "__ice_candidate": "candidate"]

    /// Why a frame is rejected, with the event's name.
    package struct Problem: Error, Sendable, Equatable {
        package let event: String
        package let error: FieldError
    }

    /// Nil for a frame without an event's name, which SkyRTC's clients may send. It has no meaning.
    package static func read(_ text: String) throws(Problem) -> MeshFrame? {
        let value: JSONValue
        do {
            value = try JSONParser.parse(text.utf8)
        } catch {
            throw Problem(event: "", error: FieldError("frame", "", "expected JSON: \(error)"))
        }
        guard case .object = value else {
            throw Problem(event: "", error: FieldError("frame", "", "expected a JSON object, not \(value.kind)"))
        }
        guard let named = value["eventName"], named != .null else { return nil }
        guard case .string(let event) = named else {
            throw Problem(event: "", error: FieldError("eventName", named.shown, "expected a string"))
        }
        let shown = String(event.prefix(60))
        let data = value["data"] ?? .object([])
        guard case .object(let members) = data else {
            throw Problem(event: shown, error: FieldError("data", "", "expected an object, not \(data.kind)"))
        }
        if event == "__join" { return .join(room: try self.room(data, shown), asksICE: try self.ice(data, shown)) }
        guard let needed = self.directed[event] else {
            let known = ["__join"] + self.directed.keys.sorted()
            throw Problem(event: shown, error: FieldError("eventName", event, "expected \(known.joined(separator: ", "))"))
        }
        guard case .string(let receiver)? = data["socketId"], (1...128).contains(receiver.utf8.count), NameForm.isNormal(receiver)
        else {
            throw Problem(event: shown, error: FieldError("socketId", data["socketId"]?.shown ?? "", "expected the id of a member"))
        }
        guard let content = data[needed], content != .null else {
            throw Problem(event: shown, error: FieldError(needed, "", "is required"))
        }
        return .direct(to: receiver, name: String(event.dropFirst(2)), data: members)
    }

    private static func ice(_ data: JSONValue, _ event: String) throws(Problem) -> Bool {
        switch data["ice"] {
        case nil, .null: return false
        case .bool(let asks): return asks
        case let other?: throw Problem(event: event, error: FieldError("ice", other.shown, "expected true or false"))
        }
    }

    private static func room(_ data: JSONValue, _ event: String) throws(Problem) -> String? {
        switch data["room"] {
        case nil, .null, .string(""): return nil
        case .string(let room):
            guard room.utf8.count <= self.longestRoom, !room.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
            else {
                throw Problem(
                    event: event,
                    error: FieldError("room", room, "expected at most \(self.longestRoom) bytes and no control characters"))
            }
            do throws(FieldError) { try NameForm.check(room, "room") } catch { throw Problem(event: event, error: error) }
            return room
        case let other?: throw Problem(event: event, error: FieldError("room", other.shown, "expected a string"))
        }
    }
}

/// Writes signals as the mesh's frames. A value.
package struct MeshWriter: Sendable, Equatable {
    /// Whether outgoing names begin with two underscores instead of one; some clients expect that.
    package let isDouble: Bool

    package init(isDouble: Bool) { self.isDouble = isDouble }

    /// Nil for signals that the mesh has no frame for. `ice`: the ICE servers, which only the list of peers has.
    package func frame(_ signal: Gathering.Signal, ice: JSONValue? = nil) -> String? {
        switch signal {
        case .hello(let you, let others, _, _):
            var data: [JSONValue.Member] = [
                .init(name: "connections", value: .array(others.map { .string($0.id) })), .init(name: "you", value: .string(you.id)),
            ]
            if let ice { data.append(.init(name: "iceServers", value: ice)) }
            return self.frame("peers", data)
        case .arrived(let member): return self.frame("new_peer", [.init(name: "socketId", value: .string(member.id))])
        case .departed(let member, _): return self.frame("remove_peer", [.init(name: "socketId", value: .string(member.id))])
        case .directed(let from, let name, let data): return self.frame(name, Self.forwarded(data, from: from.id, name))
        case .away, .back, .said, .notified, .commanded, .turn, .queue, .ticket, .closed: return nil
        }
    }

    /// A refusal. SkyRTC's own client ignores it.
    package func error(_ event: String, code: String, _ message: String) -> String {
        self.frame(
            "error",
            [
                .init(name: "event", value: .string(event)), .init(name: "code", value: .string(code)),
                .init(name: "message", value: .string(message)),
            ])
    }

    private func frame(_ name: String, _ data: [JSONValue.Member]) -> String {
        let value: JSONValue = ["eventName": .string("\(self.isDouble ? "__" : "_")\(name)"), "data": .object(data)]
        return value.text
    }

    /// The data as sent, with the sender's id in place of the receiver's. A candidate also gets the names that today's browsers require: SkyRTC's
    /// client passes it unchanged to `RTCIceCandidate`, which throws when both are missing.
    private static func forwarded(_ data: [JSONValue.Member], from id: String, _ name: String) -> [JSONValue.Member] {
        var data = data.filter { $0.name != "socketId" } + [.init(name: "socketId", value: .string(id))]
        guard name == "ice_candidate" else { return data }
        func add(_ name: String, as source: String) {
            guard !data.contains(where: { $0.name == name }), let value = data.first(where: { $0.name == source })?.value else { return }
            data.append(.init(name: name, value: value))
        }
        add("sdpMLineIndex", as: "label")
        add("sdpMid", as: "id")
        return data
    }
}
