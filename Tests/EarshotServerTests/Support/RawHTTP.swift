import EarshotServer
import NIOCore
import NIOPosix

/// Bytes to the HTTP port as no client would send them, and what comes back until the server closes or has said enough.
enum RawHTTP {
    /// Waits for the connection's end, at most so long; what was answered until then.
    static func send(_ text: String, to server: TestServer, within seconds: Double = 4) async throws -> String {
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
            // A server that has closed already takes no more.
            try? await outbound.write(ByteBuffer(string: text))
            var answer = ByteBuffer()
            do {
                for try await var part in inbound { answer.writeBuffer(&part) }
            } catch {
                // The connection broke: what came before is the answer.
            }
            return String(buffer: answer)
        }
    }
}
