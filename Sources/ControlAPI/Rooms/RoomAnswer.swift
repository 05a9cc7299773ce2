import Access
import HTTPAPI
import Packaging
import Rooms
import Streaming

/// A room and the current state of its streams: the answer of all room calls.
struct RoomAnswer: Sendable {
    let room: Room
    /// One for each slot.
    let streams: [SlotAnswer]
    /// Peak number of people online. Includes peaks that answers have shown but the store does not have yet.
    let peak: Int
    let isRecording: Bool
    /// A picture of slot 1; nil unless the room is live.
    let snapshotURL: String?

    struct SlotAnswer: Sendable {
        let slot: Room.Slot
        let viewers: Int
        /// Where its push runs; nil without one, and if the registry is not shared.
        let node: String?
        let playURLs: PlayURLs
    }

    /// `nodes`: names by the numbers of pushes.
    init(_ room: Room, _ call: APICall, nodes: [Int64: String]) throws {
        try self.init(room, call, call.urls(), nodes: nodes)
    }

    /// Uses one URL maker for a whole list.
    init(_ room: Room, _ call: APICall, _ urls: StreamURLs, nodes: [Int64: String]) throws {
        self.room = room
        self.isRecording = room.slots.contains { call.services.recordings.isRecording($0.path) }
        self.streams = try room.slots.map {
            SlotAnswer(
                slot: $0, viewers: call.services.streams.viewers(of: $0.path), node: $0.sequence.flatMap { nodes[$0] },
                playURLs: try .bare($0.path, urls))
        }
        self.online = max(self.streams.reduce(0) { $0 + $1.viewers }, room.members)
        self.snapshotURL = room.state == .live ? urls.api("rooms/\(room.id.rawValue)/snapshot.jpg") : nil
        let known = max(room.peak, room.state.isTerminal ? 0 : call.services.control.shownPeaks[room.id])
        self.peak = self.online > known && !room.state.isTerminal ? call.services.control.shownPeaks.raise(room.id, to: self.online) : known
    }

    /// The larger of connected viewers and users who joined through the API. (Both are mostly the same people.)
    let online: Int
}

extension RoomAnswer {
    private static let fields = Self.identity + Self.state + Self.counts + Self.times
    static let outputType = OutputType<RoomAnswer>.object("Room", Self.fields)

    /// The answer to a renewal. Another deadline may come before the renewed one.
    static let renewed = OutputType<RoomAnswer>.object(
        "RenewedRoom",
        Self.fields + [
            .field(
                "renewedUntil", .nullable(.instant),
                "The renewed deadline. If `expiresAt` is earlier, `expiresReason` names the deadline that comes first."
            ) { RoomRules.countdownEnd(of: $0.room) }
        ])

    private static let identity: [Field<RoomAnswer>] = [
        .field("roomId", .text, "The room's id.") { $0.room.id.rawValue },
        .field(
            "version", .text,
            """
            Changes with each event of the room, and when the room's times move with the clock. If-Match accepts it in quotes, or the \
            whole ETag.
            """,
            \.room.version),
        .field("instance", .whole(1...Int.max), "The number of this instance, from 1; each life of the id is one.", \.room.instance),
        .field("title", .text, "The title, for lists.", \.room.title),
        .field("owner", .nullable(.text), "The owner's user id.", \.room.owner),
        .field("isPublic", .flag, "Whether public lists may show the room.", \.room.isPublic),
        .field("isAdHoc", .flag, "Whether a push to a name without a room created it.", \.room.isAdHoc),
        .field("deviceUid", .nullable(.text), "The device that pushes slot 1.", \.room.deviceUid),
        .field("custom", .jsonObject, "The back end's own data.", \.room.custom),
    ]

    private static let state: [Field<RoomAnswer>] = [
        .field("state", .choice(), "The room's state; live only while media arrives.", \.room.state),
        .field("stateReason", .choice(), "Why the room is in this state.", \.room.reason),
        .field("liveStatus", .whole(0...3), "0 idle, 1 live, 2 disabled, 3 live and recording.") {
            $0.room.liveStatus(isRecording: $0.isRecording)
        },
        .field("streams", .list(Self.slot), "The room's streams, by slot.", \.streams),
        .field(
            "policy", Self.policy, "The room's times in seconds, the number heartbeatMisses, and whether the room is recorded.",
            \.room.policy),
        .field("playUrls", .nullable(PlayURLs.outputType), "Play URLs of slot 1, unsigned; the play-urls call returns signed ones.") {
            $0.streams.first?.playURLs
        },
        .field("snapshotUrl", .nullable(.uri), "URL of slot 1's picture (needs a token); null unless the room is live.", \.snapshotURL),
        .field("forbidReason", .nullable(.text), "Why the room is forbidden.", \.room.forbidReason),
    ]

