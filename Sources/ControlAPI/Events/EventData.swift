import Health
import HTTPAPI
import Rooms
import Support
import Talk

/// The schemas of events' data, in the order of the kinds.
enum EventData {
    static func form(_ name: String, _ parts: [Schema.Property]...) -> Schema { .named(name, .object(parts.flatMap(\.self))) }

    // MARK: Rooms

    static let roomCreated = Self.transition(
        "RoomCreatedData", to: .created, for: [.created, .reopened], from: [.created, .expired, .closed],
        [
            .always("title", .text, "The room's title."),
            .maybe("owner", .text, "The owner's user id."),
            .maybe("deviceUid", .text, "The device that pushes the first stream."),
        ])

    static let roomLive = Self.transition("RoomLiveData", to: .live, for: [.media], from: [.created])

    static let roomInterrupted = Self.transition(
        "RoomInterruptedData", to: .interrupted, for: [.publisherLost, .stopped, .mediaIdle, .paused, .dropped, .serverRestart, .nodeLost],
        from: [.live])

    static let roomResumed = Self.transition("RoomResumedData", to: .live, for: [.media], from: [.interrupted])

    static let roomForbidden = Self.transition(
        "RoomForbiddenData", to: .forbidden, for: [.forbidden], from: [.created, .live, .interrupted, .expired],
        [
            .always("forbiddenUntil", .instant, "When the first of the bans ends."),
            .always("forbidReason", .text, "The reason that the caller gave."),
        ])

    static let roomUnforbidden = Self.transition("RoomUnforbiddenData", to: .created, for: [.resumed, .resumeTime], from: [.forbidden])

    static let roomExpired = Self.transition(
        "RoomExpiredData", to: .expired, for: [.neverStarted, .graceOver, .maxDuration, .heartbeatLost, .ownerOffline, .expired],
        from: [.created, .live, .interrupted])

    static let roomClosed = Self.transition(
        "RoomClosedData", to: .closed, for: [.closed], from: [.created, .live, .interrupted, .forbidden, .expired])

    /// A change of the room's state.
    private static func transition(
        _ name: String, to state: RoomState, for reasons: [StateReason], from former: [RoomState], _ more: [Schema.Property] = []
    ) -> Schema {
        Self.form(name, Self.room([state], reasons), [.always("from", .choice(of: former), "The room's former state.")], more)
    }

    /// The members that most events of rooms have.
    static func room(_ states: [RoomState] = RoomState.allCases, _ reasons: [StateReason] = StateReason.allCases) -> [Schema.Property] {
        [
            .always("state", .choice(of: states), "The room's state."),
            .always("reason", .choice(of: reasons), "The reason for the room's state."),
            .always("instance", .natural, "The number of the room's instance."),
            Self.by,
        ]
    }

    private static let by = Schema.Property.always(
        "by", .example("token:back-end"),
        "Who caused it: token: and the API token's name, the user's id, publisher, deadline (time has passed) or server.")

    static let roomUpdated = Self.form(
        "RoomUpdatedData", Self.room(), [.always("changed", .list(.words(Self.changeable)), "The fields that have another value.")])

    private static let changeable =
        ["owner", "title", "custom", "isPublic", "deviceUid"] + RoomPolicy.fields.map { "policy.\($0.name)" }

    static let roomRenewed = Self.form(
        "RoomRenewedData", Self.room([.created, .live, .interrupted]),
        [
            .always("renewedUntil", .instant, "When the countdown ends."),
            .always("expiresAt", .instant, "The room's next deadline, which may be another than the countdown's end."),
            .always("expiresReason", .choice(of: Self.deadlines), "What happens at that deadline."),
        ])

    private static let deadlines = RoomDeadline.Reason.allCases.filter { $0 != .retention }

    static let roomDeleted = Self.form("RoomDeletedData", Self.room([.closed, .expired]))

    /// The state is the one after all changes at the same moment: an owner's absence may end the room at once.
    static let roomOwner = Self.form(
        "RoomOwnerData", Self.room(RoomState.allCases.filter { $0 != .closed }), [.always("owner", .text, "The owner's user id.")])

    // MARK: Streams

    private static let stream: [Schema.Property] = [
        .always("app", .text, "The stream's app."), .always("name", .text, "The stream's name."),
    ]

    private static let push: [Schema.Property] = [
        .always("slot", .natural, "The stream's number in the room."),
        .always("sequence", .natural, "The number of the push, the same in its begin and end."),
        .always("clientAddress", .text, "The publisher's address."),
        .always("parameters", .example("device=phone"), "The URL's query without credentials, shortened to 512 bytes."),
        .maybe("width", .count, "Pixels; absent when the first media did not say."),
        .maybe("height", .count, "Pixels; absent when the first media did not say."),
        .maybe("videoCodec", .example("H264"), "The video's codec; absent when the first media had none."),
        .maybe("audioCodec", .example("AAC"), "The audio's codec; absent when the first media had none."),
    ]

