import HTTPAPI
import HTTPServer
import HTTPTypes
import Logging
import Packaging
import RoomRegistry
import Rooms
import Streaming
import Support

/// Inputs of the recording calls.
enum RecordingInputs {
    enum Action: String, Sendable, CaseIterable { case start, stop }

    static let action = Input("action", .choice() as InputType<Action>, "Whether to start or stop recording.").required
    static let slot = Input("slot", .whole(1...8), "The stream's slot in the room.", fallback: 1)
    static let id = Input("recordingId", .recordingID, "The recording's id.").required
    static let room = Input("roomId", .id, "Only recordings of this room.")
    static let app = Input("app", .streamApp, "Only recordings of this app's streams.")
    static let name = Input("name", .streamName, "Only recordings of streams with this name; needs app.")
    static let state = Input(
        "state", .choice() as InputType<RecordingState>, "Only recordings in this state; if omitted, all except deleted ones.")
    static let after = Input("after", .whole(1...Int64.max), "The `next` of the previous page.")
    static let limit = Input("limit", .whole(1...1_000), "The maximum number of entries.", fallback: 100)
}

extension InputType<String> {
    static var recordingID: InputType {
        InputType(.keywords("string", ("pattern", "^[0-9a-f]{16}$"))) { (json: JSONValue) throws(BrokenRule) in
            guard case .string(let text) = json, text.utf8.count == 16,
                text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
            else { throw BrokenRule("expected 16 of 0-9 a-f") }
            return text
        }
    }
}

enum RecordingRoutes {
    /// Recordings: start and stop, look up, download, delete.
    static let all: [ControlRoute] = [
        ControlRoute(
            storing: "/rooms/{roomId}/record", "recordRoom", .recordings, .backend, .room,
            """
            Start or stop recording one of a room's streams. The recording continues after a restart of the server. A stop answers once \
            the last file is closed. Role backend: of the rooms that the token created.
            """,
            in: [RoomInputs.room],
            body: [RecordingInputs.action, RecordingInputs.slot], answers: RecordingTaskAnswer.outputType,
            failures: [.conflict], home: .room
        ) { call, keep in
            let room = try await call.rooms.room(try call.value(RoomInputs.room))
            try call.checkOwn(room)
            let number = Int(try call.value(RecordingInputs.slot))
            guard let slot = room.slots.first(where: { $0.number == number }) else {
                throw APIError(FieldError("slot", "\(number)", "expected 1 to \(room.slots.count), the room's streams"))
            }
            let action = try call.value(RecordingInputs.action)
            call.audit(stream: slot.path) { $0.add("isRecording", from: .bool(action == .stop), to: .bool(action == .start)) }
            switch action {
            case .start:
                return try await keep({ RecordingTaskAnswer($0, isRecording: true) }) { try await Self.start(room, slot, call, $0) }
            case .stop:
                return try await keep({ RecordingTaskAnswer($0, isRecording: false) }) { keeping in
                    guard let ended = try await call.services.recordings.stop(slot.path, keeping: keeping) else {
                        throw APIError.wrongState("\(slot.path) is not being recorded.", state: "not recording", allowed: ["recording"])
                    }
                    return ended
                }
            }
        },
        ControlRoute(
            .get, "/recordings", "listRecordings", .recordings, .ops, .list, "List recordings, including running ones, newest first.",
            query: [
                RecordingInputs.room, RecordingInputs.app, RecordingInputs.name, RecordingInputs.state,
                RecordingInputs.after, RecordingInputs.limit,
            ],
            answers: RecordingListAnswer.outputType
        ) { call in
            var query = RecordingQuery()
            query.room = call[RecordingInputs.room]
            query.app = call[RecordingInputs.app]
            query.name = call[RecordingInputs.name]
            query.state = call[RecordingInputs.state]
            query.after = call[RecordingInputs.after]
            query.limit = Int(try call.value(RecordingInputs.limit))
            query.scope = call.scope
            guard query.name == nil || query.app != nil else { throw APIError(FieldError("app", "", "is required with name")) }
            let list = try await call.rooms.recordings(query)
            // The budget counts all files, including those being written.
            var used = call.services.recordings.budget.usedBytes
            if call.scope.isLimited { used = try await call.rooms.recordingBytes(scope: call.scope) }
            return RecordingListAnswer(
                next: list.count == query.limit ? list.last?.row : nil, usedBytes: used,
                list: list.map { RecordingAnswer($0, call) })
        },
        ControlRoute(
            .get, "/recordings/{recordingId}", "getRecording", .recordings, .ops, .thing, "Look a recording up.",
            in: [RecordingInputs.id],
            answers: RecordingAnswer.outputType
        ) { call in
            RecordingAnswer(try await Self.recording(call), call)
        },
        ControlRoute(
            .delete, "/recordings/{recordingId}", "deleteRecording", .recordings, .ops, .thing,
            "Delete the file of a finished or failed recording. The recording can still be looked up, in state deleted.",
            in: [RecordingInputs.id], answers: .nothing, failures: [.conflict], home: .recording
        ) { call in
            let recording = try await Self.recording(call)
            call.audit(stream: recording.task.path, room: recording.task.roomID) {
                $0.add("state", from: .string(recording.state.rawValue), to: .string(RecordingState.deleted.rawValue))
            }
            let deleted: Recording?
            do {
                deleted = try await call.services.recordings.retention.delete(recording)
            } catch let failure as RecordingFolder.Failure {
                call.logFailure("A recording could not be deleted", failure)
                throw APIError.unavailable("The file cannot be deleted now; the server's log has the reason.")
            }
            guard deleted != nil else {
                throw APIError.wrongState(
                    "Recording \(recording.id) is \(recording.state.rawValue); it can be deleted when it is finished or failed.",
                    state: recording.state.rawValue, allowed: [RecordingState.finished, .failed].map(\.rawValue))
            }
        },
        ControlRoute(
            file: "/recordings/{recordingId}/file", "downloadRecording", .recordings, .ops, .thing,
            "Download a recording's file or a range of it. A file being written is returned up to its last complete fragment.",
            in: [RecordingInputs.id],
            type: "video/mp4", failures: [.conflict], home: .recording
        ) { call in
            let recording = try await Self.recording(call)
            try Self.checkFile(recording)
            let recordings = call.services.recordings
            let limit = recording.state == .recording ? recordings.writtenBytes(of: recording.id) : nil
            let download = try await APICall.file(recording.file, in: recordings.folder, limit: limit, id: recording.id, type: "video/mp4")
            guard let download else { throw APIError.notFound("file of recording", recording.id, field: "recordingId") }
            return download
        },
        ControlRoute(
            .post, "/recordings/{recordingId}/download-url", "makeRecordingUrl", .recordings, .ops, .thing,
            """
            Make a signed link to a recording's file, for players and programs without a token. It opens this file only, and supports Range. \
            It cannot be taken back before it expires.
            """,
            in: [RecordingInputs.id], body: [DownloadURLAnswer.expiresIn], answers: DownloadURLAnswer.outputType, failures: [.conflict],
            effect: .nothing
        ) { call in
            let recording = try await Self.recording(call)
            try Self.checkFile(recording)
            call.audit(stream: recording.task.path, room: recording.task.roomID) { _ in }
            return try DownloadURLAnswer("/recordings/\(recording.id)/file", call)
        },
    ]

