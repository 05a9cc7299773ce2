import Relay
import Support

/// The figures of the present streams, between two samples. A value without a clock: `nowMs` is a steady clock's.
///
/// A stream's total of bytes is the sum of its finished sessions and its present ones so far. Samples report how much the total has grown. A session
/// that ends during a sample is in neither part for a moment; the next sample makes up for it.
struct FigureTable: Sendable {
    /// A stream's present viewers, and the bytes of its present connections so far.
    struct Present: Sendable, Equatable {
        var viewers = 0
        var bytesIn: UInt64 = 0
        var bytesOut: UInt64 = 0
        /// Since the last sample, unlike the other properties.
        var arrival = StreamHistory.Sum()
    }

    private struct Entry {
        var viewers = 0
        /// Time since which the number of viewers has been constant.
        var sinceMs: Int64
        var viewerMs: Int64 = 0
        var peak = 0
        var plays: UInt64 = 0
        /// Bytes of finished sessions.
        var ended = Present()
        /// Bytes of finished sessions when the sample began.
        var settled = Present()
        /// The total at the last sample.
        var reported = Present()
        /// The room of its last publisher.
        var room: String?
        var seenMs: Int64

        init(nowMs: Int64) {
            self.sinceMs = nowMs
            self.seenMs = nowMs
        }

        mutating func count(_ viewers: Int, nowMs: Int64) {
            self.viewerMs += Int64(self.viewers) * max(0, nowMs - self.sinceMs)
            self.sinceMs = nowMs
            self.viewers = max(0, viewers)
            self.peak = max(self.peak, self.viewers)
        }

        /// Returns the growth since the last sample.
        mutating func sample(_ present: Present, nowMs: Int64) -> Figures {
            self.count(present.viewers, nowMs: nowMs)
            // Never less than before: apparently missing bytes are in a session that is just ending.
            let bytesIn = max(self.reported.bytesIn, self.settled.bytesIn &+ present.bytesIn)
            let bytesOut = max(self.reported.bytesOut, self.settled.bytesOut &+ present.bytesOut)
            let figures = Figures(
                bytesIn: bytesIn - self.reported.bytesIn, bytesOut: bytesOut - self.reported.bytesOut, plays: self.plays,
                viewerMs: self.viewerMs, peak: self.peak, arrival: present.arrival)
            self.reported.bytesIn = bytesIn
            self.reported.bytesOut = bytesOut
            self.viewerMs = 0
            self.plays = 0
            self.peak = self.viewers
            return figures
        }

        /// Whether the last sample reported everything.
        var isSettled: Bool {
            self.viewers == 0 && self.plays == 0 && self.reported.bytesIn >= self.ended.bytesIn
                && self.reported.bytesOut >= self.ended.bytesOut
        }
    }

    private var entries: NameTable<Entry> = [:]
    private var connections: [String: Entry] = [:]
    private var everything: Entry
    /// Streams beyond the limit, whose figures are in no row.
    private(set) var overflows: UInt64 = 0

    /// Streams counted at a time. Each takes about 300 bytes.
    static let mostStreams = 20_000
    /// How long an unused stream is remembered, so that its last sessions can report.
    static let memoryMs: Int64 = 60_000

    init(nowMs: Int64) { self.everything = Entry(nowMs: nowMs) }

    var count: Int { self.entries.count }

    /// The room of the stream's last publisher, while it is remembered.
    func room(of path: String) -> String? { self.entries[path]?.room }

    mutating func published(_ path: String, room: String, nowMs: Int64) {
        self.change(path, nowMs) { $0.room = room }
    }

    mutating func playBegan(_ path: String, viewers: Int, nowMs: Int64) {
        self.everything.count(self.everything.viewers + 1, nowMs: nowMs)
        self.everything.plays += 1
        self.change(path, nowMs) { entry in
            entry.count(viewers, nowMs: nowMs)
            entry.plays += 1
        }
    }

    mutating func playEnded(_ path: String, viewers: Int, bytes: UInt64, nowMs: Int64) {
        self.everything.count(self.everything.viewers - 1, nowMs: nowMs)
        self.change(path, nowMs) { entry in
            entry.count(viewers, nowMs: nowMs)
            entry.ended.bytesOut &+= bytes
        }
    }

    mutating func pushEnded(_ path: String, bytes: UInt64, nowMs: Int64) {
        self.change(path, nowMs) { $0.ended.bytesIn &+= bytes }
    }

    private mutating func change(_ path: String, _ nowMs: Int64, _ body: (inout Entry) -> Void) {
        guard self.entries[path] != nil || self.entries.count < Self.mostStreams else {
            self.overflows += 1
            return
        }
        body(&self.entries[path, default: Entry(nowMs: nowMs)])
    }

    /// Call before reading the present connections: sessions that end from now on count in the next sample.
    mutating func beginSample() {
        for (path, entry) in self.entries { self.entries[path]?.settled = entry.ended }
    }

    /// Ends the sample with the present figures; returns the growth since the last one.
    mutating func endSample(
        _ streams: NameTable<Present>, connections: [String: Int], nowMs: Int64
    ) -> [(subject: FigureKey.Subject, figures: Figures)] {
        var rows: [(FigureKey.Subject, Figures)] = []
        var sum = Figures()
        for path in streams.keys where self.entries[path] == nil { self.change(path, nowMs) { _ in } }
        for path in Array(self.entries.keys) {
            guard var entry = self.entries[path] else { continue }
            let present = streams[path]
            if present != nil { entry.seenMs = nowMs }
            let figures = entry.sample(present ?? Present(), nowMs: nowMs)
            sum.add(figures)
            if !figures.isNothing { rows.append((.stream(path), figures)) }
            let isGone = present == nil && nowMs - entry.seenMs >= Self.memoryMs && entry.isSettled
            self.entries[path] = isGone ? nil : entry
        }
        let viewers = streams.values.reduce(0) { $0 + $1.viewers }
        let totals = self.everything.sample(Present(viewers: viewers), nowMs: nowMs)
        // The total peak is not the sum of the streams' peaks, and a play may be of a stream that is not counted.
        sum.peak = totals.peak
        sum.plays = totals.plays
        sum.viewerMs = totals.viewerMs
        // Frame rates have no meaning for all streams together.
        sum.arrival = StreamHistory.Sum()
        if !sum.isNothing { rows.append((.everything, sum)) }
        for word in Set(connections.keys).union(self.connections.keys) {
            let figures = self.connections[word, default: Entry(nowMs: nowMs)].sample(
                Present(viewers: connections[word] ?? 0), nowMs: nowMs)
            if !figures.isNothing { rows.append((.connections(word), figures)) }
        }
        return rows
    }
}
