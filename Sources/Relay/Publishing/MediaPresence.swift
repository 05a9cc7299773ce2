import Media

/// Decides which kinds of media a stream has, by its coded frames. A header alone is no track: browsers that get one wait for its media, and show
/// nothing of the other kind.
///
/// A value, owned by the stream's state; times are milliseconds of the server's monotonic clock. Per frame it only compares.
struct MediaPresence: Sendable {
    /// Times of one kind's coded frames from the present publisher.
    private struct Kind: Sendable {
        var firstMs: Int64?
        var lastMs: Int64 = 0
        var isAbsent = false
    }

    enum Change { case unchanged, otherIsAbsent, isBack }

    private var video = Kind()
    private var audio = Kind()

    /// A kind that has not come this long after the other began is no track yet. HLS waits as long.
    static let beginsWithinMs: Int64 = 2_000
    /// Sound that has not come for this long, while pictures go on, is no track any more. Pictures may be as rare on purpose, and joiners begin with the
    /// last of them.
    static let soundEndsAfterMs: Int64 = 10_000

    /// Whether joiners get no header of this kind.
    func isAbsent(_ kind: Frame.Kind) -> Bool {
        switch kind {
        case .video: self.video.isAbsent
        case .audio: self.audio.isAbsent
        case .data: false
        }
    }

    /// Another publisher has come, whose kinds are unknown.
    mutating func publisherChanged() { self = MediaPresence() }

    /// Records a coded frame that players may be able to decode.
    mutating func came(_ kind: Frame.Kind, nowMs: Int64) -> Change {
        switch kind {
        case .video:
            if let change = Self.note(&self.video, nowMs: nowMs) { return change }
            guard !self.audio.isAbsent, let firstMs = self.video.firstMs else { return .unchanged }
            let isLate = self.audio.firstMs == nil && nowMs - firstMs >= Self.beginsWithinMs
            let isOver = self.audio.firstMs != nil && nowMs - self.audio.lastMs >= Self.soundEndsAfterMs
            guard isLate || isOver else { return .unchanged }
            self.audio.isAbsent = true
        case .audio:
            if let change = Self.note(&self.audio, nowMs: nowMs) { return change }
            guard !self.video.isAbsent, self.video.firstMs == nil, let firstMs = self.audio.firstMs,
                nowMs - firstMs >= Self.beginsWithinMs
            else { return .unchanged }
            self.video.isAbsent = true
        case .data: return .unchanged
        }
        return .otherIsAbsent
    }

    private static func note(_ kind: inout Kind, nowMs: Int64) -> Change? {
        if kind.firstMs == nil { kind.firstMs = nowMs }
        kind.lastMs = nowMs
        guard kind.isAbsent else { return nil }
        kind.isAbsent = false
        return .isBack
    }
}
