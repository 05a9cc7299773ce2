import CommandSupport
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket

/// Reads the binary messages of a WebSocket (RFC 6455).
enum WebSocketStream {
    static let refused = "the server does not upgrade to a WebSocket"

    private enum Upgrade: Sendable {
        case socket(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>)
        case refused(any Channel)
    }

    /// Hands each binary message to `take`, until it returns false or the time is over. Returns the reason if the stream failed to begin or ended
    /// early; nil when `take` was satisfied. `url` begins with http:// or https://.
    static func read(_ url: String, within seconds: Int64, _ take: (inout ByteBuffer) -> Bool) async -> String? {
        let path = url.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" }
        guard let address = ServerAddress(argument: String(url.dropLast(path.count))) else {
            return "the URL that the server hands out cannot be used"
        }
        do {
            guard case .socket(let socket) = try await self.connect(address, String(path), .seconds(seconds)) else {
                return Self.refused
            }
            let timer = socket.channel.eventLoop.scheduleTask(in: .seconds(seconds)) { socket.channel.close(promise: nil) }
            defer { timer.cancel() }
            return try await socket.executeThenClose { frames, _ in
                for try await frame in frames {
                    guard frame.opcode == .binary || frame.opcode == .continuation else {
                        if frame.opcode == .connectionClose { return "the server closed it" }
                        continue
                    }
                    var bytes = frame.unmaskedData
                    if !take(&bytes) { return nil }
                }
                return "no more came in time"
            }
        } catch {
            return "\(DoctorHTTP.words(error)) (\(DoctorHTTP.origin(url)))"
        }
    }

    private static func connect(_ address: ServerAddress, _ path: String, _ limit: TimeAmount) async throws -> Upgrade {
        var configuration = TLSConfiguration.makeClientConfiguration()
        // Other checks judge certificates.
        configuration.certificateVerification = .none
        let tls = address.isTLS ? try NIOSSLContext(configuration: configuration) : nil
        let upgrade = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(3)).connect(
            host: address.host, port: address.port
        ) { channel in
            channel.eventLoop.makeCompletedFuture {
                if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: tls, serverHostname: nil)) }
                return try self.upgrade(channel, address.authority, path, limit)
            }
        }
        return try await upgrade.get()
    }

    private static func upgrade(_ channel: any Channel, _ host: String, _ path: String, _ limit: TimeAmount) throws -> EventLoopFuture<
        Upgrade
    > {
        let headers: HTTPHeaders = ["Host": host, "User-Agent": "earshot doctor", "Content-Length": "0"]
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: headers)
        return try WebSocketUpgrade.begin(channel, head, longestFrame: 1 << 20, limit: limit) { channel in
            channel.eventLoop.makeCompletedFuture { .socket(try NIOAsyncChannel(wrappingChannelSynchronously: channel)) }
        } refused: { channel in
            channel.close(promise: nil)
            return channel.eventLoop.makeSucceededFuture(.refused(channel))
        }
    }
}
