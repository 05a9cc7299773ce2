import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// A frame, and who hears it.
struct Told: Sendable {
    /// As ``Transcript`` writes it.
    let line: String
    /// Names, separated by spaces.
    let to: String

    init(_ line: String, to: String) {
        self.line = line
        self.to = to
    }
}

/// Everything that members of a gathering hear, step by step: exact frames, with people's ids as names and other ids as numbers.
///
/// | frame | line |
/// |---|---|
/// | `message` | sender, object, content; `timestamp` in it as 0 |
/// | `command` | `command`, sender, content |
/// | `turn` | `turn`, phase, player, uuid |
/// | `queue` | action, key, value |
/// | `presence`, `error`, `closed` | type, then what is new, why, or the reason |
/// | the close frame | `close`, its code |
actor Transcript {
    private struct Listener {
        let name: String
        let socket: WebSocketClient
        /// Messages that belong to former steps.
        var seen = 0
        var hasEnded = false
    }

    private var listeners: [Listener] = []
    /// What stands for ids.
    private var names: [String: String] = [:]
    private var pings = 0
    /// Objects of messages so far, with the names of their contents' members.
    private(set) var objects: [String: Set<String>] = [:]

    /// A member whose connection has had its greeting.
    func add(_ name: String, id: String, _ socket: WebSocketClient) throws {
        self.names[id] = name
        self.listeners.append(Listener(name: name, socket: socket, seen: try socket.messages.count))
    }

    /// `name` stands for this text from now on.
    func call(_ text: String, _ name: String) { self.names[text] = name }

    /// The id that this name or number stands for.
    func id(_ name: String) throws -> String { try self.names.first { $0.value == name }.orThrow().key }

    /// Waits until everybody has heard as much as this; fails unless it is exactly this, for each in this order.
    func expect(_ step: String, _ told: [Told]) async throws {
        var expected: [String: [String]] = [:]
        for each in told { for name in each.to.split(separator: " ") { expected[String(name), default: []].append(each.line) } }
        for name in expected.keys { #expect(self.listeners.contains { $0.name == name }, "\(step): nobody is called \(name)") }
        var heard: [String: [String]] = [:]
        // What follows from time comes later than the answer to a call.
        let deadline = ContinuousClock.now + .seconds(60 * Patience.factor)
        func isComplete() -> Bool { !expected.contains { heard[$0, default: []].count < $1.count } }
        while true {
            try await self.settle(step)
            for index in self.listeners.indices { heard[self.listeners[index].name, default: []] += try self.popMessages(index) }
            guard !isComplete(), ContinuousClock.now < deadline else { break }
            // So many pings would be a flood.
            try await Task.sleep(for: .milliseconds(20))
        }
        for listener in self.listeners {
            let (now, wanted) = (heard[listener.name] ?? [], expected[listener.name] ?? [])
            #expect(now == wanted, "\(step): \(listener.name) hears \(now), not \(wanted)")
        }
        self.listeners.removeAll { $0.hasEnded }
    }

    /// A member's frame.
    func say(_ name: String, _ frame: String) async throws {
        try await self.listeners.first { $0.name == name }.orThrow().socket.send(frame)
    }

    /// Waits for the answer to a ping, behind which nothing that was sent before is left.
    private func settle(_ step: String) async throws {
        self.pings += 1
        let ref = self.pings
        for listener in self.listeners where !listener.hasEnded {
            // The connection may be on its way to its end.
            try? await listener.socket.send("{\"type\":\"ping\",\"ref\":\(ref)}")
            try await eventually("\(listener.name)'s pong after \(step)") {
                let isAnswered = try listener.socket.messages.last { $0["type"].string == "pong" }?["ref"].int == ref
                return try isAnswered || listener.socket.closeCode != nil
            }
        }
    }

    private func popMessages(_ index: Int) throws -> [String] {
        guard !self.listeners[index].hasEnded else { return [] }
        let messages = try self.listeners[index].socket.messages
        let new = messages.dropFirst(self.listeners[index].seen)
        self.listeners[index].seen = messages.count
        var lines = try new.compactMap(self.line)
        if let code = try self.listeners[index].socket.closeCode {
            lines.append("close \(code)")
            self.listeners[index].hasEnded = true
        }
        return lines
    }

    /// Nil for answers.
    private func line(_ frame: JSON) throws -> String? {
        func text(_ name: String) -> String { frame[name].string ?? "null" }
        func names(_ expected: String...) {
            #expect(frame.names == Set(expected + ["type"]), "\(frame)")
        }
        switch frame["type"].string {
        case "ack", "pong": return nil
        case "message":
            names("from", "object", "content", "at")
            #expect(frame["at"].string?.wholeMatch(of: /[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z/) != nil, "\(frame)")
            self.objects[text("object"), default: []].formUnion(frame["content"].names)
            return try self.short("\(text("from")) \(text("object")) \(Self.canonical(frame["content"]))")
        case "command":
            names("from", "content")
            return try self.short("command \(text("from")) \(Self.canonical(frame["content"]))")
        case "turn":
            names("phase", "player", "uuid", "deadline")
            #expect(frame["deadline"].isNull == (frame["phase"].string == "idle"))
            return self.short("turn \(text("phase")) \(text("player")) \(text("uuid"))")
        case "queue":
            names("action", "key", "value")
            return self.short("\(text("action")) \(text("key")) \(text("value"))")
        case "presence": return self.short("presence \(text("action")) \(frame["member"]["id"].string ?? "")")
        case "error": return "error \(text("code"))"
        case "closed": return "closed \(text("reason"))"
        default: return "unexpected \(frame)"
        }
    }

    /// JSON with its members by name, each number and truth as it came.
    static func canonical(_ value: JSON) throws -> String {
        let data = try JSONSerialization.data(
            withJSONObject: value.value ?? NSNull(), options: [.sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed])
        return String(decoding: data, as: UTF8.self)
    }

    /// Ids as names; others, 32 hex digits each, are numbered as they come.
    func short(_ line: String) -> String {
        var line = line.replacing(/"timestamp":[0-9]{13}/, with: "\"timestamp\":0")
        for match in line.matches(of: /\b[0-9a-f]{32}\b/) where self.names[String(match.output)] == nil {
            self.names[String(match.output)] = "#\(self.names.values.count { $0.hasPrefix("#") } + 1)"
        }
        for (id, name) in self.names { line = line.replacing(id, with: name) }
        return line
    }
}
