import Relay
package import Rooms
package import Streaming
import Support

/// A time in steps. A value.
package struct StatisticsWindow: Sendable, Equatable {
    /// Milliseconds since 1970; multiples of the step.
    package let fromMs: Int64
    package let toMs: Int64
    package let stepMs: Int64

    /// Widens the times to whole steps.
    package init(fromMs: Int64, toMs: Int64, stepMs: Int64) {
        self.stepMs = max(60_000, stepMs)
        self.fromMs = fromMs / self.stepMs * self.stepMs
        self.toMs = (toMs + self.stepMs - 1) / self.stepMs * self.stepMs
    }
}

/// Figures of one step.
package struct StatisticsPoint: Sendable, Equatable {
    package let atMs: Int64
    package let figures: Figures
}

/// Figures of one stream or protocol over a time.
package struct SubjectFigures: Sendable, Equatable {
    package let subject: String
    package let figures: Figures
}

/// Selects finished sessions.
package struct FinishedFilter: Sendable {
    package var stream: String?
    package var room: String?
    package var user: String?
    package var reason: String?
    /// End times from `fromMs` on, and before `toMs`.
    package var fromMs: Int64?
    package var toMs: Int64?
    /// Only numbers below this one.
    package var before: Int64?
    /// Only streams of this part of the server.
    package var scope = TokenScope.all
    package var limit = 100

    package init() {}
}

/// A finished session with its number, by which lists are paged.
package struct Numbered<Value: Sendable>: Sendable {
    package let id: Int64
    package let value: Value
}

/// Queries. They combine rows of minutes and of ten minutes.
extension StatisticsStore {
    package enum Order: String, Sendable, CaseIterable { case bytesOut, bytesIn, viewers, viewerTime, plays }

    /// The end of the time that has only rows of ten minutes; nil if there is none.
    package func coarseUntilMs() async throws(Unreadable) -> Int64? {
        try await self.read { db in try db.number("SELECT max(at) + 600000 FROM tens") }
    }

    /// One point for each step that has figures, oldest first.
    package func series(_ subject: FigureKey.Subject, _ window: StatisticsWindow) async throws(Unreadable) -> [StatisticsPoint] {
        let text = subject.text
        return try await self.read { db in
            let part = "SELECT * FROM %@ WHERE subject = ?1 AND at >= ?2 AND at < ?3"
            let sql = """
                SELECT at / ?4 * ?4 AS start, \(StatisticsSchema.sums) FROM (\(Self.both(part))) GROUP BY start ORDER BY start
                """
            return try db.rows(sql, [text, window.fromMs, window.toMs, window.stepMs]).map {
                StatisticsPoint(atMs: $0["start"], figures: Self.figures($0))
            }
        }
    }

    /// Connections of each protocol over the window, by its name.
    package func connections(_ window: StatisticsWindow) async throws(Unreadable) -> [SubjectFigures] {
        let words = SessionSnapshot.Transport.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        return try await self.read { db in
            let part = "SELECT * FROM %@ WHERE subject IN (\(words)) AND at >= ?1 AND at < ?2"
            let sql = "SELECT subject, \(StatisticsSchema.sums) FROM (\(Self.both(part))) GROUP BY subject ORDER BY subject"
            return try db.rows(sql, [window.fromMs, window.toMs]).map {
                SubjectFigures(subject: $0["subject"], figures: Self.figures($0))
            }
        }
    }

    /// The scope's streams with their figures over the window, the largest first, and their total number.
    package func streams(
        _ window: StatisticsWindow, of scope: TokenScope = .all, by order: Order, offset: Int, limit: Int
    ) async throws(Unreadable) -> (total: Int, list: [SubjectFigures]) {
        let column =
            switch order {
            case .bytesOut: "bytes_out"
            case .bytesIn: "bytes_in"
            case .viewers: "peak"
            case .viewerTime: "viewer_ms"
            case .plays: "plays"
            }
        let (condition, names) = Self.condition(scope, on: "subject")
        return try await self.read { db in
            let part = "SELECT * FROM %@ WHERE at >= ? AND at < ? AND instr(subject, '/') > 0 AND \(condition)"
            let all = "SELECT subject, \(StatisticsSchema.sums) FROM (\(Self.both(part))) GROUP BY subject"
            let bounds: [(any StatisticsConvertible)?] = [window.fromMs, window.toMs] + names
            let total = Int(try db.number("SELECT count(*) FROM (\(all))", StatisticsArguments(bounds + bounds)) ?? 0)
            let sql = "\(all) ORDER BY \(column) DESC, subject LIMIT ? OFFSET ?"
            let list = try db.rows(sql, StatisticsArguments(bounds + bounds + [limit, offset])).map {
                SubjectFigures(subject: $0["subject"], figures: Self.figures($0))
            }
            return (total, list)
        }
    }