    static let streamBegin = Self.form("StreamBeginData", Self.room(), Self.stream, Self.push)

    static let streamEnd = Self.form(
        "StreamEndData", Self.room(), Self.stream, Self.push,
        [
            .always("durationMs", .count, "Milliseconds since the first media."),
            .always("end", .choice(of: PushEnd.allCases), "Why the push ended."),
            .always("code", .numbers(PushEnd.allCases.map(\.code)), "The same as Tencent's errcode."),
            .maybe(
                "subcode", .numbers(PushEnd.allCases.compactMap(\.subcode)),
                "Refines code 21. 100: ended by a call, 101: forbidden by a call, 102: replaced by a new push."),
        ])

    /// The stream's members, for a stream with or without a room.
    private static let banned: [Schema.Property] =
        (Self.room().filter { $0.name != "by" } + Self.push.filter { $0.name == "slot" }).map { $0.sometimes("room") }

    static let streamForbidden = Self.form(
        "StreamForbiddenData", Self.banned, [Self.by], Self.stream,
        [
            .always("forbiddenUntil", .instant, "When the ban ends."),
            .always("forbidReason", .text, "The reason that the caller gave."),
        ])

    static let streamResumed = Self.form("StreamResumedData", Self.banned, [Self.by], Self.stream)

    static let streamHealth = Self.form(
        "StreamHealthData", Self.room(), Self.stream,
        [
            .always("slot", .natural, "The stream's number in the room."),
            .always("sequence", .natural, "The number of the push, the same in its begin and end."),
            .always("verdict", .choice(of: StreamVerdict.allCases), "How the stream does. good: what was wrong is over."),
            .always("former", .choice(of: StreamVerdict.allCases), "The verdict of the event before; good before the first."),
            .always("reasons", .list(Self.healthReason), "The reasons, the worst first."),
        ])

    private static let healthReason = Self.form(
        "StreamHealthReason",
        [
            .always("code", .choice(of: HealthReason.Code.allCases), "The reason's word for programs."),
            .always("severity", .choice(of: StreamVerdict.allCases), "What it alone makes of the verdict; good: a note."),
            .maybe("value", .keywords("number"), "The measured value; absent when there is nothing to measure."),
            .maybe("expected", .keywords("number"), "The bound or the usual value."),
            .maybe("unit", .example("ms"), "The unit of both."),
            .always("message", .text, "What it means and what to do, in English."),
        ])

    static let member = Self.form(
        "MemberData", Self.room(),
        [
            .always("userId", .text, "The user."),
            .always("nick", .text, "The user's nickname."),
        ])

    static let queueChanged = Self.form(
        "QueueChangedData", Self.room(),
        [
            .always("action", .words(["OFFER", "POLL", "DROP"]), "OFFER: taken or changed; POLL: given up; DROP: its member has left."),
            .always("key", .text, "The member."), .always("value", .text, "What the member gave."),
        ])

    static let ticket = Self.form(
        "TicketData", Self.room(),
        [
            .always("ticketId", .text, "The ticket."), .always("kind", .example("speak"), "What is asked for; the app's word."),
            .always("from", .text, "The member that asks."), .always("to", .text, "The member that is asked."),
        ])

    static let sessionKicked = Self.form(
        "SessionKickedData",
        [
            Self.by, .always("sessionId", .natural, "The connection's number."),
            .always("transport", .example("rtmp"), "The protocol."),
            .always("clientAddress", .text, "The client's address."),
            .always("publishing", .list(.text), "The streams that it published, as app/name; 16 at most."),
            .always("playing", .list(.text), "The streams that it played, as app/name; 16 at most."),
        ])

    // MARK: Recordings and pictures

    private static let recordingTask: [Schema.Property] = [
        .always("slot", .count, "The stream's number in the room; 0 for talk."),
        .always("taskId", .text, "The task's id, shared by all files from one start to its end."),
    ]

    /// The members of any file.
    private static let file: [Schema.Property] = [
        .always("recordingId", .text, "The recording's id."),
        .always("part", .natural, "The file's number in its task."),
        .always("startedAt", .instant, "The time of the first frame."),
        .always("startedMs", .integer, "The same in milliseconds since 1970."),
        .always("durationMs", .count, "The file's length in milliseconds; 0 while it is being written."),
        .always("bytes", .count, "The file's size; 0 while it is being written."),
    ]

    private static let fileEnd: [Schema.Property] = [
        .always("endedAt", .instant, "The time of the last frame."),
        .always("endedMs", .integer, "The same in milliseconds since 1970."),
    ]

