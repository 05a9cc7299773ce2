import HTTPAPI
import HTTPServer
import HTTPTypes
import RoomRegistry
import Rooms
import Statistics
import Streaming
import Support

enum StatsRoutes {
    /// Figures over time, and finished plays and pushes.
    static let all: [ControlRoute] = [
        ControlRoute(
            table: "/stats", "getStats", .stats, .ops, .server,
            "Get the figures of all streams over a time, step by step. Talk is not counted.", query: StatsInputs.window,
            answers: SeriesAnswer.outputType, failures: [.conflict]
        ) { call in
            try await call.reading { statistics in
                let store = statistics.store
                let window = try StatsInputs.window(call, nowMs: statistics.nowMs, coarseUntilMs: try await store.coarseUntilMs())
                return SeriesAnswer(
                    try await store.series(.everything, window), try await store.connections(window), window, statistics)
            }
        },
        ControlRoute(
            table: "/stats/streams", "listStreamFigures", .stats, .ops, .list,
            "List the streams with their figures of a time, the largest first.",
            query: [StatsInputs.from, StatsInputs.to, StatsInputs.sort, StatsInputs.after, StatsInputs.limit],
            answers: StreamFiguresAnswer.outputType, failures: [.conflict]
        ) { call in
            try await call.reading { try await Self.largest(call, $0) }
        },
        ControlRoute(
            table: "/stats/streams/{app}/{name}", "getStreamFigures", .stats, .ops, .stream,
            "Get a stream's figures over a time, step by step. One that never was has no steps.", in: StreamInputs.path,
            query: StatsInputs.window, answers: SeriesAnswer.outputType, failures: [.conflict]
        ) { call in
            let path = try await call.stream()
            return try await call.reading { statistics in
                let store = statistics.store
                let window = try StatsInputs.window(call, nowMs: statistics.nowMs, coarseUntilMs: try await store.coarseUntilMs())
                return SeriesAnswer(try await store.series(.stream(path.description), window), [], window, statistics)
            }
        },
        ControlRoute(
            table: "/stats/plays", "listFinishedPlays", .stats, .ops, .list, "List the plays that are over, newest first.",
            query: Self.filters(StatsInputs.playReason), answers: FinishedAnswers.plays, failures: [.conflict]
        ) { call in
            try await call.reading { statistics in
                let filter = try await Self.filter(call, reason: call[StatsInputs.playReason]?.rawValue)
                let list = try await statistics.store.plays(filter)
                return FinishedAnswer(
                    coverage: StatsCoverage(statistics), next: list.count == filter.limit ? list.last?.id : nil, list: list)
            }
        },
        ControlRoute(
            table: "/stats/pushes", "listFinishedPushes", .stats, .ops, .list, "List the pushes that are over, newest first.",
            query: Self.filters(StatsInputs.pushReason), answers: FinishedAnswers.pushes, failures: [.conflict]
        ) { call in
            try await call.reading { statistics in
                let filter = try await Self.filter(call, reason: call[StatsInputs.pushReason]?.rawValue)
                let list = try await statistics.store.pushes(filter)
                return FinishedAnswer(
                    coverage: StatsCoverage(statistics), next: list.count == filter.limit ? list.last?.id : nil, list: list)
            }
        },
    ]

    private static func largest(_ call: APICall, _ statistics: Statistics) async throws -> StreamFiguresAnswer {
        let nowMs = statistics.nowMs
        let window = try StatsInputs.wholeWindow(call, nowMs: nowMs, coarseUntilMs: try await statistics.store.coarseUntilMs())
        let (offset, limit) = (Int(try call.value(StatsInputs.after)), Int(try call.value(StatsInputs.limit)))
        let found = try await statistics.store.streams(
            window, of: call.scope, by: try call.value(StatsInputs.sort), offset: offset, limit: limit)
        let list = found.list.compactMap { row in
            StreamPath(row.subject).map { path in
                StreamFiguresAnswer.Entry(
                    path: path, part: FiguresPart(row.figures, atMs: window.fromMs, endMs: window.toMs, nowMs: nowMs))
            }
        }
        let end = offset + found.list.count
        return StreamFiguresAnswer(
            window: window, coverage: StatsCoverage(statistics), total: found.total,
            next: found.list.isEmpty || end >= found.total ? nil : end, list: list)
    }

    private static func filters(_ reason: any RequestInput) -> [any RequestInput] {
        [
            StatsInputs.stream, StatsInputs.room, StatsInputs.user, reason, StatsInputs.since,
            StatsInputs.until, StatsInputs.before, StatsInputs.limit,
        ]
    }

    private static func filter(_ call: APICall, reason: String?) async throws -> FinishedFilter {
        var filter = FinishedFilter()
        filter.stream = call[StatsInputs.stream]
        if let name = filter.stream.flatMap({ StreamPath($0) }) { filter.stream = await call.rooms.stream(named: name).description }
        filter.room = call[StatsInputs.room]?.rawValue
        filter.user = call[StatsInputs.user]
        filter.reason = reason
        filter.fromMs = call[StatsInputs.since]
        filter.toMs = call[StatsInputs.until]
        filter.before = call[StatsInputs.before]
        filter.scope = call.scope
        filter.limit = Int(try call.value(StatsInputs.limit))
        return filter
    }
}

extension APICall {
    /// Reads the statistics, including all sessions ended by now. Throws 409 when they are off, 503 when they cannot be read.
    fileprivate func reading<Answer>(_ body: (Statistics) async throws -> Answer) async throws -> Answer {
        guard let statistics = self.services.statistics else {
            throw APIError.wrongState(
                "Statistics are off; the server's setting stats.enabled turns them on.", state: "off", allowed: ["on"])
        }
        await statistics.write()
        do {
            return try await body(statistics)
        } catch let error as StatisticsStore.Unreadable {
            throw APIError.unavailable("The statistics cannot be read at the moment: \(error).")
        }
    }
}
