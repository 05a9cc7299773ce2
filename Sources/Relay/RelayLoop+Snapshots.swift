import Media
package import Support

/// Snapshots for the API.
extension RelayLoop {
    /// Snapshots of the listed streams whose home is this loop.
    package func streamSnapshots() -> [StreamSnapshot] {
        let nowMs = self.nowMs
        return self.homes.values.filter(\.registry.isListed).map { self.snapshot(of: $0, nowMs: nowMs) }
    }

    private func snapshot(of home: HomeStream, nowMs: Int64) -> StreamSnapshot {
        StreamSnapshot(
            path: home.stream.path, phase: home.state.phase, liveForMs: home.state.liveSinceMs.map { nowMs - $0 }, meter: home.meter,
            health: home.health, viewers: home.stream.viewerCount, ringBytes: home.wireFormats.reduce(0) { $0 + $1.fanout.ring.bytes },
            cachedBytes: home.wireFormats.reduce(0) { $0 + $1.fanout.ring.cachedBytes }, announced: home.arrivals.announced,
            kinds: (
                home.meter.audio != nil && !home.state.isAbsent(.audio), home.meter.video != nil && !home.state.isAbsent(.video)
            ))
    }

    /// A snapshot of a stream whose home is this loop; nil when it is gone. Also returns this loop and the others that have viewers of it.
    package func snapshot(of stream: Stream) -> (stream: StreamSnapshot, loops: [RelayLoop])? {
        self.homes[stream.id].map { (self.snapshot(of: $0, nowMs: self.nowMs), [self] + $0.subscribers) }
    }

    /// The figures of the publisher with this token, even if it has just left; nil once another publisher has replaced it. On the home loop.
    package func meter(of stream: Stream, token: StreamState.Token) -> StreamMeter? {
        guard let home = self.homes[stream.id], home.state.publisherToken == nil || home.state.publisherToken == token else { return nil }
        return home.meter
    }

    /// Bytes sent to the stream's present viewers on this loop, the largest delay behind live in milliseconds, nil without viewers, and how many are slow.
    package func audience(of stream: Stream) -> (bytesSent: UInt64, worstBehindMs: Int64?, slow: Int) {
        var (bytes, worst, slow): (UInt64, Int64?, Int) = (0, nil, 0)
        let nowMs = self.nowMs
        for form in self.hasChosenTracks ? FanoutForm.all : FanoutForm.plain {
            guard let fanout = self.fanouts[FanoutKey(stream, form)] else { continue }
            for viewer in fanout.viewers where !viewer.isDetached {
                bytes += viewer.bytesSent
                if viewer.isSlow(nowMs: nowMs) { slow += 1 }
                worst = max(worst ?? 0, viewer.behindMs(in: fanout.ring, bytesPerSecond: fanout.rate.peak, nowMs: nowMs))
            }
        }
        return (bytes, worst, slow)
    }

    /// The last minutes of a stream whose home is this loop, oldest first.
    package func history(of stream: Stream) -> [StreamHistory.Second] { self.homes[stream.id]?.history.seconds ?? [] }

    /// Arrival figures of the listed streams whose home is this loop, within this time, by path; without streams that have none.
    package func arrivals(withinMs: Int64) -> NameTable<StreamHistory.Sum> {
        let nowMs = self.nowMs
        var sums: NameTable<StreamHistory.Sum> = [:]
        for home in self.homes.values where home.registry.isListed {
            let sum = home.history.sum(after: nowMs - withinMs)
            if sum.seconds > 0 { sums[home.stream.path] = sum }
        }
        return sums
    }

    package func snapshot(of viewer: Viewer) -> ViewerSnapshot {
        let fanout = self.fanouts[FanoutKey(viewer)]
        let nowMs = self.nowMs
        let behindMs = fanout.map { viewer.behindMs(in: $0.ring, bytesPerSecond: $0.rate.peak, nowMs: nowMs) } ?? 0
        return ViewerSnapshot(
            path: viewer.stream.path, behindMs: behindMs, isSlow: viewer.isSlow(nowMs: nowMs), skippedFrames: viewer.gate.skippedFrames,
            bytesSent: viewer.bytesSent, messagesSent: viewer.messagesSent, isPaused: viewer.isPaused)
    }
}
