import Relay
import Rooms
import Streaming
import Support

/// The rows as the tables hold them.
extension StatisticsStore {
    static func insert(_ rows: PendingRows, into db: StatisticsConnection) throws {
        try db.run(
            StatisticsSchema.addition(to: "minutes", values: "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
            forEach: rows.figures.lazy.map { key, row -> StatisticsArguments in
                [
                    key.subject.text, key.atMs, Int64(clamping: row.bytesIn), Int64(clamping: row.bytesOut), Int64(clamping: row.plays),
                    row.viewerMs, row.peak, row.arrival.seconds, row.arrival.framesPerSecond, row.arrival.arrivalJitterMs,
                    row.arrival.longestKeyframeIntervalMs,
                ]
            })
        try db.run(
            """
            INSERT INTO plays (stream, room, session, "user", address, transport, client, began, ended, bytes, reason, skipped, behind_ms)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            forEach: rows.plays.lazy.map { row -> StatisticsArguments in
                let play = row.session
                return [
                    play.path, play.room, Int64(clamping: play.session), play.user, play.address, play.transport.rawValue, play.client,
                    row.beganMs, row.endedMs, Int64(clamping: play.bytes), play.reason.rawValue, play.skippedFrames, play.longestBehindMs,
                ]
            })
        try db.run(
            """
            INSERT INTO pushes
                (stream, room, session, "user", address, source, client, began, ended, bytes, reason, video, audio, width, height)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            forEach: rows.pushes.lazy.map { row -> StatisticsArguments in
                let push = row.session
                return [
                    push.path, push.room, Int64(clamping: push.session), push.user, push.address, push.source.rawValue, push.client,
                    row.beganMs, row.endedMs, Int64(clamping: push.bytes), push.end.rawValue, push.media.videoCodec, push.media.audioCodec,
                    push.media.width, push.media.height,
                ]
            })
    }
}
