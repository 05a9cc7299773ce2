import Support
import Testing

@testable import Rooms

extension EventDetails {
    fileprivate var members: [JSONValue.Member] {
        switch self {
        case .push(let details): details.members
        case .recording(let details): details.members
        case .snapshot(let details): details.members
        case .link(let change): change.members
        }
    }
}

/// Details of events survive writing and reading.
@Suite struct EventDetailsTests {
    private static let path = StreamPath(app: "live", name: "cam1")
    private static let at: Int64 = 1_795_255_200_250

    private static func event(_ kind: RoomEvent.Kind, _ data: String) -> RoomEvent {
        RoomEvent(id: 7, number: 3, kind: kind, roomID: RoomID(stored: "cam1"), instance: 1, at: Self.at, data: data)
    }

    private static func push(_ end: PushDetails.End? = nil) -> EventDetails {
        var media = MediaSummary()
        media.width = 1_280
        media.height = 720
        media.videoCodec = "H264"
        return .push(
            PushDetails(
                path: Self.path, slot: 2, sequence: 42, clientAddress: "[2001:db8::1]:50123", parameters: #"a=1&b="2""#, media: media,
                end: end))
    }

    private static let task = RecordingTask(id: "t1", path: Self.path, roomID: nil, slot: 0)

    private static func recording(ended: Bool) -> RecordingDetails {
        var recording = Recording(
            id: "r1", task: Self.task, part: 1, file: "f", startedAt: Self.at, media: MediaSummary(audioCodec: "mp4a.40.2"))
        if ended {
            recording.endedAt = Self.at + 61_500
            recording.durationMs = 61_500
            recording.bytes = 7_687_500
            recording.reason = .split
        }
        return RecordingDetails(recording)
    }

    private static func link(_ kind: LinkChange.Kind, error: String? = nil) -> EventDetails {
        .link(
            LinkChange(
                linkID: 5, direction: .pull, path: Self.path, target: "rtmp://a.example/live/x", kind: kind,
                reason: error.map { _ in "refused" },
                error: error))
    }

    private static let snapshot = SnapshotDetails(
        SnapshotRecord(
            id: "s1", path: Self.path, roomID: RoomID(stored: "cam1"), slot: 1, file: "f", takenAt: Self.at, bytes: 99, width: 640,
            height: 360))

    static let all: [(kind: RoomEvent.Kind, details: EventDetails)] = [
        (.streamBegin, push()), (.streamEnd, push(PushDetails.End(.takenOver, durationMs: 61_500))),
        (.streamEnd, push(PushDetails.End(.clientStopped, durationMs: 0))),
        (.recordStarted, .recording(recording(ended: false))), (.recordFinished, .recording(recording(ended: true))),
        (.recordFailed, .recording(RecordingDetails(task, .diskFull))),
        (.recordEnded, .recording(RecordingDetails(task, .streamEnded, files: 3))), (.snapshotTaken, .snapshot(snapshot)),
        (.linkStarted, link(.started)), (.linkConnected, link(.connected)),
        (.linkInterrupted, link(.interrupted, error: "no answer")),
        (.linkStopped, link(.stopped)),
    ]

    @Test(arguments: all.indices) func isReadAsItWasWritten(_ index: Int) throws {
        let (kind, details) = Self.all[index]
        #expect(try Self.event(kind, details.members.text).details() == details)
        // Members that all events of a room have are not the details'.
        let more: [JSONValue.Member] = [.init(name: "state", value: "live"), .init(name: "by", value: "publisher")]
        #expect(try Self.event(kind, (more + details.members).text).details() == details)
    }

