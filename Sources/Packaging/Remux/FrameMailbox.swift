import Media
import NIOCore
import RTMP
import Relay
import ServerConfiguration
import Support
import Synchronization

/// Passes frames from a stream's home loop to another thread, within a bound.
///
/// A slow receiver loses coded frames up to the next keyframe, and headers only beyond twice the limit; it delays nobody.
///
/// Waking a thread for every frame costs many times as much as muxing the frame. So the receiver states what it waits for (``Patience``), and wakes
/// when that arrives, or when frames have stopped for a while.
///
/// Any thread; `wake` is called once for everything that arrives until the next ``rest(_:)``.
final class FrameMailbox: StreamTap {
    /// The frames that are worth a wake-up. Times are milliseconds of the stream's timeline.
    struct Patience: Sendable, Equatable {
        /// The kind whose frames end pieces.
        var leads: Frame.Kind
        /// A frame of that kind from this time on may end the open piece.
        var dueMs: Int64
        /// A keyframe from this time on may end the open piece.
        var keyframeDueMs: Int64
        /// Time of the receiver's newest frame; an older frame wakes the receiver too.
        var newestMs: Int64

        /// Longest time that anything waits here. Milliseconds of the steady clock.
        var holdMs = FrameMailbox.stallMs

        /// How much longer a piece waits while only frames of the other kind arrive. Milliseconds.
        static let graceMs: Int64 = 1_000
    }

    /// The frames that arrived, in order, and the time since the newest.
    struct Batch: Sendable {
        var items: [TapItem]
        /// Milliseconds since the newest coded frame arrived, in this batch or earlier.
        var idleMs: Int64
        /// No coded frame has come for ``FrameMailbox/stallMs``: frames that wait for a successor have waited long enough.
        var isStalled: Bool { self.idleMs >= FrameMailbox.stallMs }
    }

    /// An item, or a frame whose payload is in ``Box/arena``.
    private enum Entry {
        case item(TapItem)
        case copied(Frame.Kind, timestamp: Int64, TagInfo, start: Int, count: Int)
    }

    private struct Box {
        var entries: [Entry] = []
        /// Copies of payloads that are slices. Slices kept for long would pin the socket's large read buffers, and each read would
        /// allocate.
        var arena = ByteBuffer()
        /// The arena that the receiver got last, reused when the receiver is done with it.
        var spare = ByteBuffer()
        var isArenaUsed = false
        var bytes = 0
        /// Bytes charged to the ledger.
        var chargedBytes = 0
        /// Nil: every coded frame and header wakes the receiver.
        var patience: Patience?
        /// The receiver was woken and has not called ``rest(_:)`` yet.
        var isAwake = false
        /// The receiver was woken for the present stall.
        var isQuiet = false
        /// Over the limit: coded frames are dropped until a keyframe.
        var isSkipping = false
        var dropped: UInt64 = 0
        /// Arrival of the newest coded frame, and of the oldest item here. Milliseconds of the steady clock.
        var newestMs: Int64
        var oldestMs: Int64 = 0
    }

    private let box: Mutex<Box>
    private let nowMs: @Sendable () -> Int64
    private let eventLoop: any EventLoop
    private let limitBytes: Int
    private let ledger: MemoryLedger?
    private let wake: @Sendable () -> Void
    static let usualLimitBytes = ServerConfig.Limits().frameQueueBytes
    private static let limitItems = 20_000
    /// This many bytes wake the receiver, whatever they are.
    private static let plentyBytes = 4 << 20
    /// Longer payloads are not copied. Bytes.
    private static let longestCopy = 256 << 10
    /// A larger arena is freed when a batch fills less than a quarter of it. Bytes.
    private static let smallArena = 256 << 10
    /// Smallest change reported to the ledger: not every frame costs an atomic operation. Bytes.
    private static let chargeStep = 64 << 10
    /// Padding that libav requires behind a packet. Bytes.
    private static let padding = 64
    /// Interval of the loop's sweeps. Milliseconds.
    private static let sweepMs = RelayLoop.sweepInterval.nanoseconds / 1_000_000
    /// The receiver wakes after this long without a coded frame. Milliseconds.
    static let stallMs: Int64 = 230

