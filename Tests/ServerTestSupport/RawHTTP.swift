import Support
import TestSupport

/// Sends raw bytes to the HTTP port, as no client would, and returns the answer.
package enum RawHTTP {
    /// Waits for the connection's end, at most `seconds`; returns what arrived until then.
    package static func send(_ text: String, to server: some AddressedServer, within seconds: Double = 60) async throws -> String {
        let socket = try await SocketClient.open(server.addresses.http.port)
        // The write fails once the server has closed.
        try? await socket.send(text)
        // Without an end, what came is the answer.
        try? await eventually("the end", within: seconds) { socket.isClosed }
        await socket.close()
        return socket.text
    }
}
