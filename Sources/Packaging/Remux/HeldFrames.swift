import Media
import NIOCore

/// Coded frames that wait until their tracks are known. Bounded: at the limit all are dropped. A plain value.
struct HeldFrames {
    private(set) var frames: [Frame] = []
    private var bytes = 0
    /// Index of the first keyframe, where a run with pictures can begin.
    private(set) var firstKeyframe: Int?
    /// Milliseconds of the stream's timeline.
    private(set) var newestPictureMs: Int64?
    private var newestSoundMs: Int64?

    private static let limit = (frames: 4_000, bytes: 24 << 20)
    /// Sound further than this from the pictures belongs to another timeline. Milliseconds.
    private static let nearMs: Int64 = 10_000

    /// Milliseconds of the stream's timeline.
    var firstMs: Int64? { self.frames.first?.timestamp }

    func hasSound(near ms: Int64) -> Bool { self.newestSoundMs.map { abs(ms - $0) <= Self.nearMs } ?? false }

    mutating func add(_ frame: Frame) {
        self.bytes += frame.payload.readableBytes
        guard self.frames.count < Self.limit.frames, self.bytes <= Self.limit.bytes else {
            self = HeldFrames()
            return
        }
        if frame.kind == .video { self.newestPictureMs = frame.timestamp } else { self.newestSoundMs = frame.timestamp }
        if self.firstKeyframe == nil, frame.isKeyframe { self.firstKeyframe = self.frames.count }
        self.frames.append(frame)
    }

    /// Drops the frames before `index`, where the run begins; with `keepsSound` only the pictures.
    mutating func removeFirst(_ index: Int, keepsSound: Bool) {
        let sounds = keepsSound ? self.frames[..<index].filter { $0.kind == .audio } : []
        self.frames.replaceSubrange(..<index, with: sounds)
        let shift = index - sounds.count
        self.firstKeyframe = self.firstKeyframe.flatMap { $0 >= index ? $0 - shift : nil }
    }
}
