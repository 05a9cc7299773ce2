import HTTPAPI
import Relay
import Rooms
import Statistics
import Streaming
import Support

/// The state of the statistics, included in all answers with figures.
struct StatsCoverage: Sendable {
    let lost: UInt64
    let isPaused: Bool

    init(_ statistics: Statistics) {
        self.lost = statistics.lost
        self.isPaused = statistics.store.problem != nil
    }

    static func fields<Answer: Sendable>(_ get: @escaping @Sendable (Answer) -> StatsCoverage) -> [Field<Answer>] {
        [
            .field("lost", .count, "Rows lost since the server's start, because they could not be written in time.") { get($0).lost },
            .field("isPaused", .flag, "Whether the statistics cannot be written at the moment; what comes waits in memory, within bounds.")
            {
                get($0).isPaused
            },
        ]
    }
}

/// Figures of a time, with its length for averages.
struct FiguresPart: Sendable {
    let atMs: Int64
    /// The elapsed part of the step.
    let lengthMs: Int64
    let figures: Figures

    /// `endMs`: the end of the step.
    init(_ figures: Figures, atMs: Int64, endMs: Int64, nowMs: Int64) {
        self.figures = figures
        self.atMs = atMs
        self.lengthMs = max(1, min(endMs, nowMs) - atMs)
    }

    /// With two decimals.
    var average: Double { (Double(self.figures.viewerMs) / Double(self.lengthMs) * 100).rounded() / 100 }
    var framesPerSecond: Double? { self.perSecond(self.figures.arrival.framesPerSecond) }
    var arrivalJitterMs: Double? { self.perSecond(self.figures.arrival.arrivalJitterMs) }

    var keyframeIntervalMs: Int64? {
        let longest = self.figures.arrival.longestKeyframeIntervalMs
        return longest > 0 ? longest : nil
    }

    /// The per-second average of a sum over a push's seconds, with one decimal.
    private func perSecond(_ sum: Double) -> Double? {
        let seconds = self.figures.arrival.seconds
        return seconds > 0 ? (sum / Double(seconds) * 10).rounded() / 10 : nil
    }

    static func fields<Answer: Sendable>(_ get: @escaping @Sendable (Answer) -> FiguresPart) -> [Field<Answer>] {
        [
            .field("bytesIn", .count, "Bytes of media received.") { get($0).figures.bytesIn },
            .field("bytesOut", .count, "Bytes sent to viewers.") { get($0).figures.bytesOut },
            .field("plays", .count, "Plays that began.") { get($0).figures.plays },
            .field("viewersAverage", .number, "Viewers on average.") { get($0).average },
            .field("viewersPeak", .count, "The most viewers at any one time.") { get($0).figures.peak },
            .field("fps", .nullable(.number), "A stream's frames per second, on average while it was pushed; null without a push.") {
                get($0).framesPerSecond
            },
            .field("arrivalJitterMs", .nullable(.number), "A stream's arrival jitter, on average while it was pushed; null without a push.")
            {
                get($0).arrivalJitterMs
            },
            .field("keyframeIntervalMs", .nullable(.count), "The longest time between two keyframes; null when none is known.") {
                get($0).keyframeIntervalMs
            },
        ]
    }
}

/// A series of steps, and their sum.
struct SeriesAnswer: Sendable {
    let window: StatisticsWindow
    let coverage: StatsCoverage
    let totals: FiguresPart
    let connections: [ConnectionsPart]
    let list: [FiguresPart]

    struct ConnectionsPart: Sendable {
        let transport: String
        let part: FiguresPart
    }

    init(_ points: [StatisticsPoint], _ connections: [SubjectFigures], _ window: StatisticsWindow, _ statistics: Statistics) {
        let nowMs = statistics.nowMs
        self.window = window
        self.coverage = StatsCoverage(statistics)
        var sum = Figures()
        for point in points { sum.add(point.figures) }
        self.totals = FiguresPart(sum, atMs: window.fromMs, endMs: window.toMs, nowMs: nowMs)
        self.connections = connections.map {
            ConnectionsPart(
                transport: $0.subject, part: FiguresPart($0.figures, atMs: window.fromMs, endMs: window.toMs, nowMs: nowMs))
        }
        self.list = points.map { FiguresPart($0.figures, atMs: $0.atMs, endMs: $0.atMs + window.stepMs, nowMs: nowMs) }
    }

