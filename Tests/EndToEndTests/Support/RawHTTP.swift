import EarshotServer
import NIOCore
import NIOPosix

@testable import Support

/// Sends raw bytes to the HTTP port, as no client would, and returns the answer.
enum RawHTTP {
    /// Waits for the connection's end, at most `seconds`; returns what arrived until then.
    static func send(_ text: String, to server: TestServer, within seconds: Double = 60) async throws -> String {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: server.addresses.http.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            let deadline = channel.channel.eventLoop.scheduleTask(in: .milliseconds(Int64(seconds * 1_000))) {
                channel.channel.close(promise: nil)
            }
            defer { deadline.cancel() }
            // The write fails once the server has closed.
            try? await outbound.write(ByteBuffer(string: text))
            var answer = ByteBuffer()
            do {
                for try await var part in inbound { answer.writeBuffer(&part) }
            } catch {
                // The connection broke: bytes from before are the answer.
            }
            return String(buffer: answer)
        }
    }
}
