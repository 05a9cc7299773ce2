import Health
package import Media

/// Judging a stream, once a second on its home loop.
extension HomeStream {
    /// The present verdict; nil unless a publisher that is judged has sent media.
    var health: StreamHealth? {
        guard self.state.publisherToken != nil, self.delegate?.isJudged == true, self.judge.hasMedia else { return nil }
        return self.judge.health
    }

    /// Discards all earlier seconds. For a new publisher, or one that paused.
    func restartJudging() {
        self.arrivals = ArrivalMeter()
        _ = self.repair.popFlaws()
        _ = self.refusals.popAll()
        self.judge.restart()
    }

    /// Call several times a second. `lateMs`: the loop's total lateness so far.
    func judge(lateMs: Int64, nowMs: Int64) {
        guard let token = self.state.publisherToken,
            var second = self.arrivals.close(audioCodec: self.meter.audio?.codec, lateMs: lateMs, nowMs: nowMs),
            let delegate = self.delegate, delegate.isJudged
        else { return }
        (second.video.flaws, second.audio.flaws) = self.repair.popFlaws()
        (second.video.refusal, second.audio.refusal) = self.refusals.popAll()
        // Media still in flight after the announcement does not end a pause.
        guard !self.state.isPaused else { return self.restartJudging() }
        self.judge.judge(
            second, announced: self.arrivals.announced, videoCodec: self.meter.video?.codec, audioCodec: self.meter.audio?.codec)
        if let bits = self.advice.due(self.judge, nowMs: nowMs) { delegate.uplinkCarried(bitsPerSecond: bits) }
        guard let former = self.reports.due(self.judge.health.verdict, nowMs: nowMs) else { return }
        delegate.healthChanged(token, self.judge.health, former: former)
    }
}

extension RelayLoop {
    /// Records what an output left out of a stream, for its verdict. Any thread.
    package static func refused(_ frames: Int, of kind: Frame.Kind, in stream: Stream, cause: String) {
        stream.home.run { $0.homes[stream.id]?.refusals.note(kind, frames, cause) }
    }
}
