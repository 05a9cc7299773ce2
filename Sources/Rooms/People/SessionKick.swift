/// A connection that a call ends. A value.
package struct SessionKick: Sendable, Equatable {
    /// The connection's number in `GET /sessions`.
    package let sessionID: UInt64
    package let transport: String
    package let clientAddress: String
    package let publishing: [StreamPath]
    package let playing: [StreamPath]

    package init(sessionID: UInt64, transport: String, clientAddress: String, publishing: [StreamPath], playing: [StreamPath]) {
        self.sessionID = sessionID
        self.transport = transport
        self.clientAddress = clientAddress
        self.publishing = publishing
        self.playing = playing
    }

    /// Most streams of each kind that the event names.
    package static let mostNamed = 16
}
