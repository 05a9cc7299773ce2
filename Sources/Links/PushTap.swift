import LinkTransport
import Media
import Relay

/// Feeds a stream's frames to a link that pushes them to another server. Each life of the stream has its own tap.
final class PushTap: StreamTap {
    let stream: Relay.Stream
    private let client: LinkClient

    /// `stream` is already acquired for this tap.
    init(_ stream: Relay.Stream, _ client: LinkClient) {
        self.stream = stream
        self.client = client
    }

    func receive(_ items: [TapItem]) {
        for item in items {
            switch item {
            case .prelude(let frames):
                for frame in frames { self.client.offer(frame) }
            case .frame(let frame): self.client.offer(frame)
            case .restarted: break
            case .ended: self.client.clear()
            }
        }
    }
}
