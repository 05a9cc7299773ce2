import Media

/// Rules about the form of frames: what was set right when it arrived, and what outputs have to leave out.
extension StreamJudge {
    func formReasons() -> [HealthReason] {
        [
            self.headless(.video, .videoHeaderMissing), self.headless(.audio, .audioHeaderMissing),
            self.broken(.video, .videoBroken), self.broken(.audio, .audioBroken),
            self.refused(.video, .videoRefused), self.refused(.audio, .audioRefused),
            self.note(.keyframeFlagsWrong, .video, \.reflagged), self.note(.videoStartCodes, .video, \.reframed),
            self.note(.videoStrayBytes, .video, \.trimmed), self.note(.audioADTS, .audio, \.reframed),
            self.made(),
        ].compactMap(\.self)
    }

    private static let formWindow = 5
    /// Seconds in a row without a header; frames may come a moment before it.
    private static let headlessSeconds = 2
    /// From this share on nobody follows what is left.
    private static let badShare = 0.5

    /// The share of frames, 0 to 1; nil without any.
    private func share(_ kind: ArrivalSecond.Kind, _ count: (TrackSecond) -> Int) -> Double? {
        let seconds = self.last(Self.formWindow)
        let some = seconds.reduce(0) { $0 + count($1[kind]) }
        let all = seconds.reduce(0) { $0 + $1[kind].frames }
        return some > 0 && all > 0 ? min(1, Double(some) / Double(all)) : nil
    }

    private static func percent(_ share: Double) -> Double { max(0.1, (share * 1_000).rounded() / 10) }

    private func broken(_ kind: ArrivalSecond.Kind, _ code: HealthReason.Code) -> HealthReason? {
        guard let share = self.share(kind, \.flaws.broken) else { return nil }
        return HealthReason(code, share >= Self.badShare ? .bad : .degraded, Self.percent(share), expected: 0)
    }

    private func headless(_ kind: ArrivalSecond.Kind, _ code: HealthReason.Code) -> HealthReason? {
        let seconds = self.last(Self.headlessSeconds)
        guard seconds.count == Self.headlessSeconds, seconds.allSatisfy({ $0[kind].flaws.headless > 0 }) else { return nil }
        return HealthReason(code, .bad)
    }

    private func refused(_ kind: ArrivalSecond.Kind, _ code: HealthReason.Code) -> HealthReason? {
        // The reason that names the codec says the same.
        guard (kind == .video ? self.videoCodecReason() : self.audioCodecReason()) == nil else { return nil }
        guard let share = self.share(kind, { $0.refusal?.frames ?? 0 }) else { return nil }
        let cause = self.seconds.last { $0[kind].refusal != nil }?[kind].refusal?.cause
        return HealthReason(code, share >= Self.badShare ? .bad : .degraded, Self.percent(share), expected: 0, detail: cause)
    }

    private func note(_ code: HealthReason.Code, _ kind: ArrivalSecond.Kind, _ count: KeyPath<FrameFlaws, Int>) -> HealthReason? {
        self.share(kind) { $0.flaws[keyPath: count] }.map { HealthReason(code, .good, Self.percent($0), expected: 0) }
    }

    /// A header is made once, and stands for the whole push.
    private func made() -> HealthReason? {
        self.totals.headersMade > 0 ? HealthReason(.videoHeaderMade, .good) : nil
    }
}