    static let outputType = OutputType<SeriesAnswer>.object("Statistics", Self.times + Self.coverage + Self.parts)

    private static let times: [Field<SeriesAnswer>] = [
        .field("from", .instant, "The beginning, in whole steps.", \.window.fromMs),
        .field("to", .instant, "The end, in whole steps.", \.window.toMs),
        .field("step", .seconds, "Seconds of a step.", \.window.stepMs),
    ]
    private static let coverage: [Field<SeriesAnswer>] = StatsCoverage.fields { $0.coverage }
    private static let parts: [Field<SeriesAnswer>] = [
        .field("totals", Self.sum, "The figures of the whole time.", \.totals),
        .field("connections", .list(Self.connection), "Connections by protocol over the whole time; empty for one stream.", \.connections),
        .field("list", .list(Self.step), "The steps in which there was anything, oldest first.", \.list),
    ]

    private static let figures: [Field<FiguresPart>] = FiguresPart.fields { $0 }
    private static let start: [Field<FiguresPart>] = [.field("at", .instant, "The step's beginning.", \.atMs)]
    private static let sum = OutputType<FiguresPart>.object("StatisticsSum", Self.figures)
    private static let step = OutputType<FiguresPart>.object("StatisticsStep", Self.start + Self.figures)

    private static let connection = OutputType<ConnectionsPart>.object(
        "StatisticsConnections",
        [
            .field("transport", .text, "The protocol.", \.transport),
            .field("average", .number, "Connections on average.", \.part.average),
            .field("peak", .count, "The most connections at any one sample; they are ten seconds apart.", \.part.figures.peak),
        ])
}

/// Streams with their figures over a time range.
struct StreamFiguresAnswer: Sendable {
    let window: StatisticsWindow
    let coverage: StatsCoverage
    let total: Int
    let next: Int?
    let list: [Entry]

    struct Entry: Sendable {
        let path: StreamPath
        let part: FiguresPart
        var viewerSeconds: Int64 { self.part.figures.viewerMs / 1_000 }
    }

    static let outputType = OutputType<StreamFiguresAnswer>.object("StatisticsStreams", Self.times + Self.coverage + Self.parts)

    private static let times: [Field<StreamFiguresAnswer>] = [
        .field("from", .instant, "The beginning, in whole minutes or ten minutes.", \.window.fromMs),
        .field("to", .instant, "The end.", \.window.toMs),
    ]
    private static let coverage: [Field<StreamFiguresAnswer>] = StatsCoverage.fields { $0.coverage }
    private static let parts: [Field<StreamFiguresAnswer>] = [
        .field("total", .count, "The number of streams on all pages.", \.total),
        .field("next", .nullable(.count), "Pass it as `after` to get the next page; null on the last page.", \.next),
        .field("list", .list(Self.entry), "The streams of this page, the largest first.", \.list),
    ]

    private static let entry = OutputType<Entry>.object("StatisticsStream", Self.name + Self.figures + Self.watched)
    private static let name: [Field<Entry>] = [
        .field("app", .text, "The app.", \.path.app), .field("name", .text, "The stream's name under the app.", \.path.name),
    ]
    private static let figures: [Field<Entry>] = FiguresPart.fields { $0.part }
    private static let watched: [Field<Entry>] = [
        .field("viewerSeconds", .count, "The sum of all viewers' times, in seconds.", \.viewerSeconds)
    ]
}

/// A page of finished sessions.
struct FinishedAnswer<Session: Sendable & Equatable>: Sendable {
    let coverage: StatsCoverage
    let next: Int64?
    let list: [Numbered<Finished<Session>>]

    static func outputType(_ name: String, _ entry: OutputType<Numbered<Finished<Session>>>) -> OutputType<Self> {
        let coverage: [Field<Self>] = StatsCoverage.fields { $0.coverage }
        let page: [Field<Self>] = [
            .field("next", .nullable(.count), "Pass it as `before` to get the next page; null at the end.", \.next),
            .field("list", .list(entry), "Newest first.", \.list),
        ]
        return .object(name, coverage + page)
    }
}

