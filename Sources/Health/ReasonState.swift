/// A reason whose rule holds, or held a moment ago. A value; it smooths rules that come and go.
struct ReasonState: Sendable {
    let code: HealthReason.Code
    /// Nil until the rule has held long enough.
    private(set) var shown: HealthReason?
    private var held = 0
    private var missed = 0
    /// Seconds for which the rule has been milder than `shown`.
    private var milder = 0

    init(code: HealthReason.Code) { self.code = code }

    var isOver: Bool { self.shown == nil && self.held == 0 }

    /// Call once a second with the rule's result; nil: it does not hold.
    mutating func note(_ reason: HealthReason?) {
        guard let reason else {
            self.held = 0
            self.missed += 1
            if self.missed >= self.code.patience.endsAfter { self.shown = nil }
            return
        }
        self.held += 1
        self.missed = 0
        guard let shown = self.shown else {
            if self.held >= self.code.patience.beginsAfter { self.shown = reason }
            return
        }
        // A reason gets worse at once, and better only after a while.
        self.milder = reason.severity < shown.severity ? self.milder + 1 : 0
        if self.milder > 0, self.milder < self.code.patience.endsAfter {
            self.shown = HealthReason(reason.code, shown.severity, reason.value, expected: reason.expected, detail: reason.detail)
        } else {
            self.milder = 0
            self.shown = reason
        }
    }
}

/// How many seconds in a row a rule must hold before its reason is shown, and must not hold before the reason is removed.
struct Patience: Sendable, Equatable {
    let beginsAfter: Int
    let endsAfter: Int
}

extension HealthReason.Code {
    var patience: Patience {
        switch self {
        // These rules look back over many seconds already.
        case .avStartGap, .timestampJump, .keyframeIntervalLong, .keyframeIntervalUnbounded, .keyframeMissing, .videoCodecNotCarried,
            .audioCodecNotCarried, .audioMissing, .videoMissing, .audioStopped, .videoStopped, .audioSilent:
            Patience(beginsAfter: 1, endsAfter: 3)
        case .mediaBehindClock, .uplinkStalls: Patience(beginsAfter: 1, endsAfter: 8)
        case .uplinkJitter, .avSkew, .fpsLow, .bFrames: Patience(beginsAfter: 2, endsAfter: 8)
        case .videoBitrateMismatch, .audioBitrateMismatch: Patience(beginsAfter: 3, endsAfter: 10)
        case .keyframeFlagsWrong, .videoStartCodes, .videoStrayBytes, .videoHeaderMade, .videoBroken, .videoHeaderMissing, .audioADTS,
            .audioBroken, .audioHeaderMissing, .videoRefused, .audioRefused:
            Patience(beginsAfter: 1, endsAfter: 3)
        }
    }
}
