import HLS
import HLSCheck
import NIOCore
import Testing

/// The random life of a window: a publisher that changes, pauses and fails, and clients that poll, wait and fetch.
///
/// Every answer of the window is checked against all earlier ones.
struct WindowLife {
    /// The frames that a publisher makes.
    private struct Habits {
        var frameMicros: Int64
        var group: Int
        var hasVideo: Bool
        /// Whether frames vary in length, as from a camera in the dark. Parts cannot reach 85 % of the part target then.
        var isUneven: Bool
    }

    private var random: Seeded
    private(set) var window: MediaWindow
    private let keepsTimes: Bool
    private var feeder = FrameFeeder()
    private var habits: Habits
    private var frame = 0
    private var nowMs: Int64 = 1_000
    private var dateMs: Int64 = 1_795_279_542_000
    private var formats = 0
    private var parts = 0

    private var whole = PlaylistHistory()
    private var plain = PlaylistHistory()
    private var deltas = PlaylistHistory()
    /// The text of every resource ever found, by name.
    private var media: [String: String] = [:]
    private var names: [String] = []
    /// The names in the last checked playlist; `listedMs` is the time of the check.
    private var listed: Set<String> = []
    private var listedMs: Int64 = 0
    private var listedTarget = 0
    /// The time until which names that left the playlist must stay available.
    private var unlisted: [String: Int64] = [:]
    private var hinted: Set<String> = []
    private var waiting: [WaitPoint] = []
    /// The number of target raises that each playlist has shown.
    private var raisesShown: [String: Int] = [:]
    private var checkedVersion = -1
    /// The first failure.
    private(set) var problem: String?
    /// The events that occurred, so that a test can check its coverage.
    private(set) var seen: Set<String> = []

    init(seed: UInt64) throws {
        var random = Seeded(seed: seed)
        let segmentMs = [500, 1_000, 1_000, 2_000].randomElement(using: &random) ?? 1_000
        let isTight = seed % 16 < 4
        let configuration = MediaWindow.Configuration(
            container: random.chance(0.8) ? .fragmentedMP4 : .mpegTS, isLowLatency: random.chance(0.85), segmentMs: segmentMs,
            maxSegmentMs: segmentMs * Int.random(in: 1...4, using: &random),
            windowMs: segmentMs * ([3, 6, 20].randomElement(using: &random) ?? 6), maxBytes: isTight ? 1 << 20 : 64 << 20,
            lingerMs: Int.random(in: 0...5_000, using: &random))
        self.window = try MediaWindow(
            epoch: "e\(seed)", firstSequence: Int.random(in: 0...2_000_000_000, using: &random), configuration: configuration)
        self.keepsTimes = !isTight
        self.habits = Self.habits(&random)
        self.random = random
    }

    private static func habits(_ random: inout Seeded) -> Habits {
        let hasVideo = random.chance(0.8)
        let rates: [Double] = [1, 2.5, 5, 15, 24, 25, 29.97, 30, 60]
        let rate = hasVideo ? rates.randomElement(using: &random) ?? 30 : 46.875
        return Habits(
            frameMicros: Int64(1_000_000 / rate), group: [1, 8, 15, 30, 60, 250].randomElement(using: &random) ?? 30, hasVideo: hasVideo,
            isUneven: random.chance(0.15))
    }

    mutating func run(events: Int) throws {
        try self.begin()
        for _ in 0..<events where self.problem == nil && !self.window.hasEnded {
            try self.step()
            if self.window.version != self.checkedVersion { self.check() }
            // Now and then no client asks for a while.
            if self.random.chance(0.02) {
                for _ in 0..<Int.random(in: 0..<40, using: &self.random) where !self.window.hasEnded { try self.step() }
            }
        }
    }

    private mutating func begin() throws {
        if self.formats == 0 || self.random.chance(0.5) { self.formats += 1 }
        let isTS = self.window.configuration.container == .mpegTS
        var begun = format(isTS ? "" : "init \(self.formats)", hasVideo: self.habits.hasVideo)
        if isTS { begun.codecs += ".\(self.formats)" }
        if self.random.chance(0.2) { begun.keyframeIntervalMs = Int(self.habits.frameMicros) * self.habits.group / 1_000 }
        self.frame = 0
        // After some interruptions the media's times go on.
        try self.window.begin(begun, goesOn: self.random.chance(0.3), nowMs: self.nowMs)
    }

    private mutating func step() throws {
        switch Double.random(in: 0..<1, using: &self.random) {
        case ..<0.002:
            try self.flush()
            self.window.interrupt(nowMs: self.nowMs)
            self.seen.insert("interruption")
            self.pass(ms: Int64.random(in: 0...20_000, using: &self.random))
            if self.random.chance(0.3) { self.habits = Self.habits(&self.random) }
            self.check()
            try self.begin()
        case ..<0.003:
            try self.flush()
            if self.random.chance(0.5) { self.habits = Self.habits(&self.random) }
            try self.begin()
            self.seen.insert("format change")
        case ..<0.0035:
            try self.flush()
            self.window.end(nowMs: self.nowMs)
            self.seen.insert("end")
        case ..<0.005:
            self.habits.group = [4, 30, 100, 400].randomElement(using: &self.random) ?? 30
            self.seen.insert("group length")
        case ..<0.006:
            try self.addFrame(micros: Int64.random(in: 100_000...3_000_000, using: &self.random))
            self.seen.insert("long frame")
        default:
            var micros = self.habits.frameMicros
            if self.habits.isUneven { micros = Int64.random(in: micros / 2...micros * 2, using: &self.random) }
            try self.addFrame(micros: micros)
        }
    }

