package import Support
import TestSupport
package import Testing

/// A server whose RTMP connections a test opens, by a port or in memory.
package protocol TestedServer: RunningServer {
    associatedtype Door: RTMPDoor
    /// The way to its RTMP connections.
    var port: Door { get }
}

extension TestedServer {
    /// Waits until the server has closed this connection, and expects one log line with the reason.
    package func expectClosed(
        _ client: RawClient, _ reason: CloseReason, within seconds: Double = 60, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let remote = "remote=\(client.address) "
        var lines: [String] = []
        try? await eventually("the closing line", within: seconds) {
            lines = self.lines.all.filter { "\($0) ".contains(remote) && $0.contains("Connection closed") }
            return !lines.isEmpty
        }
        #expect(lines.count == 1, "one line for \(client.address) \(self.lines.all.suffix(8))", sourceLocation: sourceLocation)
        #expect(
            lines.first?.contains("reason=\(reason.rawValue) ") == true, "expected \(reason.rawValue): \(lines)",
            sourceLocation: sourceLocation)
        try await client.waitUntilClosed()
    }
}
