import LibC
import Media
import NIOCore
import Support

/// One stream's ring and viewers on one loop. Loop-bound; owned by its ``RelayLoop``.
package final class LoopFanout {
    let stream: Stream
    let form: FanoutForm
    // What is touched for each message is unchecked: methods of these values call nobody, so no second access can begin during one.
    @exclusivity(unchecked) package private(set) var ring: FanoutRing
    private(set) var isSeeded: Bool
    @exclusivity(unchecked) private(set) var viewers: ContiguousArray<Viewer> = []
    /// One per viewer, in the same order.
    @exclusivity(unchecked) private(set) var slots = ViewerSlotTable()
    private var hasDetached = false
    /// True while it waits in its loop's list of fanouts to pump.
    var isQueued = false
    /// True while ``coalesceMs`` holds messages back to gather more.
    var isGathering = false
    /// True while viewers are being sent messages; viewers may not leave the ring then. A failed write makes its channel read the remaining input,
    /// which may bring messages for this same ring.
    private var isPumping = false
    /// How long messages are gathered before they are sent.
    let coalesceMs: Int64
    /// Age limit in milliseconds of messages in audio-only streams and of their pieces; older ones are skipped. Nil: no limit.
    let maxQueueMs: Int64?
    /// Rate of encoded messages, measured between sweeps.
    @exclusivity(unchecked) private(set) var rate: RecentRate
    /// The loop's lateness as of its last sweep.
    var lateness = Lateness()
    /// Longest time a message waited for the loop to reach a ready viewer, since the last sweep.
    private var longestWaitMs: Int64 = 0

    /// The ledger that the stream's slabs are charged to.
    let ledger: MemoryLedger?
    private let encoder: any FrameEncoder
    /// Headers for joiners at `sequence`, encoded once for all of them.
    private var preludeCache: (sequence: Int, timestamp: Int64, messages: [EncodedMessage])?

    private let batch = MessageBatch()
    /// Where the lap around the viewers continues, and how many are left in it.
    @exclusivity(unchecked) private var nextVisited = 0
    @exclusivity(unchecked) private var unvisited = 0
    /// The beginning of the turn in which a lap of several turns began.
    var lapBegan: NIODeadline?
    let figures: RelayFigures

    init(
        _ stream: Stream, _ form: FanoutForm, ring: FanoutRing, isSeeded: Bool, encoder: any FrameEncoder, policy: RelayPolicy,
        figures: RelayFigures, nowMs: Int64
    ) {
        self.stream = stream
        self.form = form
        self.coalesceMs = policy.coalesceMs(stream.path)
        self.maxQueueMs = policy.maxQueueMs(stream.path)
        self.ring = ring
        self.isSeeded = isSeeded
        self.ledger = policy.ledger
        self.encoder = encoder
        self.figures = figures
        self.rate = RecentRate(nowMs: nowMs)
        self.rate.seed(ring, nowMs: nowMs)
    }

    deinit {
        for viewer in self.viewers { viewer.leaveFanout() }
    }

    // MARK: Ring

    func seed(_ ring: FanoutRing, nowMs: Int64) {
        self.ring = ring
        self.isSeeded = true
        self.rate.seed(ring, nowMs: nowMs)
        for viewer in self.viewers where !viewer.isDetached { viewer.start(in: self, nowMs: nowMs) }
    }

    func apply(_ updates: [RingUpdate]) {
        for update in updates { self.apply(update) }
    }

    func apply(_ update: RingUpdate) {
        switch update {
        case .append(let message): self.append(message)
        case .prelude(let frames):
            self.ring.setPrelude(frames)
            self.preludeCache = nil
        case .dropGOP:
            self.ring.dropGOP()
            self.preludeCache = nil
        case .end:
            self.ring.endStream()
            self.preludeCache = nil
        }
    }

    func append(_ message: EncodedMessage) {
        self.rate.count(message.length)
        // The fast path sends every message to everybody.
        if !message.flags.isDisjoint(with: .split), !self.ring.isSplit { self.slots.unsettle() }
        self.ring.append(message, isBounded: !self.isPumping)
    }

    /// Encodes the joiners' headers, stamped with the time of the message they precede.
    func encodedPrelude(_ frames: [Frame], at sequence: Int) -> [EncodedMessage] {
        guard !frames.isEmpty else { return [] }
        let timestamp = sequence < self.ring.head ? self.ring[sequence].timestamp : self.ring.lastTimestamp ?? frames[0].timestamp
        // The timestamp must match too. A viewer that joined at the head before its message came got the previous message's timestamp.
        if let cache = self.preludeCache, cache.sequence == sequence, cache.timestamp == timestamp { return cache.messages }
        var allocator = SlabAllocator(ledger: self.ledger)
        let messages = frames.map { frame in
            var stamped = frame
            stamped.timestamp = timestamp
            return EncodedMessage(stamped, encoder: self.encoder, allocator: &allocator, arrivalMs: 0)
        }
        self.preludeCache = (sequence, timestamp, messages)
        return messages
    }

    // MARK: Viewers

    func add(_ viewer: Viewer, nowMs: Int64) {
        self.viewers.append(viewer)
        self.slots.append()
        viewer.enter(self, at: self.viewers.count - 1)
        // Starts a new lap, which includes the new viewer.
        if self.isDue || self.isPumping { self.beginLap() }
        if self.isSeeded { viewer.start(in: self, nowMs: nowMs) }
    }

    /// Moves a viewer past messages that it cannot or need not get. It gets the headers in force at its new position, because it may have missed
    /// their changes, and the last change that it missed.
    func rejoin(_ viewer: Viewer, nowMs: Int64) {
        let from = viewer.cursor ?? 0
        let point = self.ring.rejoinPoint(from: from)
        viewer.cursor = point.sequence
        viewer.moveOn(to: point.sequence, in: self.ring, nowMs: nowMs)
        viewer.stall.clear()
        viewer.prelude = self.encodedPrelude(point.prelude, at: point.sequence)
        viewer.preludeIndex = 0
        if self.ring.hasVideo { viewer.gate.skipVideo(untilKeyframeFrom: point.sequence) }
        guard let missed = self.ring.lastChange, (from..<point.sequence).contains(missed.sequence) else { return }
        viewer.sink.notify(viewer, missed.change)
    }

    /// Only marks the viewer, because the list may be in use by an iteration.
    func markDetached(_ viewer: Viewer) {
        viewer.detach()
        self.hasDetached = true
    }

    func sweepDetached() {
        guard self.hasDetached else { return }
        var kept = 0
        var next = self.nextVisited
        for index in self.viewers.indices {
            let viewer = self.viewers[index]
            if viewer.isDetached {
                viewer.leaveFanout()
                if index < self.nextVisited { next -= 1 }
                continue
            }
            if kept != index {
                self.viewers[kept] = viewer
                self.slots.move(from: index, to: kept)
                viewer.move(to: kept)
            }
            kept += 1
        }
        self.viewers.removeLast(self.viewers.count - kept)
        self.nextVisited = next
        // Some of the viewers left in the lap are gone. A new lap over all viewers costs little.
        if self.isDue { self.beginLap() }
        self.slots.truncate(to: kept)
        self.hasDetached = false
    }

    /// Trims messages that no viewer here and no joiner needs, and measures the rate.
    func trim(nowMs: Int64) {
        self.ring.trim(below: self.slowestCursor)
        self.rate.tick(nowMs: nowMs)
    }

    // MARK: Pumping

    /// Whether some viewers may not have been sent the newest messages yet.
    var isDue: Bool { self.unvisited > 0 }

    /// Starts a lap over all viewers for new messages. It begins where the last lap stopped.
    func beginLap() { self.unvisited = self.viewers.count }

    /// Sends viewers their pending messages until all were visited or `sends` is used up. Continues where the last call stopped. Each viewer that
    /// gets something costs one send, and one more per 16 KiB. Most viewers share a cursor and get the same whole batch: the fast path.
    func pumpOn(sends: inout Int, scratch: PumpScratch, policy: RelayPolicy, nowMs: Int64) {
        let isOutermost = self.beginPumping()
        let head = self.ring.head
        let base = self.ring.base
        var slots = self.slots.base
        var count = self.viewers.count
        // Changes sent meanwhile may bring messages or viewers, which start a new lap.
        var left = self.unvisited
        self.unvisited = 0
        var next = self.nextVisited
        let isOfPackets = self.form.wireFormat == .packets
        var from = -1
        var vectors = UnsafeBufferPointer<IOVector>(start: nil, count: 0)
        var to = 0
        var bytes = 0
        // By index, because a write may close a connection. That marks its viewer but must not touch the list.
        while left > 0, sends > 0 {
            let index = next < count ? next : 0
            next = index + 1
            left -= 1
            let slot = slots + index
            if slot.pointee.isSteady {
                let cursor = slot.pointee.cursor
                if cursor == head { continue }
                if cursor != from, cursor >= base, slot.pointee.descriptor >= 0, self.isFresh(cursor, nowMs: nowMs) {
                    self.batch.gather(from: cursor, in: self.ring)
                    from = cursor
                    vectors = self.batch.vectors
                    to = self.batch.to
                    bytes = self.batch.bytes
                }
                if cursor == from, bytes > 0, slot.pointee.descriptor >= 0 {
                    sends -= Self.sends(bytes)
                    let written = DirectLine.send(vectors, to: slot.pointee.descriptor)
                    if written == bytes {
                        slot.pointee.cursor = to
                        slot.pointee.bytes &+= UInt64(bytes)
                        slot.pointee.messages &+= UInt64(to - cursor)
                        if to == head { continue }
                    } else if written > 0 {
                        let viewer = self.viewers[index]
                        viewer.line?.count(written)
                        viewer.cursor = self.finishCut(viewer, from: cursor, to: to, written: written)
                    }
                    // The socket is full or broken; the slow path finds the same and handles it.
                }
                // Last, as it is none of a socket's business.
                if isOfPackets, cursor >= base, cursor == from || self.isFresh(cursor, nowMs: nowMs) {
                    from = cursor
                    let isDone = self.deliver(to: self.viewers[index].sink, at: index, until: head, sends: &sends)
                    slots = self.slots.base
                    count = self.viewers.count
                    if isDone { continue }
                }
            }
            let viewer = self.viewers[index]
            let (sent, cursor) = (viewer.bytesSent, viewer.cursor)
            self.serve(viewer, scratch: scratch, policy: policy, nowMs: nowMs)
            // A visit to a paused or full viewer costs next to nothing.
            if viewer.cursor != cursor || viewer.bytesSent != sent {
                sends -= Self.sends(Int(truncatingIfNeeded: viewer.bytesSent &- sent))
            }
            // The slow path gathers its own batch and notifies connections, which may do anything but remove messages from the ring.
            from = -1
            slots = self.slots.base
            count = self.viewers.count
        }
        self.nextVisited = next
        self.unvisited = max(self.unvisited, left)
        if isOutermost { self.endPumping() }
    }

    /// The cost of a write, as the number of small writes that take the kernel as long.
    private static func sends(_ bytes: Int) -> Int { 1 + (bytes >> 14) }

    /// Returns false inside another pump: a connection being notified may become ready and pump again.
    private func beginPumping() -> Bool {
        defer { self.isPumping = true }
        return !self.isPumping
    }

    private func endPumping() {
        self.isPumping = false
        self.ring.bound()
    }

    /// Sends one viewer its pending messages, as far as its connection accepts them.
    func pump(_ viewer: Viewer, scratch: PumpScratch, policy: RelayPolicy, nowMs: Int64) {
        let isOutermost = self.beginPumping()
        self.serve(viewer, scratch: scratch, policy: policy, nowMs: nowMs)
        if isOutermost { self.endPumping() }
    }

    /// Records how long the loop has kept viewers at this cursor waiting. Returns false when messages there may be too old to send.
    private func isFresh(_ cursor: Int, nowMs: Int64) -> Bool {
        let ageMs = nowMs - self.ring[cursor].arrivalMs
        if ageMs > self.longestWaitMs { self.longestWaitMs = ageMs }
        guard let limit = self.maxQueueMs else { return true }
        return ageMs <= limit
    }

    /// Returns the longest wait without ``coalesceMs``, and resets it.
    func popLongestWaitMs() -> Int64 {
        defer { self.longestWaitMs = 0 }
        return max(0, self.longestWaitMs - self.coalesceMs)
    }

    /// The slow path: handles headers, changes, gates and full sockets.
    private func serve(_ viewer: Viewer, scratch: PumpScratch, policy: RelayPolicy, nowMs: Int64) {
        guard !viewer.isDetached, !viewer.isPaused, var cursor = viewer.cursor else { return }
        defer {
            self.noteStall(of: viewer, nowMs: nowMs)
            viewer.isSteady =
                viewer.gate.isOpen && viewer.streamID == 1 && viewer.prelude.isEmpty && !viewer.isDetached && !viewer.isPaused
                && viewer.stall.isClear && !self.ring.isSplit
        }
        if viewer.isSteady, cursor >= self.ring.base, cursor < self.ring.head { _ = self.isFresh(cursor, nowMs: nowMs) }
        if !viewer.stall.isClear, viewer.sink.isReady { viewer.stall.end(nowMs: nowMs, lateMs: self.lateness.ms(nowMs)) }
        while !viewer.isDetached, viewer.sink.isReady {
            if viewer.preludeIndex < viewer.prelude.count {
                let message = viewer.prelude[viewer.preludeIndex]
                viewer.preludeIndex += 1
                if viewer.preludeIndex == viewer.prelude.count { viewer.prelude = []; viewer.preludeIndex = 0 }
                if self.form.wireFormat == .packets {
                    self.deliver(message, to: viewer)
                } else if message.flags.isDisjoint(with: viewer.unwanted) {
                    self.sendOne(message, to: viewer, scratch: scratch)
                }
                continue
            }
            guard cursor < self.ring.head else { break }
            if cursor < self.ring.base {
                // The ring reached its bound before the viewer's age limit: the messages are gone.
                self.rejoin(viewer, nowMs: nowMs)
                cursor = viewer.cursor ?? self.ring.head
                continue
            }
            if let limit = self.maxQueueMs, nowMs - self.ring[cursor].arrivalMs > limit {
                if self.ring.hasVideo {
                    self.skipToNewestPiece(viewer, from: cursor, nowMs: nowMs)
                } else {
                    self.rejoin(viewer, nowMs: nowMs)
                    cursor = viewer.cursor ?? self.ring.head
                    continue
                }
            }
            self.skipIfBehind(viewer, cursor: cursor, policy: policy, nowMs: nowMs)
            if let change = self.ring[cursor].change {
                cursor += 1
                viewer.cursor = cursor
                viewer.sink.notify(viewer, change)
                continue
            }
            if self.form.wireFormat == .packets {
                let message = self.ring[cursor]
                if viewer.gate.passes(message.flags, sequence: cursor) { self.deliver(message, to: viewer) }
                cursor += 1
            } else if viewer.gate.isOpen, viewer.streamID == 1, !self.ring.isSplit {
                cursor = self.sendBatch(to: viewer, from: cursor)
            } else {
                let message = self.ring[cursor]
                if message.flags.isDisjoint(with: viewer.unwanted), viewer.gate.passes(message.flags, sequence: cursor) {
                    self.sendOne(message, to: viewer, scratch: scratch)
                }
                cursor += 1
            }
            viewer.cursor = cursor
        }
        if viewer.isJoining { self.noteJoin(of: viewer, nowMs: nowMs) }
    }

    /// Delivers a steady viewer's messages as long as its connection takes them. Returns false if the slow path has to look at it.
    private func deliver(to sink: any ViewerSink, at index: Int, until head: Int, sends: inout Int) -> Bool {
        // A connection that closes meanwhile detaches its viewer, which is steady no longer.
        while sink.isReady, self.slots.base[index].isSteady {
            let cursor = self.slots.base[index].cursor
            guard cursor < head else { return true }
            let message = self.ring[cursor]
            guard message.change == nil, message.start != nil else { return false }
            sink.deliver(message)
            let slot = self.slots.base + index
            slot.pointee.cursor = cursor + 1
            slot.pointee.bytes &+= UInt64(message.length)
            slot.pointee.messages &+= 1
            sends -= Self.sends(message.length)
        }
        return false
    }

    private func deliver(_ message: EncodedMessage, to viewer: Viewer) {
        guard message.start != nil else { return }
        viewer.count(bytes: message.length, messages: 1)
        viewer.sink.deliver(message)
    }

    /// Updates the stall after a send: the viewer has everything, or its socket is full.
    private func noteStall(of viewer: Viewer, nowMs: Int64) {
        guard !viewer.isDetached else { return }
        if !viewer.sink.isReady { viewer.stall.begin(nowMs: nowMs) } else if !viewer.stall.isClear { viewer.stall.clear() }
    }

    /// Returns the new cursor.
    private func sendBatch(to viewer: Viewer, from: Int) -> Int {
        self.batch.gather(from: from, in: self.ring)
        let to = self.batch.to
        let total = self.batch.bytes
        let written = viewer.sink.write(self.batch.vectors, bytes: total)
        if written == total {
            viewer.cursor = to
            viewer.count(bytes: total, messages: to - from)
            return to
        }
        return self.finishCut(viewer, from: from, to: to, written: written)
    }

    /// Hands the partly written message to the connection to finish. Returns the cursor after it.
    private func finishCut(_ viewer: Viewer, from: Int, to: Int, written: Int) -> Int {
        var rest = written
        var sequence = from
        while sequence < to {
            let length = self.ring[sequence].length
            if rest < length { break }
            rest -= length
            sequence += 1
        }
        let message = self.ring[sequence]
        viewer.count(bytes: written - rest + message.length, messages: sequence - from + 1)
        viewer.sink.finish(message, header: UnsafeRawBufferPointer(start: nil, count: 0), from: rest)
        return sequence + 1
    }

    /// Sends one message with the viewer's own message stream id in its header.
    private func sendOne(_ message: EncodedMessage, to viewer: Viewer, scratch: PumpScratch) {
        guard let start = message.start else { return }
        viewer.count(bytes: message.length, messages: 1)
        let headerLength = Int(message.headerLength)
        let header = UnsafeMutableRawBufferPointer(rebasing: scratch.header[..<headerLength])
        header.copyMemory(from: UnsafeRawBufferPointer(start: start, count: headerLength))
        if viewer.streamID != 1 { self.encoder.setStreamID(viewer.streamID, inHeader: header) }
        scratch.vectors[0] = IOVector(iov_base: header.baseAddress, iov_len: headerLength)
        scratch.vectors[1] = IOVector(
            iov_base: UnsafeMutableRawPointer(mutating: start + headerLength), iov_len: message.length - headerLength)
        let written = viewer.sink.write(UnsafeBufferPointer(scratch.vectors), bytes: message.length)
        guard written < message.length else { return }
        viewer.sink.finish(message, header: UnsafeRawBufferPointer(header), from: written)
    }
}