    @Test func theTextIsThatOfTheAPIsDescription() {
        #expect(
            Self.push(PushDetails.End(.takenOver, durationMs: 61_500)).members.text
                == #"{"app":"live","name":"cam1","slot":2,"sequence":42,"clientAddress":"[2001:db8::1]:50123","#
                + #""parameters":"a=1&b=\"2\"","width":1280,"height":720,"videoCodec":"H264","durationMs":61500,"#
                + #""end":"takenOver","code":21,"subcode":102}"#)
        #expect(
            EventDetails.recording(Self.recording(ended: true)).members.text
                == #"{"app":"live","name":"cam1","slot":0,"taskId":"t1","recordingId":"r1","part":1,"startedAt":"2026-11-21T10:00:00.250Z","#
                + #""startedMs":1795255200250,"endedAt":"2026-11-21T10:01:01.750Z","endedMs":1795255261750,"durationMs":61500,"#
                + #""bytes":7687500,"audioCodec":"mp4a.40.2","reason":"split"}"#)
        #expect(
            EventDetails.recording(RecordingDetails(Self.task, .streamEnded, files: 3)).members.text
                == #"{"app":"live","name":"cam1","slot":0,"taskId":"t1","reason":"stream_ended","files":3}"#)
        #expect(
            EventDetails.snapshot(Self.snapshot).members.text
                == #"{"app":"live","name":"cam1","slot":1,"snapshotId":"s1","takenAt":"2026-11-21T10:00:00.250Z","#
                + #""takenMs":1795255200250,"bytes":99,"width":640,"height":360}"#)
        #expect(
            Self.link(.interrupted, error: "no answer").members.text
                == #"{"app":"live","name":"cam1","linkId":5,"direction":"pull","target":"rtmp://a.example/live/x","#
                + #""reason":"refused","error":"no answer"}"#)
    }

    /// Words and members of other versions.
    @Test func whatAnotherVersionWroteIsReadAsFarAsItGoes() throws {
        let data =
            #"{"app":"live","name":"cam1","slot":1,"sequence":42,"clientAddress":"192.0.2.1:5","parameters":"","#
            + #""end":"abducted","code":77,"width":null,"more":[1]}"#
        guard case .push(let push) = try Self.event(.streamEnd, data).details() else { throw EventDataError(description: "no push") }
        #expect(push.path == Self.path && push.slot == 1 && push.clientAddress == "192.0.2.1:5" && push.media == MediaSummary())
        #expect(push.end?.reason == nil && push.end?.code == 77 && push.end?.durationMs == 0)
    }

    @Test(arguments: [
        (RoomEvent.Kind.streamBegin, "{}", #"the data of event 7 has no "app""#),
        (.streamEnd, #"{"app":"live","name":"cam1","slot":1}"#, #"the data of event 7 has no "sequence""#),
        (.streamBegin, #"{"app":"live","name":7}"#, #""name" in the data of event 7 is a number, expected a string"#),
        (
            .streamBegin, #"{"app":"a","name":"n","slot":1,"sequence":1.5}"#,
            #""sequence" in the data of event 7 is a number, expected a whole number"#
        ),
        (.recordEnded, #"{"app":"a","name":"n","slot":1}"#, #"the data of event 7 has no "taskId""#),
        (.snapshotTaken, #"{"app":"a","name":"n","slot":1,"snapshotId":"s"}"#, #"the data of event 7 has no "takenMs""#),
        (.linkStopped, "[]", #"the data of event 7 has no "direction""#),
        (.linkStopped, "{", #"the data of event 7 is no JSON: line 1, column 2: expected a name in quotes"#),
    ])
    func whatIsMissingIsNamed(_ kind: RoomEvent.Kind, _ data: String, _ problem: String) {
        #expect(throws: EventDataError(description: problem)) { try Self.event(kind, data).details() }
    }

    @Test(arguments: RoomEvent.Kind.allCases) func onlyKindsThatAreReadHaveDetails(_ kind: RoomEvent.Kind) throws {
        let isRead = Self.all.contains { $0.kind == kind }
        if isRead {
            #expect(throws: EventDataError.self) { try Self.event(kind, "{}").details() }
        } else {
            #expect(try Self.event(kind, "no JSON").details() == nil)
        }
    }
}
