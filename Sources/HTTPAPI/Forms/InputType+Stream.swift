import RTMP
import Rooms
import Support

extension InputType<String> {
    /// An app name that a connection may use.
    package static var streamApp: InputType { .address("expected an app without slash, query and control characters", part: .app) }
    /// A stream name that a connection may use.
    package static var streamName: InputType {
        .address("expected a stream name without query, control characters and . or .. parts", part: .name)
    }

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
