package import Media
import NIOCore

/// Publishers and their frames, on the stream's home loop.
extension RelayLoop {
    /// Claims the publisher slot. On the home loop. `evensSound`: whether times of sound that the device stamps unevenly are put right.
    package func claim(
        _ stream: Stream, identity: PublisherIdentity, takeover: TakeoverRule = .sameIdentity, grace: GracePeriods? = nil,
        evensSound: Bool = true, delegate: any PublisherDelegate
    ) throws(ClaimRefusal) -> StreamState.Token {
        self.eventLoop.preconditionInEventLoop()
        guard let home = self.homes[stream.id] else { throw .nameTaken }
        let wasIdle = home.state.phase == .idle
        var items: [StreamState.Item] = []
        let (token, replaced) = try home.state.claim(
            identity, takeover: takeover, grace: grace, evensSound: evensSound, nowMs: self.nowMs, items: &items)
        if wasIdle {
            home.registry.retain(stream)
            home.repair = FrameRepair()
        }
        let old = home.delegate
        home.delegate = delegate
        home.meter.publisherChanged()
        home.history.publisherChanged()
        home.restartJudging()
        self.apply(items, for: home)
        if let replaced { old?.publishEnded(replaced, reason: .takenOver) }
        return token
    }

    /// Relays frames, in order, from the publisher with this token. Any thread; one hop unless called on the home loop.
    package static func publish(_ frames: [Frame], to stream: Stream, token: StreamState.Token) {
        // Does not use `run`, whose closure would be allocated for each batch.
        if stream.home.eventLoop.inEventLoop { return stream.home.ingest(frames, to: stream, token: token) }
        stream.home.eventLoop.execute { stream.home.ingest(frames, to: stream, token: token) }
    }

    /// Relays one frame: as a list of one, without the list.
    package static func publish(_ frame: Frame, to stream: Stream, token: StreamState.Token) {
        guard stream.home.eventLoop.inEventLoop else { return self.publish([frame], to: stream, token: token) }
        stream.home.ingest(frame, to: stream, token: token)
    }

    private func ingest(_ frame: consuming Frame, to stream: Stream, token: StreamState.Token) {
        guard let home = stream.local, home.state.publisherToken == token else { return }
        let nowMs = self.nowMs
        var items = self.popSpareItems()
        let goesOut = Self.receive(&frame, of: home, token: token, nowMs: nowMs, items: &items)
        if goesOut, items.isEmpty, home.isPlain {
            let packaged = home.wireFormats[0]
            packaged.fanout.append(EncodedMessage(frame, encoder: self.rtmp, allocator: &packaged.allocator, arrivalMs: nowMs))
            self.markDirty(packaged.fanout)
        } else {
            if goesOut { items.append(.frame(frame)) }
            self.apply(items, for: home)
        }
        self.keepSpareItems(&items)
    }

    private func ingest(_ frames: [Frame], to stream: Stream, token: StreamState.Token) {
        guard let home = stream.local else { return }
        let nowMs = self.nowMs
        var items = self.popSpareItems()
        for var frame in frames where home.state.publisherToken == token {
            if Self.receive(&frame, of: home, token: token, nowMs: nowMs, items: &items) { items.append(.frame(frame)) }
        }
        self.apply(items, for: home)
        self.keepSpareItems(&items)
    }

    /// Repairs and counts a frame. Returns whether it goes out, behind `items`.
    @inline(__always)
    private static func receive(
        _ frame: inout Frame, of home: HomeStream, token: StreamState.Token, nowMs: Int64, items: inout [StreamState.Item]
    ) -> Bool {
        switch home.repair.examine(&frame) {
        case .relay: break
        case .drop: return false
        case .precede(var header):
            if home.receive(&header, token: token, nowMs: nowMs, items: &items) { items.append(.frame(header)) }
        }
        return home.receive(&frame, token: token, nowMs: nowMs, items: &items)
    }

    /// Moves the list out, so that a callback that re-enters finds an empty one.
    private func popSpareItems() -> [StreamState.Item] {
        let items = self.spareItems
        self.spareItems = []
        return items
    }

    private func keepSpareItems(_ items: inout [StreamState.Item]) {
        if !items.isEmpty { items.removeAll(keepingCapacity: items.capacity <= Self.spareItemsLimit) }
        self.spareItems = items
    }

    /// Drops the pictures cached for joiners, who then wait for the next keyframe. Any thread, in order with ``publish(_:to:token:)``.
    package static func dropGOP(of stream: Stream, token: StreamState.Token) {
        stream.home.run { loop in
            guard let home = loop.homes[stream.id], home.state.publisherToken == token else { return }
            loop.apply([.dropGOP], for: home)
        }
    }

    /// Forgets the stream's metadata, for `@clearDataFrame`.
    package static func clearMetadata(of stream: Stream, token: StreamState.Token) {
        stream.home.run { loop in
            guard let home = loop.homes[stream.id] else { return }
            var items: [StreamState.Item] = []
            home.state.clearMetadata(token: token, items: &items)
            loop.apply(items, for: home)
        }
    }

