import Media
import NIOCore
import Relay
import Synchronization

/// Takes frames from a stream's home loop to a thread of their own. Bounded: who does not keep up loses pictures up to a keyframe, never the
/// headers, and holds up nobody.
///
/// Any thread; `wake` is called once for all that comes until the next ``drain()``.
final class FrameMailbox: StreamTap {
    private struct Box {
        var items: [TapItem] = []
        var bytes = 0
        var isAwake = false
        /// Over the limit: coded frames are left out until a keyframe.
        var isSkipping = false
        var dropped: UInt64 = 0
    }

    private let box = Mutex(Box())
    private let limitBytes: Int
    private let wake: @Sendable () -> Void
    private static let limitItems = 20_000

    init(limitBytes: Int = 32 << 20, wake: @escaping @Sendable () -> Void) {
        self.limitBytes = limitBytes
        self.wake = wake
    }

    /// Frames left out because their taker was behind.
    var dropped: UInt64 { self.box.withLock { $0.dropped } }

    func take(_ items: [TapItem]) {
        let isNews = self.box.withLock { box in
            for item in items { self.add(item, to: &box) }
            defer { box.isAwake = true }
            return !box.isAwake
        }
        if isNews { self.wake() }
    }

    private func add(_ item: TapItem, to box: inout Box) {
        if case .frame(let frame) = item, frame.tag.flags.contains(.coded) {
            let isFull = box.bytes > self.limitBytes || box.items.count > Self.limitItems
            // Audio alone has no keyframes: it goes on when there is room.
            if box.isSkipping, !isFull, frame.isKeyframe || frame.kind == .audio && box.items.isEmpty { box.isSkipping = false }
            if box.isSkipping || isFull {
                box.isSkipping = true
                box.dropped += 1
                return
            }
            box.bytes += frame.payload.readableBytes
        }
        box.items.append(item)
    }

    /// What has come since the last time, in order.
    func drain() -> [TapItem] {
        self.box.withLock { box in
            box.isAwake = false
            box.bytes = 0
            defer { box.items = [] }
            return box.items
        }
    }
}