    /// The limit's name and size, for the log.
    static func words(_ limitBytes: Int) -> String {
        "limits.frameQueue \(ConfigUnits.size(bytes: limitBytes)), or \(Self.limitItems) frames"
    }

    /// `eventLoop` is the stream's home. Buffered bytes are charged to `ledger`. `nowMs` is the steady clock.
    init(
        on eventLoop: any EventLoop, limitBytes: Int = FrameMailbox.usualLimitBytes, ledger: MemoryLedger? = nil,
        nowMs: @escaping @Sendable () -> Int64 = { LoopSweeper.nowMs }, wake: @escaping @Sendable () -> Void
    ) {
        self.box = Mutex(Box(newestMs: nowMs()))
        self.nowMs = nowMs
        self.eventLoop = eventLoop
        self.limitBytes = limitBytes
        self.ledger = ledger
        self.wake = wake
    }

    deinit { self.ledger?.charge(-self.box.withLock { $0.chargedBytes }) }

    /// Frames dropped because the receiver was behind.
    var dropped: UInt64 { self.box.withLock { $0.dropped } }

    func receive(_ items: [TapItem]) {
        let nowMs = self.nowMs()
        let wakes = self.box.withLock { box in
            var isNews = false
            if box.entries.isEmpty { box.oldestMs = nowMs }
            if box.isArenaUsed {
                // Clears in place if nothing refers to the arena any more. Not earlier: the receiver still holds its newest samples.
                box.arena.clear()
                box.isArenaUsed = false
            }
            for item in items {
                if self.add(item, to: &box, nowMs: nowMs) { isNews = true }
            }
            self.charge(&box)
            defer { if isNews { box.isAwake = true } }
            return isNews && !box.isAwake
        }
        if wakes { self.wake() }
    }

    private func charge(_ box: inout Box) {
        guard let ledger = self.ledger else { return }
        // Payloads that are not copied have memory of their own.
        let held = box.arena.capacity + box.spare.capacity + max(0, box.bytes - box.arena.readableBytes)
        guard abs(held - box.chargedBytes) >= Self.chargeStep else { return }
        ledger.charge(held - box.chargedBytes)
        box.chargedBytes = held
    }

    /// Returns whether the item is worth waking the receiver.
    private func add(_ item: TapItem, to box: inout Box, nowMs: Int64) -> Bool {
        let isFull = box.bytes > self.limitBytes || box.entries.count > Self.limitItems
        guard case .frame(let frame) = item else {
            if case .prelude(let frames) = item { box.bytes += frames.reduce(0) { $0 + $1.payload.readableBytes } }
            box.entries.append(.item(item))
            return true
        }
        guard frame.tag.flags.contains(.coded) else {
            if isFull, !self.makeSpace(for: frame, in: &box) {
                box.dropped += 1
                return false
            }
            box.bytes += frame.payload.readableBytes
            box.entries.append(.item(item))
            return frame.kind != .data
        }
        // Audio alone has no keyframes: it resumes once the queue is empty.
        if box.isSkipping, !isFull, frame.isKeyframe || frame.kind == .audio && box.entries.isEmpty { box.isSkipping = false }
        if box.isSkipping || isFull {
            box.isSkipping = true
            box.dropped += 1
            return false
        }
        box.bytes += frame.payload.readableBytes
        box.newestMs = nowMs
        box.isQuiet = false
        box.entries.append(Self.entry(frame, &box.arena))
        return box.bytes > Self.plentyBytes || box.patience?.isNews(frame.kind, frame.timestamp, isKeyframe: frame.isKeyframe) ?? true
    }

    /// Makes room for a frame over the limit; returns false to drop it. Data is dropped; a header replaces an earlier one if no frames lie in
    /// between.
    private func makeSpace(for frame: Frame, in box: inout Box) -> Bool {
        guard frame.kind != .data, box.bytes <= 2 * self.limitBytes, box.entries.count <= 2 * Self.limitItems else { return false }
        do throws(MediaError) {
            guard let slot = try frame.headerSlot() else { return false }
            for index in box.entries.indices.reversed() {
                guard case .item(.frame(let before)) = box.entries[index], !before.tag.flags.contains(.coded) else { return true }
                guard let other = try before.headerSlot(), slot.supersedes(other) else { continue }
                box.bytes -= before.payload.readableBytes
                box.entries.remove(at: index)
                return true
            }
            return true
        } catch {
            // A header that cannot be read is of no use.
            return false
        }
    }