    /// Ends the publishing with this token; `clean` when the publisher announced it.
    package static func leave(_ stream: Stream, token: StreamState.Token, clean: Bool) {
        stream.home.run { loop in
            guard let home = loop.homes[stream.id], home.state.publisherToken == token else { return }
            home.state.leave(token: token, clean: clean, nowMs: loop.nowMs)
            home.delegate = nil
        }
    }

    /// Records the publisher's announcement that it sends nothing for a while. Any thread.
    package static func announcePause(_ stream: Stream) {
        stream.home.run { loop in
            guard let home = loop.homes[stream.id] else { return }
            home.state.announcePause(nowMs: loop.nowMs)
        }
    }

    /// Sets how much longer the stream waits for its publisher: see ``StreamState/wait(untilMs:)``. Any thread.
    package static func wait(for stream: Stream, ms: Int64) {
        stream.home.run { loop in
            // A hundred years at most, so that the sum cannot overflow.
            loop.homes[stream.id]?.state.wait(untilMs: loop.nowMs + min(max(0, ms), 3_153_600_000_000))
        }
    }

    /// Changes the grace periods of a stream that is published, or was a moment ago. Any thread.
    package static func change(_ stream: Stream, to grace: GracePeriods) {
        stream.home.run { $0.homes[stream.id]?.state.change(to: grace) }
    }

    /// The present publisher's delegate, as its connection passed it to `claim`. On the home loop.
    package func publisher(of stream: Stream) -> (any PublisherDelegate)? { self.homes[stream.id]?.delegate }

    /// Evicts the stream's publisher; its later frames are ignored. With `endsViewers` the stream ends for viewers now, otherwise its grace
    /// period begins. On the home loop. Returns the delegate to notify, if anyone was publishing.
    package func evict(_ stream: Stream, endsViewers: Bool) -> (delegate: any PublisherDelegate, token: StreamState.Token)? {
        self.eventLoop.preconditionInEventLoop()
        guard let home = self.homes[stream.id] else { return nil }
        let delegate = home.delegate
        home.delegate = nil
        let token = home.state.evict(nowMs: self.nowMs)
        if endsViewers {
            var items: [StreamState.Item] = []
            let wasUsed = home.state.endNow(items: &items)
            self.apply(items, for: home)
            if wasUsed { home.registry.release(stream) }
        }
        guard let delegate, let token else { return nil }
        return (delegate, token)
    }

    /// Encodes the items once per wire format in use, then notifies the publisher and the taps.
    func apply(_ items: [StreamState.Item], for home: HomeStream) {
        guard !items.isEmpty else { return }
        let nowMs = self.nowMs
        for packaged in home.wireFormats { self.pack(items, into: packaged, of: home, nowMs: nowMs) }
        for item in items {
            switch item {
            case .active:
                if let token = home.state.publisherToken { home.delegate?.publisherActive(token, home.meter) }
            case .quiet:
                if let token = home.state.publisherToken { home.delegate?.publisherQuiet(token) }
            case .frame, .change, .flush, .prelude, .dropGOP, .end: break
            }
        }
        guard !home.taps.isEmpty else { return }
        let tapped = items.compactMap { TapItem($0) }
        guard !tapped.isEmpty else { return }
        // Iterates over a copy: a tap may re-enter here.
        for tap in Array(home.taps) { tap.receive(tapped) }
    }

    /// Applies the items to this loop's fanout and sends one task per other loop with viewers.
    private func pack(_ items: [StreamState.Item], into packaged: PackagedStream, of home: HomeStream, nowMs: Int64) {
        let fanout = packaged.fanout
        let form = fanout.form
        let encoder = self.encoder(form.wireFormat)
        let isShared = !packaged.subscribers.isEmpty
        var isChanged = false
        var updates: [RingUpdate] = []
        func notify(_ update: RingUpdate) {
            isChanged = true
            fanout.apply(update)
            if isShared { updates.append(update) }
        }
        for item in items {
            switch item {
            case .frame(let frame):
                guard let track = form.track else {
                    notify(.append(EncodedMessage(frame, encoder: encoder, allocator: &packaged.allocator, arrivalMs: nowMs)))
                    continue
                }
                for chosen in packaged.chosen(frame, track, home.state.tracks) {
                    notify(.append(EncodedMessage(chosen, encoder: encoder, allocator: &packaged.allocator, arrivalMs: nowMs)))
                }
            case .change(let change, let timestamp):
                notify(.append(EncodedMessage(change: change, timestamp: timestamp, arrivalMs: nowMs)))
            case .flush(let timestamp):
                guard form.wireFormat.carriesTags else { continue }
                notify(
                    .append(
                        EncodedMessage(
                            filler: Flush.frame(at: timestamp), encoder: encoder, allocator: &packaged.allocator, arrivalMs: nowMs)))
            case .prelude(let frames):
                notify(.prelude(form.track.map { home.state.headers(frames, ofTrack: $0) } ?? frames))
            case .dropGOP:
                notify(.dropGOP)
            case .end:
                packaged.allocator.reset()
                notify(.end)
            case .active, .quiet: break
            }
        }
        guard isChanged else { return }
        self.markDirty(fanout)
        guard isShared else { return }
        let stream = home.stream
        for subscriber in packaged.subscribers {
            let updates = updates
            subscriber.eventLoop.execute { subscriber.apply(updates, to: stream, form) }
        }
    }
}
