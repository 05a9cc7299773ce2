import RTMP
package import Relay

/// What the API shows of a connection.
package struct SessionSnapshot: Sendable {
    package let id: UInt64
    package let remote: String
    package let isTLS: Bool
    package let app: String?
    package let client: String?
    package let bytesIn: UInt64
    package let bytesOut: UInt64
    package let seconds: Int64
    package let publishing: [String]
    package let viewers: [ViewerSnapshot]
}

extension RTMPConnection {
    func snapshot() -> SessionSnapshot {
        SessionSnapshot(
            id: self.id, remote: self.remote, isTLS: self.isTLS, app: self.connect.map { String($0.app.prefix { $0 != "?" }) },
            client: self.connect?.flashVersion, bytesIn: self.bytesReceived, bytesOut: self.writer?.bytesWritten ?? 0,
            seconds: (self.nowMs - self.openedMs) / 1_000, publishing: self.publishings.map(\.stream.path),
            viewers: self.plays.map { self.loop.relay.snapshot(of: $0.viewer) })
    }
}