    private static let counts: [Field<RoomAnswer>] = [
        .field("online", .count, "The larger of connected viewers and joined members.", \.online),
        .field("peak", .count, "Most people online at a time in this instance.", \.peak),
        .field("likes", .count, "Likes in this instance.", \.room.likes),
        .field("members", .count, "Users who have joined and not left.", \.room.members),
    ]

    private static let times: [Field<RoomAnswer>] = [
        .field("createdAt", .instant, "When this instance was created.", \.room.createdAt),
        .field("since", .instant, "When the room went live, was interrupted or ended; otherwise when it began to wait for media.") {
            let room = $0.room
            switch room.state {
            case .live: return room.liveSince ?? room.createdAt
            case .interrupted: return room.interruptedAt ?? room.createdAt
            case .expired, .closed: return room.endedAt ?? room.createdAt
            case .created, .forbidden: return room.waitingSince
            }
        },
        .field("liveSince", .nullable(.instant), "When the room went live; an interruption does not reset it.", \.room.liveSince),
        .field("interruptedAt", .nullable(.instant), "When the present interruption began.", \.room.interruptedAt),
        .field("endedAt", .nullable(.instant), "When the room expired or was closed.", \.room.endedAt),
        .field("expiresAt", .nullable(.instant), "When the room's next deadline passes, if nothing happens before.") {
            RoomRules.nextDeadline(of: $0.room)
        },
        .field(
            "expiresReason", .nullable(.choice()),
            """
            The deadline at `expiresAt`: resumeTime ends a ban, retention deletes the ended room, ownerAway marks the owner as away, and \
            all others end the room.
            """
        ) { RoomRules.deadline(of: $0.room)?.reason },
        .field("forbiddenUntil", .nullable(.instant), "When the room accepts pushes again.", \.room.forbiddenUntil),
    ]

    private static let slot = OutputType<SlotAnswer>.object(
        "RoomStream",
        [
            .field("slot", .whole(1...8), "The stream's number in the room.", \.slot.number),
            .field("app", .text, "The app.", \.slot.app),
            .field("name", .text, "The stream's name under the app.", \.slot.name),
            .field("isActive", .flag, "Whether the stream's media arrives.", \.slot.isActive),
            .field("isForbidden", .flag, "Whether the stream is forbidden.", \.slot.isForbidden),
            .field("sequence", .nullable(.count), "The number of the push that holds the stream.", \.slot.sequence),
            .field("node", .nullable(.text), "The node where that push runs; null without one, and for a server that is alone.", \.node),
            .field("viewers", .count, "Connected players.", \.viewers),
            .field("playUrls", PlayURLs.outputType, "Unsigned play URLs; the play-urls call returns signed ones.", \.playURLs),
        ])

    package static let policy = OutputType<RoomPolicy>.object(
        "Policy",
        RoomPolicy.fields.map { field in
            switch field.kind {
            case .duration: .field(field.name, .seconds, field.help, field.get)
            case .count: .field(field.name, .count, field.help, field.get)
            case .words(let words): .field(field.name, .words(words), field.help) { field.word(field.get($0)) ?? "" }
            }
        })
}

/// A page of rooms.
struct RoomListAnswer: Sendable {
    let page: RoomPage
    let rooms: [RoomAnswer]

    static let outputType = OutputType<RoomListAnswer>.object(
        "RoomList",
        [
            .field("total", .count, "The number of rooms on all pages.", \.page.total),
            .field(
                "totalIsCapped", .flag, "Whether there may be more than `total`: a search counts to 1000, and its pages go on to 10000.",
                \.page.totalIsCapped),
            .field("next", .nullable(.text), "Pass it as `after` to get the next page; null on the last page.", \.page.next),
            .field("list", .list(RoomAnswer.outputType), "The rooms of this page.", \.rooms),
        ])
}