    /// Throws 409 for a recording whose file is deleted.
    private static func checkFile(_ recording: Recording) throws(APIError) {
        guard recording.state == .deleted else { return }
        throw APIError.wrongState(
            "Recording \(recording.id) is deleted.", state: recording.state.rawValue,
            allowed: RecordingState.allCases.filter { $0 != .deleted }.map(\.rawValue))
    }

    private static func recording(_ call: APICall) async throws -> Recording {
        let id = try call.value(RecordingInputs.id)
        guard let recording = try await call.rooms.recording(id), try await call.sees(recording.task.path) else {
            throw APIError.notFound("recording", id, field: "recordingId")
        }
        return recording
    }

    private static func start(
        _ room: Room, _ slot: Room.Slot, _ call: APICall, _ keeping: KeptAnswer<RecordingOrder>?
    ) async throws -> RecordingOrder {
        let recordings = call.services.recordings
        do throws(Recordings.Refusal) {
            let recorder = try await recordings.begin(
                slot.path, roomID: room.id, slot: slot.number, isByCall: true, triesAgain: false, keeping: keeping)
            return RecordingOrder(task: recorder.task, startedAt: recorder.startedAt)
        } catch {
            switch error {
            case .isRecording:
                throw APIError.wrongState("\(slot.path) is being recorded already.", state: "recording", allowed: ["not recording"])
            case .notLive:
                throw APIError.wrongState(
                    "\(slot.path) has no stream to record; room \(room.id) is \(room.state.rawValue).", state: room.state.rawValue,
                    allowed: [RoomState.live, .interrupted].map(\.rawValue))
            case .end(let end):
                recordings.reportRefused(slot.path, roomID: room.id, slot: slot.number, end)
                throw APIError.wrongState(end.words, state: end.rawValue, allowed: [])
            case .notStored(let error): throw error
            case .stopping: throw APIError.unavailable("The server is stopping.")
            }
        }
    }
}

extension RecordingEnd {
    /// The failure's message for the caller who wants to record.
    var words: String {
        switch self {
        case .quotaExceeded: "Recordings have used up the server's setting recording.quota; delete some."
        case .diskFull: "The disk has too little free space for recordings (the server's setting recording.minFree)."
        case .noDescriptors: "No file can be opened for a recording: \(OpenDescriptors.advice)."
        default: "Nothing can be recorded now: \(self.rawValue)."
        }
    }
}
