import Delivery
import HTTPServer
import HTTPTypes
import NIOCore
import Rooms
import Support

extension APIRoute {
    private static let slot = Input("slot", .whole(1...8), "Which of the room's streams.", fallback: 1)
    private static let onlySlot = Input("slot", .whole(1...8), "Only of this one of its streams.")
    private static let id = Input("snapshotId", .recordingID, "The picture's id.").required
    private static let width = Input("width", .whole(16...3_840), "Pixels; the height follows. As wide as the stream without it.")

    /// Pictures of live streams.
    static let snapshots: [APIRoute] = [
        APIRoute(
            raw: .get, "/rooms/{roomId}/snapshot.jpg", "getSnapshot", .rooms, .app,
            "The stream's last keyframe as a JPEG picture, at most some seconds old.", in: [RoomInputs.room.erased],
            query: [Self.slot.erased, Self.width.erased], type: "image/jpeg"
        ) { call in
            let room = try await call.rooms.room(try call.value(RoomInputs.room))
            let number = Int(try call.value(Self.slot))
            guard let slot = room.slots.first(where: { $0.number == number }) else {
                throw APIError(FieldError("slot", "\(number)", "the room has \(room.slots.count) streams"))
            }
            guard room.state != .forbidden, room.state != .closed else {
                throw APIError(.notFound, .notFound, "The room shows no picture: it is \(room.state.rawValue).")
            }
            let jpeg = try await call.core.snapshot(of: slot.path, width: call[Self.width].map { Int($0) })
            return Array(jpeg.readableBytesView)
        },
        APIRoute(
            .get, "/rooms/{roomId}/snapshots", "listSnapshots", .rooms, .app,
            "Pictures that were taken of a room's streams by themselves (setting snapshots.interval), the newest first.",
            in: [RoomInputs.room.erased], query: [Self.onlySlot.erased, RecordingInputs.after.erased, RecordingInputs.limit.erased],
            answers: SnapshotListAnswer.outputType
        ) { call in
            let room = try await call.rooms.room(try call.value(RoomInputs.room))
            let limit = Int(try call.value(RecordingInputs.limit))
            let list = try await call.rooms.snapshots(
                ofRoom: room.id, slot: call[Self.onlySlot].map(Int.init), after: call[RecordingInputs.after], limit: limit)
            return SnapshotListAnswer(next: list.count == limit ? list.last?.row : nil, list: list)
        },
        APIRoute(
            raw: .get, "/snapshots/{snapshotId}/file", "downloadSnapshot", .rooms, .app, "A picture that was taken by itself.",
            in: [Self.id.erased], type: "image/jpeg"
        ) { call in
            let id = try call.value(Self.id)
            let files = SnapshotFiles(call.core.config)
            guard let snapshot = try await call.rooms.snapshot(id),
                let bytes = await call.core.recordings.onDisk({ files.load(snapshot.file) })
            else { throw APIError.notFound("snapshot", id, field: "snapshotId") }
            return bytes
        },
    ]
}

extension SnapshotRecord {
    static let outputType = OutputType<SnapshotRecord>.object(
        "Snapshot",
        [
            .field("snapshotId", .text, "Its id.", \.id),
            .field("slot", .whole(1...8), "Which of the room's streams.", \.slot),
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("takenAt", .instant, "When it was taken.", \.takenAt),
            .field("bytes", .count, "Of the file.", \.bytes),
            .field("width", .count, "Pixels.", \.width),
            .field("height", .count, "Pixels.", \.height),
            .field("file", .text, "Where it lies, below the folder of the pictures.", \.file),
            .field("url", .text, "Where it is downloaded, below the server's own address.") {
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
            .field("next", .nullable(.count), "For `after`; null at the end.", \.next),
            .field("list", .list(SnapshotRecord.outputType), "The page.", \.list),
        ])
}
