import FFmpeg
import Media
import NIOCore
import Relay

/// A stream whose messages are pieces of fragmented MP4: the relay fans them out to viewers as it does a publisher's frames, from one ring,
/// starting at a keyframe. Its registry is ``ServerCore/pieces``, under the path of the stream that it was made from.
///
/// Owned by one ``StreamRemuxer``.
final class PieceStream {
    private let stream: Relay.Stream
    private let token: StreamState.Token
    private let registry: StreamRegistry

    /// `stream` was acquired for it, and claimed with `token`.
    init(_ stream: Relay.Stream, _ token: StreamState.Token, _ registry: StreamRegistry) {
        self.stream = stream
        self.token = token
        self.registry = registry
    }

    var viewers: Int { self.stream.viewerCount }

    /// What every piece from now on builds on.
    func begin(_ initialization: ByteBuffer) {
        self.publish(Frame(kind: .video, timestamp: 0, payload: initialization, tag: TagInfo(flags: .sequenceHeader)))
    }

    func publish(_ fragment: Fragment) {
        let flags: TagInfo.Flags = fragment.isIndependent ? [.coded, .keyframe] : .coded
        self.publish(Frame(kind: .video, timestamp: fragment.startMs, payload: fragment.bytes, tag: TagInfo(flags: flags)))
    }

    private func publish(_ frame: Frame) { RelayLoop.publish([frame], to: self.stream, token: self.token) }

    /// Its viewers are told that it is over.
    func end() {
        let stream = self.stream
        let registry = self.registry
        stream.home.run { home in
            _ = home.evict(stream, endsViewers: true)
            registry.release(stream)
        }
    }

    /// On the loop that is to be its home. Nil: another one is there still.
    static func open(_ path: String, in registry: StreamRegistry, on loop: RelayLoop) -> (stream: Relay.Stream, token: StreamState.Token)? {
        let stream = registry.acquire(path, on: loop)
        var grace = GracePeriods()
        // It ends when its remuxer says so.
        grace.mediaIdleMs = .max / 2
        grace.dryMs = .max / 2
        grace.quietMs = .max / 2
        do throws(ClaimRefusal) {
            guard stream.home === loop else { throw .nameTaken }
            return (
                stream, try loop.claim(stream, identity: PublisherIdentity("remuxer"), takeover: .nobody, grace: grace, delegate: Nobody())
            )
        } catch {
            registry.release(stream)
            return nil
        }
    }

    private final class Nobody: PublisherDelegate {
        func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {}
    }
}