    private static let fileMedia: [Schema.Property] = [
        .maybe("videoCodec", .text, "The video codec's RFC 6381 name; absent without video."),
        .maybe("audioCodec", .text, "The audio codec's RFC 6381 name; absent without audio."),
        .maybe("width", .count, "Pixels; absent without video."),
        .maybe("height", .count, "Pixels; absent without video."),
    ]

    static let recordStarted = Self.form("RecordStartedData", Self.stream, Self.recordingTask, Self.file, Self.fileMedia)

    static let recordFinished = Self.form(
        "RecordFinishedData", Self.stream, Self.recordingTask, Self.file, Self.fileEnd, Self.fileMedia,
        [.always("reason", .choice(of: RecordingEnd.allCases.filter { !$0.isFailure }), "Why the file ended.")])

    /// The members of a file's failure, or of a task that failed before it had a file.
    static let recordFailed = Self.form(
        "RecordFailedData", Self.stream, Self.recordingTask, (Self.file + Self.fileEnd).map { $0.sometimes("file") }, Self.fileMedia,
        [.always("reason", .choice(of: RecordingEnd.allCases.filter(\.isFailure)), "Why the file, or a task without a file, failed.")])

    static let recordEnded = Self.form(
        "RecordEndedData", Self.stream, Self.recordingTask,
        [
            .always("reason", .choice(of: RecordingEnd.allCases), "Why the last file ended."),
            .always("files", .count, "The number of files."),
        ])

    static let snapshotTaken = Self.form(
        "SnapshotTakenData", Self.stream,
        [
            .always("slot", .count, "The stream's number in the room."),
            .always("snapshotId", .text, "The picture's id."),
            .always("takenAt", .instant, "When it was taken."),
            .always("takenMs", .integer, "The same in milliseconds since 1970."),
            .always("bytes", .count, "The file's size."),
            .always("width", .count, "Pixels."),
            .always("height", .count, "Pixels."),
        ])

    // MARK: Links

    private static let link: [Schema.Property] = [
        .always("linkId", .natural, "The link's number."),
        .always("direction", .choice(of: Link.Direction.allCases), "push: to the other server; pull: from there."),
        .always("target", .text, "The address on the other server, without the credential."),
    ]

    static let linkUp = Self.form("LinkUpData", Self.stream, Self.link)

    static let linkInterrupted = Self.form(
        "LinkInterruptedData", Self.stream, Self.link,
        [
            .maybe("reason", .example("connect"), "One word, for programs. There may be new ones.").sometimes("cause"),
            .maybe("error", .example("the connection was closed"), "The cause in a sentence.").sometimes("cause"),
        ])

    static let linkStopped = Self.form(
        "LinkStoppedData", Self.stream, Self.link,
        [
            .always("reason", .example("stream_ended"), "One word, for programs. There may be new ones."),
            .maybe("error", .example("the URL is not allowed"), "The cause in a sentence; absent when the link did not fail."),
        ])

    // MARK: Talk

    static let floorGranted = Self.floor("TalkFloorGrantedData", for: [.free, .turn, .handedOver, .preempted])

    static let floorDenied = Self.floor("TalkFloorDeniedData", for: [.muted, .queueFull, .notHolding, .notPublishing, .banned])

    static let floorRevoked = Self.floor(
        "TalkFloorRevokedData", for: [.maxHold, .preempted, .moderator, .muted, .kicked, .modeChanged, .limit, .closed], Self.held)

    /// The last reason is the store's own, for holders that the server's last run left.
    static let floorReleased = Self.floor(
        "TalkFloorReleasedData", for: [.asked, .unpublished, .idle, .handedOver], and: ["serverRestart"], Self.held)

    private static let held: [Schema.Property] = [
        .always("heldMs", .count, "How long the participant held the floor, in milliseconds.")
    ]

    private static func floor(
        _ name: String, for reasons: [FloorReason], and more: [String] = [], _ held: [Schema.Property] = []
    ) -> Schema {
        Self.form(
            name,
            [
                .always("userId", .text, "The participant."),
                .always("reason", .words(reasons.map(\.rawValue) + more), "The rule or the wish behind it."),
                .always("mode", .choice(of: FloorMode.allCases), "open: several may speak; ptt: one at a time."),
            ], held,
            [
                .maybe("by", .example("token:back-end"), "The other participant, or the caller; absent when the rules alone decided."),
                .maybe("caller", .example("token:back-end"), "token: and the name of the API token whose call caused it, if one did."),
            ])
    }

    // MARK: Clock

    static let clockLeapt = Self.form(
        "ClockLeaptData",
        [
            .always("byMs", .integer, "How far the clock was set forward (or back, below 0), in milliseconds."),
            .always("wallClock", .instant, "What the machine's clock shows."),
            .always("holdMs", .count, "How long the leap must hold until room time follows, in milliseconds."),
            .always("adoptsAt", .instant, "When room time follows if the leap holds."),
        ])
}
