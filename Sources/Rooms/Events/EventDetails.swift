import Support

/// The data of an event as typed values, for the kinds that programs of this server read. A value.
package enum EventDetails: Sendable, Equatable {
    case push(PushDetails)
    case recording(RecordingDetails)
    case snapshot(SnapshotDetails)
    case link(LinkChange)
}

extension RoomEvent {
    /// The event's data as typed values; nil for kinds that nothing in the server reads. Events come from the store, where their data is text.
    package func details() throws(EventDataError) -> EventDetails? {
        switch self.kind {
        case .streamBegin: .push(try PushDetails(try EventFields(self), hasEnded: false))
        case .streamEnd: .push(try PushDetails(try EventFields(self), hasEnded: true))
        case .recordStarted, .recordFinished, .recordFailed, .recordEnded: .recording(try RecordingDetails(try EventFields(self)))
        case .snapshotTaken: .snapshot(try SnapshotDetails(try EventFields(self)))
        case .linkStarted: .link(try LinkChange(.started, try EventFields(self)))
        case .linkConnected: .link(try LinkChange(.connected, try EventFields(self)))
        case .linkInterrupted: .link(try LinkChange(.interrupted, try EventFields(self)))
        case .linkStopped: .link(try LinkChange(.stopped, try EventFields(self)))
        default: nil
        }
    }
}

/// The data of a stored event does not match its kind.
package struct EventDataError: Error, Equatable, CustomStringConvertible {
    package let description: String
}

/// Reads the members of an event's data. A member may be absent only where the writer leaves it out.
struct EventFields {
    /// Milliseconds of thirty thousand years, bytes of a petabyte: readers calculate with these. The store may be damaged.
    private static let numbers = -1_000_000_000_000_000...1_000_000_000_000_000 as ClosedRange<Int64>

    private let id: Int64
    private let value: JSONValue

    init(_ event: RoomEvent) throws(EventDataError) {
        self.id = event.id
        do throws(JSONProblem) {
            self.value = try JSONParser.parse(event.data.utf8, deepest: JSONParser.deepestAnswer)
        } catch {
            throw EventDataError(description: "the data of event \(event.id) is no JSON: \(error)")
        }
    }

    func text(_ name: String) throws(EventDataError) -> String { try self.present(name, try self.optionalText(name)) }
    func number(_ name: String) throws(EventDataError) -> Int64 { try self.present(name, try self.optionalNumber(name)) }

    func optionalText(_ name: String) throws(EventDataError) -> String? {
        switch self.value[name] {
        case nil, .null?: nil
        case .string(let text)?: text
        case let other?: throw self.wrong(name, other, "a string")
        }
    }

    func optionalNumber(_ name: String) throws(EventDataError) -> Int64? {
        switch self.value[name] {
        case nil, .null?: nil
        case .integer(let number)? where Self.numbers.contains(number): number
        case .integer(let number)?:
            throw EventDataError(description: "\"\(name)\" in the data of event \(self.id) is \(number), which no event has")
        case let other?: throw self.wrong(name, other, "a whole number")
        }
    }

    func path() throws(EventDataError) -> StreamPath { StreamPath(app: try self.text("app"), name: try self.text("name")) }

    func media() throws(EventDataError) -> MediaSummary {
        MediaSummary(
            width: try self.optionalNumber("width").map { Int($0) }, height: try self.optionalNumber("height").map { Int($0) },
            videoCodec: try self.optionalText("videoCodec"), audioCodec: try self.optionalText("audioCodec"))
    }

    private func present<Value>(_ name: String, _ value: Value?) throws(EventDataError) -> Value {
        guard let value else { throw EventDataError(description: "the data of event \(self.id) has no \"\(name)\"") }
        return value
    }

    private func wrong(_ name: String, _ value: JSONValue, _ expected: String) -> EventDataError {
        EventDataError(description: "\"\(name)\" in the data of event \(self.id) is \(value.kind), expected \(expected)")
    }
}
