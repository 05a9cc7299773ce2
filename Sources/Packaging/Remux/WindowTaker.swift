import FFmpeg
package import HLS
import Media
import NIOCore
import ServerConfiguration

/// Adds a stream's pieces to the HLS window, which also decides where they end. Owned by one ``StreamRemuxer``.
final class WindowTaker: FragmentSink {
    let shared: SharedWindow
    /// The start for new viewers of pieces: the newest beginning, and everything since the last keyframe.
    private(set) var beginning: FragmentPackager.Beginning?
    private(set) var sinceKeyframe: [Fragment] = []
    var pieces: FragmentStream?
    /// The window's last error.
    private(set) var problem: String?
    /// Limit of ``sinceKeyframe``, as for the pictures cached for RTMP. Beyond it, new viewers begin at the next keyframe.
    private let cacheLimit: (bytes: Int, ms: Int64)
    private var cachedBytes = 0
    /// The window rejected a part. The next one must begin with a keyframe, after a discontinuity.
    private var lacksPart = false
    /// The piece that ends now is its segment's last.
    private var endsSegment = false
    private var format: MediaFormat?
    /// Milliseconds between the publisher's last keyframes, if known. With it, target durations are right from the start.
    var keyframeIntervalMs: Int64?

    init(_ window: MediaWindow, cacheLimit: (bytes: Int, ms: Int64)) {
        self.shared = SharedWindow(window)
        self.cacheLimit = cacheLimit
    }

    func isDue(pendingMs: Int64, frameMs: Int64, isKeyframe: Bool) -> Bool {
        let (endsSegment, closesPart) = self.shared.read { window in
            (
                isKeyframe && window.startsSegment(pendingMicros: pendingMs * 1_000),
                window.closesPart(pendingMicros: pendingMs * 1_000, frameMicros: frameMs * 1_000)
            )
        }
        self.endsSegment = endsSegment
        return endsSegment || closesPart
    }

    func due(frameMs: Int64) -> (pendingMs: Int64, keyframeMs: Int64) {
        self.shared.read { ($0.partDueMicros(frameMicros: frameMs * 1_000) / 1_000, $0.segmentDueMicros / 1_000) }
    }

    var longestMs: Int64? { self.shared.read { $0.longestPartMicros.map { $0 / 1_000 } } }

    func began(_ beginning: FragmentPackager.Beginning, nowMs: Int64) {
        self.beginning = beginning
        self.forgetPieces()
        let picture = beginning.tracks.first { $0.kind == .video }
        let format = MediaFormat(
            initialization: beginning.initialization, codecs: beginning.codecs, hasVideo: picture != nil, width: picture?.width,
            height: picture?.height, frameRate: picture?.frameRate, keyframeIntervalMs: self.keyframeIntervalMs.flatMap { Int(exactly: $0) }
        )
        self.format = format
        // A new muxer of MPEG-TS begins its packets' continuity counters anew (ISO/IEC 13818-1 §2.4.3.3), which is a discontinuity by itself.
        let goesOn = beginning.goesOn && !self.lacksPart && beginning.initialization.readableBytes > 0
        self.lacksPart = false
        _ = self.change { (window: inout MediaWindow) throws(HLSError) in try window.begin(format, goesOn: goesOn, nowMs: nowMs) }
        self.pieces?.begin(beginning.initialization, mimeType: beginning.mimeType)
    }

    func made(_ piece: FragmentPackager.Piece, nowMs: Int64) {
        let fragment = piece.fragment
        self.keep(fragment)
        let part = MediaPart(
            bytes: fragment.bytes, durationMicros: max(1, fragment.durationMs) * 1_000, isIndependent: piece.holdsKeyframe,
            beginsWithKeyframe: fragment.isIndependent, holdsPictures: fragment.holdsPictures, programDateTimeMs: piece.wallMs,
            isCutShort: piece.isCutShort)
        self.pieces?.publish(fragment)
        if self.lacksPart {
            guard fragment.isIndependent, let format = self.format else { return }
            self.lacksPart = false
            _ = self.change { (window: inout MediaWindow) throws(HLSError) in try window.begin(format, nowMs: nowMs) }
        }
        if !self.change({ (window: inout MediaWindow) throws(HLSError) in try window.append(part, nowMs: nowMs) }) {
            self.lacksPart = true
            self.interrupted(nowMs: nowMs)
        } else if self.endsSegment {
            self.shared.change { $0.completeSegment(nowMs: nowMs) }
        }
        self.endsSegment = false
    }

    private func keep(_ fragment: Fragment) {
        if fragment.isIndependent { self.forgetPieces() }
        // A fragment without its keyframe is no place to begin.
        guard fragment.isIndependent || !self.sinceKeyframe.isEmpty else { return }
        self.sinceKeyframe.append(fragment)
        self.cachedBytes += fragment.bytes.readableBytes
        let ms = fragment.endMs - (self.sinceKeyframe.first?.startMs ?? fragment.startMs)
        if self.cachedBytes > self.cacheLimit.bytes || ms > self.cacheLimit.ms { self.forgetPieces() }
    }

    /// Nothing has come for a while. Sound alone can begin anywhere, so new viewers begin after the pause: MediaSource stops before a hole.
    func stalled() {
        guard self.beginning?.tracks.contains(where: { $0.kind == .video }) == false else { return }
        self.forgetPieces()
        self.pieces?.dropCached()
    }

    private func forgetPieces() {
        self.sinceKeyframe = []
        self.cachedBytes = 0
    }

    /// Lists the media so far, for a player that waits for the first playlist.
    func startEarly(nowMs: Int64) { self.shared.change { _ = $0.startEarly(nowMs: nowMs) } }

    func interrupted(nowMs: Int64) { self.shared.change { $0.interrupt(nowMs: nowMs) } }
    func end(nowMs: Int64) { self.shared.change { $0.end(nowMs: nowMs) } }
    func expire(nowMs: Int64) { self.shared.change { $0.expire(nowMs: nowMs) } }

    /// Drops the whole window at once.
    func purge(_ empty: MediaWindow) {
        self.shared.change { $0 = empty }
        self.forgetPieces()
    }

    /// Applies a change; returns false if the window rejects it.
    private func change(_ body: (inout MediaWindow) throws(HLSError) -> Void) -> Bool {
        do throws(HLSError) {
            try self.shared.change(body)
            return true
        } catch {
            self.problem = "\(error)"
            return false
        }
    }
}

extension ServerConfig.HLS {
    package var window: MediaWindow.Configuration {
        var window = MediaWindow.Configuration()
        window.container = self.container == .ts ? .mpegTS : .fragmentedMP4
        window.isLowLatency = self.lowLatency
        window.partMs = Int(self.partMs)
        window.segmentMs = Int(self.segmentMs)
        window.windowMs = Int(self.windowMs)
        window.maxBytes = self.maxBytes
        return window
    }
}