enum FinishedAnswers {
    static let plays = FinishedAnswer<FinishedPlay>.outputType("FinishedPlays", Self.play)
    static let pushes = FinishedAnswer<FinishedPush>.outputType("FinishedPushes", Self.push)

    private typealias Play = Numbered<Finished<FinishedPlay>>
    private typealias Push = Numbered<Finished<FinishedPush>>

    /// The parts of "app/name".
    private static func parts(_ path: String) -> StreamPath { StreamPath(path) ?? StreamPath(app: "", name: path) }

    private static let play = OutputType<Play>.object(
        "FinishedPlay",
        [
            .field("playId", .count, "The play's number; it grows.", \.id),
            .field("app", .text, "The app.") { Self.parts($0.value.session.path).app },
            .field("name", .text, "The stream's name under the app.") { Self.parts($0.value.session.path).name },
            .field("roomId", .nullable(.text), "The stream's room, if known.", \.value.session.room),
            .field("userId", .nullable(.text), "The viewer, if the credential or hook names one.", \.value.session.user),
            .field("sessionId", .count, "The connection's number; it begins anew with the server.", \.value.session.session),
            .field("address", .text, "The client's address.", \.value.session.address),
            .field("transport", .words(SessionSnapshot.Transport.allCases.map(\.rawValue)), "The protocol.") {
                $0.value.session.transport.rawValue
            },
            .field("client", .nullable(.text), "The name that the client gives itself.", \.value.session.client),
            .field("startedAt", .instant, "When the play began.", \.value.beganMs),
            .field("endedAt", .instant, "When it ended.", \.value.endedMs),
            .field("seconds", .seconds, "How long it lasted.") { max(0, $0.value.session.durationMs) },
            .field("bytes", .count, "Bytes sent.", \.value.session.bytes),
            .field("reason", .choice(), "Why it ended.", \.value.session.reason),
            .field("framesSkipped", .count, "Frames skipped because the client was too slow.") { max(0, $0.value.session.skippedFrames) },
            .field("behindMs", .count, "How far behind live it was seen at worst, in milliseconds; 0 over HLS.") {
                max(0, $0.value.session.longestBehindMs)
            },
        ])

    private static let push = OutputType<Push>.object(
        "FinishedPush",
        [
            .field("pushId", .count, "The push's number among the finished ones; it grows.", \.id),
            .field("app", .text, "The app.") { Self.parts($0.value.session.path).app },
            .field("name", .text, "The stream's name under the app.") { Self.parts($0.value.session.path).name },
            .field("roomId", .nullable(.text), "The stream's room.", \.value.session.room),
            .field("userId", .nullable(.text), "The publisher, if the credential or hook names one.", \.value.session.user),
            .field("sessionId", .count, "The connection's number; it begins anew with the server.", \.value.session.session),
            .field("address", .text, "The publisher's address, or the server that a link pulled from.", \.value.session.address),
            .field("transport", .choice(), "The protocol; pull: a link to another server.", \.value.session.source),
            .field("client", .nullable(.text), "The name that the client gives itself.", \.value.session.client),
            .field("startedAt", .instant, "When the push began.", \.value.beganMs),
            .field("endedAt", .instant, "When it ended.", \.value.endedMs),
            .field("seconds", .seconds, "How long it lasted.") { max(0, $0.value.session.durationMs) },
            .field("bytes", .count, "Bytes of media received.", \.value.session.bytes),
            .field("videoCodec", .nullable(.text), "The video's codec; null without video.", \.value.session.media.videoCodec),
            .field("audioCodec", .nullable(.text), "The audio's codec; null without audio.", \.value.session.media.audioCodec),
            .field("width", .nullable(.count), "Pixels.", \.value.session.media.width),
            .field("height", .nullable(.count), "Pixels.", \.value.session.media.height),
            .field("reason", .choice(), "Why it ended.", \.value.session.end),
        ])
}
