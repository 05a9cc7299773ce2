import Access
import Delivery
import Rooms

/// A room and the current state of its streams: the answer of all room calls.
struct RoomAnswer: Sendable {
    let room: Room
    /// One for each slot.
    let streams: [SlotAnswer]
    /// Most people online at a time. Includes peaks that answers have shown but the store does not have yet.
    let peak: Int
    let isRecording: Bool
    /// A picture of slot 1; nil unless the room is live.
    let snapshotURL: String?

    struct SlotAnswer: Sendable {
        let slot: Room.Slot
        let viewers: Int
        let playURLs: PlayURLs
    }

    init(_ room: Room, _ call: APICall) throws {
        try self.init(room, call, call.urls())
    }

    /// Uses one URL maker for a whole list.
    init(_ room: Room, _ call: APICall, _ urls: StreamURLs) throws {
        self.room = room
        self.isRecording = room.slots.contains { call.core.recordings.isRecording($0.path) }
        self.streams = try room.slots.map {
            SlotAnswer(slot: $0, viewers: call.core.viewers(of: $0.path), playURLs: try .bare($0.path, urls))
        }
        self.online = max(self.streams.reduce(0) { $0 + $1.viewers }, room.members)
        self.snapshotURL = room.state == .live ? urls.api("rooms/\(room.id.rawValue)/snapshot.jpg") : nil
        let known = max(room.peak, room.state.isTerminal ? 0 : call.core.shownPeaks[room.id])
        self.peak = self.online > known && !room.state.isTerminal ? call.core.shownPeaks.raise(room.id, to: self.online) : known
    }

    /// The larger of connected viewers and users who joined through the API. (Both are mostly the same people.)
    let online: Int
}

extension RoomAnswer {
    private static let fields = Self.identity + Self.standing + Self.counts + Self.times
    static let outputType = OutputType<RoomAnswer>.object("Room", Self.fields)

    /// The answer to a renewal. Another deadline may come before the time that it gave.
    static let renewed = OutputType<RoomAnswer>.object(
        "RenewedRoom",
        Self.fields + [
            .field(
                "renewedUntil", .nullable(.instant),
                "What the renewal gave. Where `expiresAt` is earlier, `expiresReason` says which deadline comes before it."
            ) { RoomRules.countdownEnd(of: $0.room) }
        ])

    private static let identity: [Field<RoomAnswer>] = [
        .field("roomId", .text, "Its id.") { $0.room.id.rawValue },
        .field(
            "version", .text,
            "Another one after each event of the room, and when its times move with the clock; If-Match takes it in quotes, and the whole ETag.",
            \.room.version),
        .field("instance", .whole(1...Int.max), "Counts the lives of this id, from 1.", \.room.instance),
        .field("title", .text, "For lists.", \.room.title),
        .field("owner", .nullable(.text), "The owner's user id.", \.room.owner),
        .field("isPublic", .flag, "Whether lists for everybody may show it.", \.room.isPublic),
        .field("isAdHoc", .flag, "Made by a push to a name without a room.", \.room.isAdHoc),
        .field("deviceUid", .nullable(.text), "The device that pushes slot 1.", \.room.deviceUid),
        .field("custom", .jsonObject, "What the app keeps there.", \.room.custom),
    ]

    private static let standing: [Field<RoomAnswer>] = [
        .field("state", .choice(), "Live only while media arrives.", \.room.state),
        .field("stateReason", .choice(), "Why it is in this state.", \.room.reason),
        .field("liveStatus", .whole(0...3), "0 idle, 1 live, 2 disabled, 3 live and recording.") {
            $0.room.liveStatus(isRecording: $0.isRecording)
        },
        .field("streams", .list(Self.slot), "Its streams, by slot.", \.streams),
        .field("policy", Self.policy, "How its time runs out, in seconds but for heartbeatMisses; and what is kept of it.", \.room.policy),
        .field("playUrls", .nullable(PlayURLs.outputType), "Of slot 1, without a signature; the play-urls call signs.") {
            $0.streams.first?.playURLs
        },
        .field("snapshotUrl", .nullable(.uri), "A picture of it, for whoever has a token; null while it is not live.", \.snapshotURL),
        .field("forbidReason", .nullable(.text), "Why it is forbidden.", \.room.forbidReason),
    ]

    private static let counts: [Field<RoomAnswer>] = [
        .field("online", .count, "The larger of connected viewers and joined members.", \.online),
        .field("peak", .count, "Most people online at a time in this instance.", \.peak),
        .field("likes", .count, "Likes in this instance.", \.room.likes),
        .field("members", .count, "Users who joined and did not leave.", \.room.members),
    ]

    private static let times: [Field<RoomAnswer>] = [
        .field("createdAt", .instant, "When this instance was created.", \.room.createdAt),
        .field("since", .instant, "Since when it is live, or else in its state.") {
            let room = $0.room
            switch room.state {
            case .live: return room.liveSince ?? room.createdAt
            case .interrupted: return room.interruptedAt ?? room.createdAt
            case .expired, .closed: return room.endedAt ?? room.createdAt
            case .created, .forbidden: return room.waitingSince
            }
        },
        .field("liveSince", .nullable(.instant), "Since when it is live, or was before the present interruption.", \.room.liveSince),
        .field("interruptedAt", .nullable(.instant), "When the present interruption began.", \.room.interruptedAt),
        .field("endedAt", .nullable(.instant), "When it expired or was closed.", \.room.endedAt),
        .field("expiresAt", .nullable(.instant), "When time will next do something to it, if nothing happens before.") {
            RoomRules.nextDeadline(of: $0.room)
        },
        .field(
            "expiresReason", .nullable(.choice()),
            "Which deadline that is: it ends the room, or its ban (resumeTime), or what is known of it (retention), or begins the owner's absence (ownerAway)."
        ) { RoomRules.deadline(of: $0.room)?.reason },
        .field("forbiddenUntil", .nullable(.instant), "When it may be pushed to again.", \.room.forbiddenUntil),
    ]

    private static let slot = OutputType<SlotAnswer>.object(
        "RoomStream",
        [
            .field("slot", .whole(1...8), "Its number in the room.", \.slot.number),
            .field("app", .text, "The app.", \.slot.app),
            .field("name", .text, "The stream's name under the app.", \.slot.name),
            .field("isActive", .flag, "Its media arrives.", \.slot.isActive),
            .field("isForbidden", .flag, "Nobody may push there now.", \.slot.isForbidden),
            .field("sequence", .nullable(.count), "The push that holds it.", \.slot.sequence),
            .field("viewers", .count, "Connected players.", \.viewers),
            .field("playUrls", PlayURLs.outputType, "Without a signature; the play-urls call signs.", \.playURLs),
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
            .field("total", .count, "How many there are on all pages.", \.page.total),
            .field("totalIsCapped", .flag, "There are more than `total`: a search is not counted to its end.", \.page.totalIsCapped),
            .field("next", .nullable(.text), "For `after`; null on the last page.", \.page.next),
            .field("list", .list(RoomAnswer.outputType), "The page.", \.rooms),
        ])
}
