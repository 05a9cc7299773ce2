import Media
import Relay
import Upstream

/// Feeds a stream's frames to a link that pushes them to another server. Each life of the stream has its own tap.
final class PushTap: StreamTap {
    let stream: Relay.Stream
    private let link: UpstreamTask

    /// `stream` is already acquired for this tap.
    init(_ stream: Relay.Stream, _ link: UpstreamTask) {
        self.stream = stream
        self.link = link
    }

    func receive(_ items: [TapItem]) {
        for item in items {
            switch item {
            case .prelude(let frames):
                for frame in frames { self.link.offer(frame) }
            case .frame(let frame): self.link.offer(frame)
            case .restarted: break
            case .ended: self.link.clear()
            }
        }
    }
}
