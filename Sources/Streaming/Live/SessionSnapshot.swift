package import Relay

/// A connection as the API shows it.
package struct SessionSnapshot: Sendable {
    package let id: UInt64
    package let remote: String
    package let transport: Transport
    package let app: String?
    package let client: String?
    /// The user, if the credential or hook of a publish or play names one.
    package let user: String?
    package let bytesIn: UInt64
    package let bytesOut: UInt64
    package let seconds: Int64
    package let publishing: [String]
    package let viewers: [ViewerSnapshot]

    package init(
        id: UInt64, remote: String, transport: Transport, app: String?, client: String?, user: String?, bytesIn: UInt64, bytesOut: UInt64,
        seconds: Int64, publishing: [String], viewers: [ViewerSnapshot]
    ) {
        self.id = id
        self.remote = remote
        self.transport = transport
        self.app = app
        self.client = client
        self.user = user
        self.bytesIn = bytesIn
        self.bytesOut = bytesOut
        self.seconds = seconds
        self.publishing = publishing
        self.viewers = viewers
    }
}
