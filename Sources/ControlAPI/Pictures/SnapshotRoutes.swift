import HTTPAPI
import HTTPServer
import HTTPTypes
import NIOCore
import Packaging
import RoomRegistry
import Rooms
import Streaming
import Support

enum SnapshotRoutes {
    private static let slot = Input("slot", .whole(1...8), "The stream's slot in the room.", fallback: 1)
    private static let onlySlot = Input("slot", .whole(1...8), "Only pictures of the stream in this slot.")
    private static let id = Input("snapshotId", .recordingID, "The picture's id.").required
    private static let width = Input("width", .whole(16...3_840), "Width in pixels; the height follows. If omitted, the stream's width.")

    private static let maxAge = Input(
        "maxAge", .whole(2...30), "Seconds for which a picture of this width is reused: pages that look now and then share one.",
        fallback: 2)

    /// Pictures of live streams.
    static let all: [ControlRoute] = [
        ControlRoute(
            raw: .get, "/rooms/{roomId}/snapshot.jpg", "getSnapshot", .rooms, .backend, .room,
            "The last keyframe of a room's stream, as a JPEG picture. A picture is reused for `maxAge` seconds.",
            in: [RoomInputs.room],
            query: [Self.slot, Self.width, Self.maxAge], type: "image/jpeg", home: .room
        ) { call in
            let room = try await call.rooms.room(try call.value(RoomInputs.room))
            let number = Int(try call.value(Self.slot))
            guard let slot = room.slots.first(where: { $0.number == number }) else {
                throw APIError(FieldError("slot", "\(number)", "expected 1 to \(room.slots.count), the room's streams"))
            }
            guard room.state != .forbidden, room.state != .closed else {
                throw Self.missing("room", "There is no picture of a room that is \(room.state.rawValue).")
            }
            return try await Self.picture(of: slot.path, call)
        },
        ControlRoute(
            .get, "/rooms/{roomId}/snapshots", "listSnapshots", .rooms, .backend, .room,
            "List the pictures that the server took of a room's streams at intervals (setting snapshots.interval), newest first.",
            in: [RoomInputs.room], query: [Self.onlySlot, RecordingInputs.after, RecordingInputs.limit],
            answers: SnapshotListAnswer.outputType
        ) { call in
            let room = try await call.rooms.room(try call.value(RoomInputs.room))
            let limit = Int(try call.value(RecordingInputs.limit))
            let list = try await call.rooms.snapshots(
                ofRoom: room.id, slot: call[Self.onlySlot].map(Int.init), after: call[RecordingInputs.after], limit: limit)
            return SnapshotListAnswer(next: list.count == limit ? list.last?.row : nil, list: list)
        },
        ControlRoute(
            file: "/snapshots/{snapshotId}/file", "downloadSnapshot", .rooms, .backend, .thing,
            "Download a picture taken at an interval.",
            in: [Self.id], type: "image/jpeg", home: .snapshot
        ) { call in
            let snapshot = try await Self.snapshot(call)
            let folder = SnapshotFiles(call.services.config.current).folder
            let file = try await APICall.file(snapshot.file, in: folder, id: snapshot.id, type: "image/jpeg", isShown: true)
            guard let file else { throw APIError.notFound("snapshot", snapshot.id, field: "snapshotId") }
            return file
        },
        ControlRoute(
            .post, "/snapshots/{snapshotId}/download-url", "makeSnapshotUrl", .rooms, .backend, .thing,
            """
            Make a signed link to a picture taken at an interval, for pages and programs without a token. It opens this picture only. It \
            cannot be taken back before it expires.
            """,
            in: [Self.id], body: [DownloadURLAnswer.expiresIn], answers: DownloadURLAnswer.outputType, effect: .nothing
        ) { call in
            let snapshot = try await Self.snapshot(call)
            call.audit(stream: snapshot.path) { _ in }
            return try DownloadURLAnswer("/snapshots/\(snapshot.id)/file", call)
        },
    ]

    private static func snapshot(_ call: APICall) async throws -> SnapshotRecord {
        let id = try call.value(Self.id)
        guard let snapshot = try await call.rooms.snapshot(id), try await call.sees(snapshot.path) else {
            throw APIError.notFound("snapshot", id, field: "snapshotId")
        }
        return snapshot
    }

    private static func picture(of path: StreamPath, _ call: APICall) async throws -> ByteBuffer {
        let (snapshots, streams, maxAgeMs) = (call.services.snapshots, call.services.streams, try call.value(Self.maxAge) * 1_000)
        do throws(SnapshotMaker.Missing) {
            return try await snapshots.jpeg(of: path, in: streams, width: call[Self.width].map { Int($0) }, maxAgeMs: maxAgeMs)
        } catch {
            switch error {
            case .stream: throw Self.missing("stream", "There is no stream \(path) now: nobody publishes it.")
            case .keyframe:
                throw Self.missing("picture", "There is no picture of \(path) yet: it has no video, or has not sent a keyframe.")
            case .picture(let reason): throw APIError.unavailable("No picture can be made of \(path): \(reason).")
            }
        }
    }

    /// 404, with the word for what is missing as its rule. An unknown room has the field `roomId` instead.
    private static func missing(_ what: String, _ message: String) -> APIError {
        var error = APIError(.notFound, .notFound, message)
        error.rule = "no \(what)"
        return error
    }
}

extension SnapshotRecord {
    static let outputType = OutputType<SnapshotRecord>.object(
        "Snapshot",
        [
            .field("snapshotId", .text, "The picture's id.", \.id),
            .field("slot", .whole(1...8), "The stream's slot in the room.", \.slot),
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("takenAt", .instant, "When the picture was taken.", \.takenAt),
            .field("bytes", .count, "The file's size in bytes.", \.bytes),
            .field("width", .count, "Pixels.", \.width),
            .field("height", .count, "Pixels.", \.height),
            .field("file", .text, "The file's path in the folder of pictures.", \.file),
            .field("url", .text, "The download's path below the server's address.") {
                "\(APIService.prefix)/snapshots/\($0.id)/file"
            },
        ])
}

/// A page of pictures.
struct SnapshotListAnswer: Sendable {
    let next: Int64?
    let list: [SnapshotRecord]

    static let outputType = OutputType<SnapshotListAnswer>.object(
        "SnapshotList",
        [
            .field("next", .nullable(.count), "Pass it as `after` to get the next page; null at the end.", \.next),
            .field("list", .list(SnapshotRecord.outputType), "The pictures of this page.", \.list),
        ])
}