    private mutating func flush() throws {
        self.parts += 1
        try self.feeder.flush(into: &self.window, nowMs: self.nowMs, dateMs: self.dateMs, bytes: self.bytes())
    }

    private mutating func bytes() -> String {
        let name = "\(self.parts)."
        return self.keepsTimes ? name : name + String(repeating: "x", count: Int.random(in: 0...60_000, using: &self.random))
    }

    private mutating func addFrame(micros: Int64) throws {
        let isKey = !self.habits.hasVideo || self.frame % self.habits.group == 0
        self.frame += 1
        self.parts += 1
        // Times are whole milliseconds, as in RTMP.
        let end = (self.nowMs * 1_000 + micros) / 1_000
        let rounded = max((end - self.nowMs) * 1_000, 1_000)
        try self.feeder.add(
            micros: rounded, isKey: isKey, to: &self.window, nowMs: self.nowMs,
            dateMs: self.dateMs + Int64.random(in: -50...50, using: &self.random),
            bytes: self.bytes())
        self.pass(ms: rounded / 1_000)
    }

    private mutating func pass(ms: Int64) {
        self.nowMs += ms
        self.dateMs += ms
        if self.random.chance(0.1) { self.window.expire(nowMs: self.nowMs) }
    }

    private mutating func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
        if !holds, self.problem == nil { self.problem = what() }
    }

    // MARK: Invariants

    private mutating func check() {
        self.checkedVersion = self.window.version
        let statistics = self.window.statistics
        let held = self.window.heldBytes
        self.expect(held <= self.window.configuration.maxBytes, "\(held) bytes held")
        if self.keepsTimes { self.expect(statistics.starvedRemovals == 0, "starved") }
        if statistics.forcedCuts > 0 { self.seen.insert("forced cut") }
        if statistics.targetRaises > 0 { self.seen.insert("target raise") }
        if statistics.starvedRemovals > 0 { self.seen.insert("starvation") }
        guard self.window.isReady else { return }
        self.checkPlaylists(statistics)
        self.checkWaiting()
        self.checkMedia()
    }

    private mutating func checkPlaylists(_ statistics: MediaWindow.Statistics) {
        var allowed: Set<Rule> = []
        if self.habits.isUneven || self.seen.contains("long frame") || self.seen.contains("interruption")
            || self.seen.contains("format change")
        {
            // Uneven frames make uneven parts, and so may a new frame rate under the old part target.
            allowed.insert(.partDurationFloor)
        }
        if !self.keepsTimes { allowed.insert(.removedTooMuch) }
        if statistics.forcedCuts > 0 { allowed.formUnion([.segmentNotIndependent, .startNotIndependent]) }
        let wholeText = self.window.text()
        self.judge(self.whole.check(wholeText), allowed, "whole")
        let plainText = self.window.text(lowLatency: false)
        self.judge(self.plain.check(plainText), allowed, "plain")
        if self.random.chance(0.7) {
            let text = self.window.text(skips: true)
            if text.contains("EXT-X-SKIP") { self.seen.insert("delta") }
            let violations = self.deltas.check(text)
            if violations.contains(where: { $0.rule == .deltaWithoutBase }) {
                self.deltas = self.whole
                self.raisesShown["delta"] = self.raisesShown["whole"]
            } else {
                self.judge(violations, allowed, "delta")
                self.expect(
                    self.deltas.latest?.content == self.whole.latest?.content,
                    "the delta update makes another playlist\n\(text)\n\(wholeText)")
            }
        }
        if let text = self.window.multivariantPlaylist(mediaURI: "media.m3u8") {
            self.judge(checkMultivariantPlaylist(text), [], "multivariant")
            if text.contains("INDEPENDENT-SEGMENTS") {
                for segment in self.whole.latest?.segments ?? [] {
                    self.expect(segment.parts.first?.isIndependent ?? true, "segment \(segment.sequence) is not independent")
                }
            }
        } else {
            self.expect(false, "no multivariant playlist")
        }
        if self.whole.latest?.segments.contains(where: \.hasDiscontinuity) == true { self.seen.insert("discontinuity") }
        if self.whole.latest?.discontinuitySequence ?? 0 > self.plain.latest?.segments.first?.discontinuity ?? .max {
            self.expect(false, "discontinuity")
        }
    }

    private mutating func judge(_ violations: [Violation], _ allowed: Set<Rule>, _ which: String) {
        // Targets should not change during a playlist's life. The window counts each raise; a playlist may show it once.
        var allowed = allowed
        if violations.contains(where: { $0.rule == .targetDurationChanged || $0.rule == .headerChanged }) {
            let raises = self.window.statistics.targetRaises
            if raises > self.raisesShown[which, default: 0] { allowed.formUnion([.targetDurationChanged, .headerChanged]) }
            self.raisesShown[which] = raises
        }
        guard let violation = violations.first(where: { !allowed.contains($0.rule) }) else { return }
        let text = self.window.text(lowLatency: which != "plain")
        self.expect(false, "\(which): \(violation)\n\(text)")
    }

    /// Whether the current playlist has what `point` waits for, judged by its text alone.
    private func playlistHas(_ point: WaitPoint) -> Bool {
        guard let playlist = self.whole.latest else { return false }
        if playlist.hasEnded || playlist.lastSequence > point.sequence { return true }
        guard let part = point.part else { return playlist.lastSequence >= point.sequence }
        if let open = playlist.open, open.sequence == point.sequence { return open.parts.count > part }
        guard playlist.lastSequence == point.sequence else { return false }
        // Parts of an ended segment are not always listed. A part beyond its last means the next segment.
        return (playlist.segments.last?.parts.count ?? 0) > part || playlist.open != nil
    }

    private mutating func checkWaiting() {
        for point in self.waiting where self.window.isSatisfied(point) != self.playlistHas(point) {
            // A segment still has parts that it no longer lists.
            if point.sequence == self.whole.latest?.lastSequence, self.whole.latest?.segments.last?.parts.isEmpty == true { continue }
            let text = self.window.text()
            self.expect(false, "\(point): not so\n\(text)")
        }
        let window = self.window
        self.waiting.removeAll { window.isSatisfied($0) }
        guard let playlist = self.whole.latest, self.window.configuration.isLowLatency, self.waiting.count < 20 else { return }
        let ahead = Int.random(in: -1...3, using: &self.random)
        let part: Int? = self.random.chance(0.7) ? Int.random(in: 0...20, using: &self.random) : nil
        guard
            let request = try? PlaylistRequest.parse(
                msn: String(max(playlist.lastSequence + ahead, 0)), part: part.map { String($0) }, skip: nil)
        else { return self.expect(false, "a request was refused") }
        switch self.window.answer(request) {
        case .wait(let point):
            self.waiting.append(point)
            self.seen.insert("wait")
            self.expect(!self.window.isSatisfied(point) && ahead > 0 || part != nil, "a wait for \(point), which is there")
        case .badRequest:
            self.expect(ahead > 2 || (part ?? 0) > 2, "refused \(request)")
            self.seen.insert("bad request")
        case .now: self.expect(ahead <= 0 || part != nil || playlist.hasEnded, "no wait for \(request)")
        case .unavailable: self.expect(false, "unavailable")
        }
    }

    private mutating func someNames() -> [String] {
        (0..<min(8, self.names.count)).map { _ in self.names[Int.random(in: self.names.indices, using: &self.random)] }
    }

    private mutating func checkMedia() {
        guard let playlist = self.whole.latest else { return }
        var listed: Set<String> = []
        for uri in playlist.uris {
            listed.insert(uri)
            guard let text = self.window.resource(named: uri).text else { return self.expect(false, "\(uri) is listed and not there") }
            if let earlier = self.media.updateValue(text, forKey: uri) {
                self.expect(earlier == text, "\(uri) has changed")
            } else {
                self.names.append(uri)
            }
        }
        for segment in playlist.segments where !segment.parts.isEmpty {
            self.expect(
                segment.parts.map { self.media[$0.uri] ?? "" }.joined() == self.media[segment.uri], "\(segment.uri) is not its parts")
        }
        for hint in playlist.hints {
            self.expect(self.window.resource(named: hint.uri) == .pending, "\(hint.uri) is hinted and not pending")
            self.hinted.insert(hint.uri)
        }
        // §6.2.2: a part stays available for three target durations after it was last listed.
        for uri in self.listed.subtracting(listed) { self.unlisted[uri] = self.listedMs + Int64(self.listedTarget) * 3_000 }
        for uri in listed { self.unlisted[uri] = nil }
        self.listed = listed
        self.listedMs = self.nowMs
        self.listedTarget = self.window.targetDuration
        for (uri, untilMs) in self.unlisted {
            if self.nowMs >= untilMs {
                self.unlisted[uri] = nil
            } else if self.keepsTimes {
                self.expect(self.window.resource(named: uri).text == self.media[uri], "\(uri) is gone too soon")
                self.seen.insert("kept")
            }
        }
        // Expired names stay gone and are never reused. Checks a sample of all names.
        for uri in self.someNames() where !listed.contains(uri) && self.unlisted[uri] == nil {
            switch self.window.resource(named: uri) {
            case .found(let resource):
                self.expect(resource.pieces.map { String(buffer: $0) }.joined() == self.media[uri], "\(uri) has changed")
            case .gone: self.seen.insert("gone")
            case .pending, .unknown: self.expect(false, "\(uri) was there, and is unheard of")
            }
        }
    }
}
