package import NIOCore
package import NIOHTTP1
import NIOWebSocket

/// A client's side of the handshake of a WebSocket (RFC 6455 §4.1).
package enum WebSocketUpgrade {
    /// Sends `head` to request the upgrade and waits for the answer, for `limit` at most. `opened` sets up the channel to read frames, `refused` to
    /// read an ordinary answer.
    package static func begin<Outcome: Sendable>(
        _ channel: any Channel, _ head: HTTPRequestHead, longestFrame: Int, limit: TimeAmount,
        opened: @escaping @Sendable (any Channel) -> EventLoopFuture<Outcome>,
        refused: @escaping @Sendable (any Channel) -> EventLoopFuture<Outcome>
    ) throws -> EventLoopFuture<Outcome> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Outcome>(maxFrameSize: longestFrame) { channel, _ in opened(channel) }
        let configuration = NIOTypedHTTPClientUpgradeConfiguration(
            upgradeRequestHead: head, upgraders: [upgrader], notUpgradingCompletionHandler: refused)
        var pipeline = NIOUpgradableHTTPClientPipelineConfiguration(upgradeConfiguration: configuration)
        // The first frames often arrive together with the server's answer; NIO would drop them.
        pipeline.leftOverBytesStrategy = .forwardBytes
        let result = try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(configuration: pipeline)
        let timer = channel.eventLoop.assumeIsolated().scheduleTask(in: limit) { channel.close(promise: nil) }
        result.assumeIsolated().whenComplete { _ in timer.cancel() }
        return result
    }
}
