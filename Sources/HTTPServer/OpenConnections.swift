import NIOCore
import Synchronization

/// The open connections of one HTTP port, for its end. Any thread.
final class OpenConnections: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var isEnding = false
    }

    private let state = Mutex(State())

    /// Adds a new connection until it closes; one that comes after the end has begun is closed.
    func add(_ channel: any Channel) {
        let isEnding = self.state.withLock { state in
            if !state.isEnding { state.channels[ObjectIdentifier(channel)] = channel }
            return state.isEnding
        }
        guard !isEnding else { return channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.channels[ObjectIdentifier(channel)] = nil } }
    }

    /// Asks all to close when their requests are answered, and closes the others after `limit`. Returns when they are closed.
    func end(within limit: TimeAmount) async {
        let channels = self.state.withLock { state in
            state.isEnding = true
            return Array(state.channels.values)
        }
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        let late = channels.first?.eventLoop.scheduleTask(in: limit) { for channel in channels { channel.close(promise: nil) } }
        for channel in channels { try? await channel.closeFuture.get() }
        late?.cancel()
    }
}
