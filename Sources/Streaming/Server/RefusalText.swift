package import RTMP
import Support

/// The name that a refused client asked for and the message that it got, without possible credentials: a device that encodes or forgets the "?" sends
/// its credential as part of the name. For the log and for operators; the client gets the message unchanged. A value.
package struct RefusalText: Sendable, Equatable {
    package let app: String
    package let name: String
    package let message: String

    /// Longest message, in bytes.
    static let longest = 512
    /// Shorter values of a query are no secrets, and could be parts of words.
    private static let shortestSecret = 6

    package init(_ address: StreamAddress, _ message: String) {
        self.app = TraceRedaction.address(address.app)
        self.name = TraceRedaction.address(address.name)
        var text = message.replacing(address.path, with: "\(self.app)/\(self.name)")
        // A hook's message may repeat its request.
        for part in address.query.split(separator: "&") {
            let value = part.drop { $0 != "=" }.dropFirst()
            if value.utf8.count >= Self.shortestSecret { text = text.replacing(value, with: TraceRedaction.hidden) }
        }
        self.message = text.shortened(toBytes: Self.longest)
    }

    package var path: String { "\(self.app)/\(self.name)" }
}
