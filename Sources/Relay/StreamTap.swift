package import Media

/// Takes a stream's frames for something that is no viewer: a muxer, a recorder, a link to another server.
package protocol StreamTap: AnyObject, Sendable {
    /// What came, in order. On the stream's home loop, which waits: put it away and return.
    func take(_ items: [TapItem])
    /// Ten times a second, on the same loop: what has to be done when nothing comes.
    func sweep()
}

extension StreamTap {
    package func sweep() {}
}

/// What a tap is given.
package enum TapItem: Sendable {
    /// Headers and metadata in force for what comes next, when the tap begins. What changes later comes among the frames.
    case prelude([Frame])
    /// In decode order, on the stream's timeline.
    case frame(Frame)
    /// The publisher changed: what comes next begins with a keyframe and may have other headers.
    case restarted
    /// The stream has ended; a next one may begin.
    case ended
}

extension RelayLoop {
    /// Gives the tap the pictures that a joiner would get, and then what comes, until ``remove(_:from:)``. Any thread. The caller is one of
    /// the stream's users while the tap is there.
    package static func add(_ tap: any StreamTap, to stream: Stream) {
        stream.home.run { loop in
            guard let home = loop.homes[stream.id] else { return tap.take([.ended]) }
            home.taps.append(tap)
            let ring = home.ring
            let point = ring.joinPoint
            var items: [TapItem] = [.prelude(point.prelude)]
            for sequence in point.sequence..<ring.head where !ring[sequence].flags.contains(.filler) {
                if let frame = ring[sequence].frame(loop.rtmp) { items.append(.frame(frame)) }
            }
            tap.take(items)
        }
    }

    /// Gives frames to the taps alone: for viewers their time is over. Any thread, in order with ``publish(_:to:token:)``.
    package static func keep(_ frames: [Frame], of stream: Stream, token: StreamState.Token) {
        stream.home.run { loop in
            guard let home = loop.homes[stream.id], home.state.publisherToken == token else { return }
            var items: [StreamState.Item] = []
            for frame in frames { home.state.ingest(frame, token: token, nowMs: loop.nowMs, items: &items) }
            let tapped = items.compactMap { TapItem($0) }
            guard !tapped.isEmpty else { return }
            for tap in Array(home.taps) { tap.take(tapped) }
        }
    }

    /// The newest keyframe that is kept, and the header it is decoded with. On the stream's home loop; nil without one.
    package func keyframe(of stream: Stream) -> (header: Frame, keyframe: Frame)? {
        guard let ring = self.homes[stream.id]?.ring, let start = ring.gopStart, let keyframe = ring[start].frame(self.rtmp),
            let header = ring.gopPrelude.last(where: { $0.kind == .video && $0.isSequenceHeader })
        else { return nil }
        return (header, keyframe)
    }

    /// Any thread; what is on its way may still come.
    package static func remove(_ tap: any StreamTap, from stream: Stream) {
        stream.home.run { loop in loop.homes[stream.id]?.taps.removeAll { $0 === tap } }
    }
}

extension TapItem {
    /// Nil for what a tap need not know.
    init?(_ item: StreamState.Item) {
        switch item {
        case .frame(let frame): self = .frame(frame)
        case .dropGOP: self = .restarted
        case .end: self = .ended
        case .notice, .flush, .prelude, .active, .quiet: return nil
        }
    }
}
