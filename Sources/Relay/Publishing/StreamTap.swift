package import Media

/// Receives a stream's frames without being a viewer: a muxer, a recorder or a link to another server.
package protocol StreamTap: AnyObject, Sendable {
    /// Receives items, in order, on the stream's home loop. It must not block: store the items and return.
    func receive(_ items: [TapItem])
    /// Called ten times a second on the same loop, for work due when nothing arrives.
    func sweep()
}

extension StreamTap {
    package func sweep() {}
}

/// An item that a tap receives.
package enum TapItem: Sendable {
    /// Headers and metadata in force when the tap begins. Later changes come among the frames.
    case prelude([Frame])
    /// In decode order, on the stream's timeline.
    case frame(Frame)
    /// The publisher changed: the next frames begin with a keyframe and may have other headers.
    case restarted
    /// The stream has ended; a next one may begin.
    case ended
}

extension RelayLoop {
    /// Gives the tap the cached pictures as a joiner gets them, then everything that follows until ``remove(_:from:)``. Any thread. The caller keeps
    /// the stream in use while the tap is there.
    package static func add(_ tap: any StreamTap, to stream: Stream) {
        stream.home.run { loop in
            guard let home = loop.homes[stream.id] else { return tap.receive([.ended]) }
            home.taps.append(tap)
            let ring = home.ring
            let point = ring.joinPoint
            var items: [TapItem] = [.prelude(point.prelude.filter { !$0.tag.flags.contains(.singleTrack) })]
            for sequence in point.sequence..<ring.head where ring[sequence].flags.isDisjoint(with: [.filler, .single]) {
                if let frame = ring[sequence].frame(loop.rtmp) { items.append(.frame(frame)) }
            }
            tap.receive(items)
        }
    }

    /// Gives frames only to the taps, since they come too late for viewers. Any thread, in order with ``publish(_:to:token:)``.
    package static func keep(_ frames: [Frame], of stream: Stream, token: StreamState.Token) {
        stream.home.run { loop in
            guard let home = loop.homes[stream.id], home.state.publisherToken == token else { return }
            var items: [StreamState.Item] = []
            for frame in frames { home.state.ingest(frame, token: token, nowMs: loop.nowMs, items: &items) }
            let tapped = items.compactMap { TapItem($0) }
            guard !tapped.isEmpty else { return }
            for tap in Array(home.taps) { tap.receive(tapped) }
        }
    }

    /// The newest cached keyframe, and the sequence header needed to decode it. On the stream's home loop; nil without one.
    package func keyframe(of stream: Stream) -> (header: Frame, keyframe: Frame)? {
        guard let ring = self.homes[stream.id]?.ring, let start = ring.gopStart, let keyframe = ring[start].frame(self.rtmp),
            let header = ring.gopPrelude.last(where: {
                $0.kind == .video && $0.isSequenceHeader && !$0.tag.flags.contains(.multitrack)
            })
        else { return nil }
        return (header, keyframe)
    }

    /// Removes a tap. Any thread; items on their way may still arrive.
    package static func remove(_ tap: any StreamTap, from stream: Stream) {
        stream.home.run { loop in loop.homes[stream.id]?.taps.removeAll { $0 === tap } }
    }
}

extension TapItem {
    /// Nil for items that taps do not need.
    init?(_ item: StreamState.Item) {
        switch item {
        // Taps get all tracks.
        case .frame(let frame) where frame.tag.flags.contains(.singleTrack): return nil
        case .frame(let frame): self = .frame(frame.compacted)
        case .dropGOP: self = .restarted
        case .end: self = .ended
        case .change, .flush, .prelude, .active, .quiet: return nil
        }
    }
}
