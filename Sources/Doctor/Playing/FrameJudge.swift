import CommandSupport
import Media
import NIOCore

/// Judges the messages that come back from the pushed clip, one by one. A plain value.
struct FrameJudge {
    private let clip: DoctorClip
    private(set) var pictures = 0
    private(set) var tones = 0
    private var headers: Set<Frame.Kind> = []
    private var lastMs: [Frame.Kind: Int64] = [:]
    private(set) var firstMs: Int64?
    private(set) var lastOfAllMs: Int64 = 0
    /// The first fault; later messages are not judged.
    private(set) var problem: String?

    /// Two seconds and a bit: two keyframes at least.
    private static let enoughPictures = 22
    private static let enoughTones = 90

    init(_ clip: DoctorClip) { self.clip = clip }

    var isDone: Bool { self.problem != nil || (self.pictures >= Self.enoughPictures && self.tones >= Self.enoughTones) }

    /// `ms` is the message's received time, unwrapped.
    mutating func receive(_ kind: Frame.Kind, ms: Int64, _ payload: ByteBuffer) {
        guard self.problem == nil, kind != .data, !Self.isFiller(kind, payload) else { return }
        let header = kind == .video ? self.clip.videoHeader : self.clip.audioHeader
        if payload == header {
            self.headers.insert(kind)
            return
        }
        guard self.headers.contains(kind) else {
            self.problem = "\(Self.word(kind)) came before its codec header"
            return
        }
        guard self.clip.coded.contains(payload) else {
            self.problem = "\(Self.word(kind)) of \(payload.readableBytes) bytes that were not pushed"
            return
        }
        if let last = self.lastMs[kind], ms < last {
            self.problem = "the time of \(Self.word(kind)) went back from \(last) to \(ms) ms"
            return
        }
        if kind == .video, self.pictures == 0, payload != self.clip.pictures[0] {
            self.problem = "the first picture is no keyframe"
            return
        }
        self.lastMs[kind] = ms
        self.firstMs = min(self.firstMs ?? ms, ms)
        self.lastOfAllMs = max(self.lastOfAllMs, ms)
        if kind == .video { self.pictures += 1 } else { self.tones += 1 }
    }

    /// What the server sends when the push pauses, as on a machine that stands still: a video command frame, which players skip.
    private static func isFiller(_ kind: Frame.Kind, _ payload: ByteBuffer) -> Bool {
        kind == .video && (payload.readableBytesView.first ?? 0) & 0xF0 == 0x50
    }

    private static func word(_ kind: Frame.Kind) -> String { kind == .video ? "video" : "audio" }

    /// The result; `why` is the reason why no more messages came, if there is one.
    func verdict(_ name: String, _ why: String?, advice: String) -> DoctorResult {
        let seen = "\(self.pictures) pictures and \(self.tones) pieces of sound"
        if let problem = self.problem { return .fail(name, "\(problem), after \(seen)", "please report it, with --json") }
        guard self.isDone else {
            let words = self.pictures + self.tones == 0 ? "nothing came" : "only \(seen) came"
            return .fail(name, why.map { "\(words): \($0)" } ?? words, advice)
        }
        let seconds = Double(self.lastOfAllMs - (self.firstMs ?? 0)) / 1_000
        return .pass(name, "\(seen) as pushed, \(HumanUnits.decimal(seconds, digits: 1) ?? "?") s")
    }
}
