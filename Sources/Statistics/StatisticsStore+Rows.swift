import Delivery
import GRDB
import Relay
import Rooms
import Support

/// The rows as the tables hold them.
extension StatisticsStore {
    static func insert(_ rows: PendingRows, into db: Database) throws {
        let figures = try db.cachedStatement(
            sql: StatisticsSchema.addition(to: "minutes", values: "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"))
        for (key, row) in rows.figures {
            try figures.execute(arguments: [
                key.subject.text, key.atMs, Int64(clamping: row.bytesIn), Int64(clamping: row.bytesOut), Int64(clamping: row.plays),
                row.viewerMs, row.peak, row.arrival.seconds, row.arrival.framesPerSecond, row.arrival.arrivalJitterMs,
                row.arrival.longestKeyframeIntervalMs,
            ])
        }
        let plays = try db.cachedStatement(
            sql: """
                INSERT INTO plays (stream, room, session, "user", address, transport, client, began, ended, bytes, reason, skipped, behind_ms)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for row in rows.plays {
            let play = row.session
            try plays.execute(arguments: [
                play.path, play.room, Int64(clamping: play.session), play.user, play.address, play.transport.rawValue, play.client,
                row.beganMs, row.endedMs, Int64(clamping: play.bytes), play.reason.rawValue, play.skippedFrames, play.longestBehindMs,
            ])
        }
        let pushes = try db.cachedStatement(
            sql: """
                INSERT INTO pushes
                    (stream, room, session, "user", address, source, client, began, ended, bytes, reason, video, audio, width, height)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for row in rows.pushes {
            let push = row.session
            try pushes.execute(arguments: [
                push.path, push.room, Int64(clamping: push.session), push.user, push.address, push.source.rawValue, push.client,
                row.beganMs, row.endedMs, Int64(clamping: push.bytes), push.end.rawValue, push.media.videoCodec, push.media.audioCodec,
                push.media.width, push.media.height,
            ])
        }
    }
}
