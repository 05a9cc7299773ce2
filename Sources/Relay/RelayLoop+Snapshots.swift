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
            viewers: home.stream.viewerCount, ringBytes: home.packagings.reduce(0) { $0 + $1.fanout.ring.bytes })
    }

    /// A snapshot of a stream whose home is this loop; nil when it is gone. Also returns this loop and the others that have viewers of it.
    package func snapshot(of stream: Stream) -> (stream: StreamSnapshot, loops: [RelayLoop])? {
        self.homes[stream.id].map { (self.snapshot(of: $0, nowMs: self.nowMs), [self] + $0.subscribers) }
    }

    /// Bytes sent to the stream's present viewers on this loop.
    package func bytesSent(of stream: Stream) -> UInt64 {
        Packaging.allCases.reduce(0) { sum, packaging in
            self.fanouts[FanoutKey(stream, packaging)]?.viewers.reduce(sum) { $1.isDetached ? $0 : $0 + $1.bytesSent } ?? sum
        }
    }

    /// The last minutes of a stream whose home is this loop, oldest first.
    package func history(of stream: Stream) -> [StreamHistory.Second] { self.homes[stream.id]?.history.seconds ?? [] }

    package func snapshot(of viewer: Viewer) -> ViewerSnapshot {
        let fanout = self.fanouts[FanoutKey(viewer)]
        let behindMs = fanout.map { viewer.behindMs(in: $0.ring, bytesPerSecond: $0.rate.peak, nowMs: self.nowMs) } ?? 0
        return ViewerSnapshot(
            path: viewer.stream.path, streamID: viewer.streamID, behindMs: behindMs, skippedFrames: viewer.gate.skippedFrames,
            bytesSent: viewer.bytesSent, messagesSent: viewer.messagesSent, isPaused: viewer.isPaused, joinedMs: viewer.joinedMs)
    }
}
