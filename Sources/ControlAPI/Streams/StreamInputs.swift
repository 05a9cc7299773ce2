import Access
import RTMP
import Rooms
import Support

/// Inputs of the stream calls.
enum StreamInputs {
    static let app = Input("app", .streamApp, "The app.").required
    static let name = Input("name", .streamName, "The stream's name under the app; write a slash in it as %2F.").required
    static let path = [Self.app.erased, Self.name.erased]

    static let appFilter = Input("app", .streamApp, "Only streams of this app.")
    static let nameFilter = Input("name", .streamName, "Only streams of this name; needs app.")
    static let state = Input("state", .choice() as InputType<StreamAnswer.State>, "Only streams in this state.")
    static let streams = Input("streams", .streamPaths(atMost: 100), "Only these streams, as app/name.")
    static let sort = Input(
        "sort", .choice() as InputType<StreamListing.Order>,
        "The order; viewers: most first. verdict: interrupted streams first, then the worst.", fallback: .name)
    static let after = Input("after", .sought(length: 1...StreamBan.longestCursor), "The `next` of the previous page.")
    static let limit = Input("limit", .whole(1...1_000), "The maximum number of entries.", fallback: 100)
    static let action = Input("action", .choice() as InputType<AdmissionRequest.Action>, "Only these: publish or play.")
    static let from = Input("from", .instant, "Only pushes that began at this time or later.")
    static let to = Input("to", .instant, "Only pushes that began before this time.")
    static let before = Input("before", .whole(1...Int64.max), "The `next` of the previous page.")
    static let minutes = Input("seconds", .whole(1...600), "How many seconds back from now.", fallback: 120)
}

extension InputType<String> {
    /// An app name that a connection may use.
    static var streamApp: InputType { .address("expected an app without slash, query and control characters", part: .app) }
    /// A stream name that a connection may use.
    static var streamName: InputType { .address("expected a stream name without query, control characters and . or .. parts", part: .name) }

    private enum Part { case app, name }

    private static func address(_ rule: String, part: Part) -> InputType {
        let longest = RoomLimits.streamNameLength
        // Allows names of this many characters, of up to four bytes each. A connection's limit may be lower; a longer name then simply finds no
        // stream.
        var limits = Limits()
        limits.nameBytes = 4 * longest + 1
        return InputType(.keywords("string", ("minLength", 1), ("maxLength", .integer(Int64(longest))))) {
            [limits] (json: JSONValue) throws(BrokenRule) in
            guard case .string(let text) = json else { throw BrokenRule(rule) }
            let count = text.unicodeScalars.count
            guard (1...longest).contains(count) else { throw BrokenRule("expected 1 to \(longest) characters; these are \(count)") }
            let address: StreamAddress
            do {
                address = try StreamAddress(app: part == .app ? text : "a", name: part == .name ? text : "n", limits: limits)
            } catch {
                throw BrokenRule("\(rule): \(error)")
            }
            // Text that parsing has changed would name another stream.
            guard (part == .app ? address.app.exact == text.exact && address.name == "n" : address.name.exact == text.exact),
                address.query.isEmpty,
                !text.contains("?")
            else { throw BrokenRule(rule) }
            return text
        }
    }
}

extension APICall {
    /// The stream that the path names.
    func streamPath() throws -> StreamPath {
        StreamPath(app: try self.value(StreamInputs.app), name: try self.value(StreamInputs.name))
    }
}