    private static func entry(_ frame: Frame, _ arena: inout ByteBuffer) -> Entry {
        let bytes = frame.payload
        let isSlice = bytes.storageCapacity > bytes.capacity
        guard isSlice, bytes.readableBytes <= Self.longestCopy else { return .item(.frame(frame)) }
        let start = arena.writerIndex
        arena.writeImmutableBuffer(bytes)
        // libav reads past the end.
        arena.writeRepeatingByte(0, count: Self.padding)
        return .copied(frame.kind, timestamp: frame.timestamp, frame.tag, start: start, count: bytes.readableBytes)
    }

    /// Wakes the receiver when frames have stopped or an item has waited too long. The loop's sweeps are rare enough to cost nothing, but too
    /// coarse for low latency: the last one before a stall schedules the exact moment.
    func sweep() {
        let nowMs = self.nowMs()
        let (wakes, laterMs) = self.box.withLock { box -> (Bool, Int64?) in
            guard !box.isAwake, !box.isQuiet else { return (false, nil) }
            let idleMs = nowMs - box.newestMs
            let holdMs = box.patience?.holdMs ?? 0
            if !box.entries.isEmpty && nowMs - box.oldestMs >= holdMs || idleMs >= Self.stallMs {
                box.isQuiet = idleMs >= Self.stallMs
                box.isAwake = true
                return (true, nil)
            }
            return (false, Self.stallMs - idleMs < Self.sweepMs ? Self.stallMs - idleMs : nil)
        }
        if wakes { self.wake() }
        guard let laterMs else { return }
        self.eventLoop.scheduleTask(in: .milliseconds(laterMs)) { [weak self] in self?.sweep() }
    }

    /// Removes and returns everything that has arrived.
    func drain() -> Batch {
        self.box.withLock { box in
            let arena = box.arena
            let items = box.entries.map { entry -> TapItem in
                switch entry {
                case .item(let item): return item
                case .copied(let kind, let timestamp, let tag, let start, let count):
                    // Not a slice: libav uses it without another copy if it may read past the end.
                    var payload = arena
                    payload.moveWriterIndex(to: start + count)
                    payload.moveReaderIndex(to: start)
                    return .frame(Frame(kind: kind, timestamp: timestamp, payload: payload, tag: tag))
                }
            }
            box.entries.removeAll(keepingCapacity: box.entries.count <= 256)
            box.bytes = 0
            if arena.readableBytes > 0 {
                swap(&box.arena, &box.spare)
                box.isArenaUsed = true
                if box.arena.capacity > max(Self.smallArena, 4 * arena.readableBytes) { box.arena = ByteBuffer() }
            }
            self.charge(&box)
            return Batch(items: items, idleMs: self.nowMs() - box.newestMs)
        }
    }

    /// Rests until `patience` is met. Returns false if frames that already arrived need another ``drain()``.
    func rest(_ patience: Patience?) -> Bool {
        self.box.withLock { box in
            box.patience = patience
            box.isAwake = box.entries.contains { entry in
                switch entry {
                case .item(.frame(let frame)):
                    frame.kind != .data && patience?.isNews(frame.kind, frame.timestamp, isKeyframe: frame.isKeyframe) ?? true
                case .item: true
                case .copied(let kind, let timestamp, let tag, _, _):
                    patience?.isNews(kind, timestamp, isKeyframe: tag.flags.contains(.keyframe)) ?? true
                }
            }
            return !box.isAwake
        }
    }
}

extension FrameMailbox.Patience {
    func isNews(_ kind: Frame.Kind, _ timestamp: Int64, isKeyframe: Bool) -> Bool {
        guard kind == self.leads else { return timestamp >= self.dueMs &+ Self.graceMs }
        return timestamp >= self.dueMs || timestamp < self.newestMs || isKeyframe && timestamp >= self.keyframeDueMs
    }
}
