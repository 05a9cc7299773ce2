import NIOCore
import Relay
import Rooms
import Streaming
import Support

/// A publish or play on one message stream of an RTMP connection, for use on other threads.
struct RTMPRole: ConnectedPublisher {
    let connection: NIOLoopBound<RTMPConnection>
    let streamID: UInt32

    var eventLoop: any EventLoop { self.connection.eventLoop }

    func end(_ reason: CloseReason, _ what: String) {
        self.eventLoop.execute { self.connection.value.endRole(self.streamID, reason, what) }
    }

    func snapshot() async -> SessionSnapshot {
        await withCheckedContinuation { done in self.eventLoop.execute { done.resume(returning: self.connection.value.snapshot()) } }
    }

    func cacheOverflowed() { self.eventLoop.execute { self.connection.value.noteCacheOverflow() } }

    func uplinkCarried(bitsPerSecond: Int) {
        self.eventLoop.execute { self.connection.value.adviseUplink(self.streamID, bitsPerSecond: bitsPerSecond) }
    }

    func ended(_ token: StreamState.Token, _ end: PushEnd, by actor: Actor?) {
        self.eventLoop.execute { self.connection.value.publishEnded(self.streamID, token, end, by: actor) }
    }
}