    /// Finished plays, newest first.
    package func plays(_ filter: FinishedFilter) async throws(Unreadable) -> [Numbered<Finished<FinishedPlay>>] {
        try await self.read { db in
            try Self.rows("plays", filter, db).map { row in
                let play = FinishedPlay(
                    path: row["stream"], room: row["room"], session: UInt64(clamping: row["session"] as Int64), user: row["user"],
                    address: row["address"], transport: SessionSnapshot.Transport(rawValue: row["transport"]) ?? .rtmp,
                    client: row["client"], durationMs: (row["ended"] as Int64) - (row["began"] as Int64),
                    bytes: UInt64(clamping: row["bytes"] as Int64), reason: CloseReason(rawValue: row["reason"]) ?? .clientClosed,
                    skippedFrames: row["skipped"], longestBehindMs: row["behind_ms"])
                return Numbered(id: row["id"], value: Finished(session: play, beganMs: row["began"], endedMs: row["ended"]))
            }
        }
    }

    /// Finished pushes, newest first.
    package func pushes(_ filter: FinishedFilter) async throws(Unreadable) -> [Numbered<Finished<FinishedPush>>] {
        try await self.read { db in
            try Self.rows("pushes", filter, db).map { row in
                var push = FinishedPush(
                    path: row["stream"], room: row["room"], session: UInt64(clamping: row["session"] as Int64), user: row["user"],
                    address: row["address"], source: FinishedPush.Source(rawValue: row["source"]) ?? .rtmp, client: row["client"],
                    durationMs: (row["ended"] as Int64) - (row["began"] as Int64), bytes: UInt64(clamping: row["bytes"] as Int64),
                    end: PushEnd(rawValue: row["reason"]) ?? .connectionLost)
                push.media.videoCodec = row["video"]
                push.media.audioCodec = row["audio"]
                push.media.width = row["width"]
                push.media.height = row["height"]
                return Numbered(id: row["id"], value: Finished(session: push, beganMs: row["began"], endedMs: row["ended"]))
            }
        }
    }

    private static func rows(_ table: String, _ filter: FinishedFilter, _ db: StatisticsConnection) throws -> [StatisticsRow] {
        let conditions: [(String, (any StatisticsConvertible)?)] = [
            ("stream = ?", filter.stream), ("room = ?", filter.room), (#""user" = ?"#, filter.user), ("reason = ?", filter.reason),
            ("ended >= ?", filter.fromMs), ("ended < ?", filter.toMs), ("id < ?", filter.before),
        ]
        let given = conditions.filter { $0.1 != nil }
        let (scope, names) = Self.condition(filter.scope, on: "stream")
        let condition = (given.map(\.0) + [scope]).joined(separator: " AND ")
        return try db.rows(
            "SELECT * FROM \(table) WHERE \(condition) ORDER BY id DESC LIMIT ?",
            StatisticsArguments(given.map(\.1) + names + [filter.limit]))
    }

    /// The condition that a stream ("app/name") belongs to the scope, with its arguments.
    private static func condition(_ scope: TokenScope, on column: String) -> (sql: String, arguments: [(any StatisticsConvertible)?]) {
        let app = scope.apps.map { _ in "instr(\(column), ? || '/') = 1" }.joined(separator: " OR ")
        // The first "/" ends the app.
        let name = scope.rooms.map { _ in "instr(\(column), '/' || ?) = instr(\(column), '/')" }.joined(separator: " OR ")
        return ([app, name].map { $0.isEmpty ? "1" : "(\($0))" }.joined(separator: " AND "), scope.apps + scope.rooms)
    }

    /// The query of both tables; "%@" stands for the table's name.
    private static func both(_ query: String) -> String {
        ["minutes", "tens"].map { query.split(separator: "%@", omittingEmptySubsequences: false).joined(separator: $0) }
            .joined(separator: " UNION ALL ")
    }

    private static func figures(_ row: StatisticsRow) -> Figures {
        var arrival = StreamHistory.Sum()
        arrival.seconds = row["live_seconds"]
        arrival.framesPerSecond = row["fps"]
        arrival.arrivalJitterMs = row["jitter_ms"]
        arrival.longestKeyframeIntervalMs = row["keyframe_ms"]
        return Figures(
            bytesIn: UInt64(clamping: row["bytes_in"] as Int64), bytesOut: UInt64(clamping: row["bytes_out"] as Int64),
            plays: UInt64(clamping: row["plays"] as Int64), viewerMs: row["viewer_ms"], peak: row["peak"], arrival: arrival)
    }
}
