import Access
import Delivery
import Rooms
import Talk

/// A talk channel and its participants.
struct TalkAnswer: Sendable {
    let room: RoomID
    let snapshot: TalkSnapshot
    let nowMs: Int64

    static let outputType = OutputType<TalkAnswer>.object(
        "Talk",
        [
            .field("roomId", .text, "The room.") { $0.room.rawValue },
            .field("mode", .choice(), "open: all who talk are heard; ptt: one at a time.", \.snapshot.settings.mode),
            .field("talkers", .count, "Talkers at a time.", \.snapshot.settings.talkers),
            .field("listeners", .count, "Listeners at a time.", \.snapshot.settings.listeners),
            .field("maxOpen", .count, "Open microphones at a time, in mode open.", \.snapshot.settings.maxOpen),
            .field("maxHold", .seconds, "How long the floor may be held, in mode ptt.", \.snapshot.settings.maxHoldMs),
            .field("preempts", .flag, "Whether a higher role takes the floor at once.", \.snapshot.settings.preempts),
            .field("ducks", .flag, "Whether who speaks hears the others less loud.", \.snapshot.settings.ducks),
            .field("holders", .list(.text), "Who may speak now.", \.snapshot.holders),
            .field("waiting", .list(.text), "Who waits for the floor, first come first.", \.snapshot.queue),
            .field("members", .list(Self.member), "Who sends a voice, by user id.", \.snapshot.members),
            .field("listening", .count, "How many listen.", \.snapshot.listeners),
            .field("muted", .list(.text), "Who is left out by a call, there or not.") { $0.snapshot.set.filter(\.isMuted).map(\.user) },
            .field("banned", .list(Self.ban), "Who may not come, and until when.") { answer in
                answer.snapshot.set.compactMap { setting in
                    setting.bannedUntilMs.flatMap { $0 > answer.nowMs ? Ban(user: setting.user, untilMs: $0) : nil }
                }
            },
            .field("mixes", .count, "Different mixes that are listened to: each is encoded once.", \.snapshot.mixes),
            .field("encodes", .count, "Runs encoded since the channel began.", \.snapshot.encodes),
        ])

    private struct Ban: Sendable {
        let user: String
        let untilMs: Int64
    }

    private static let ban = OutputType<Ban>.object(
        "TalkBan",
        [
            .field("userId", .text, "The participant.", \.user),
            .field("forbiddenUntil", .instant, "When it may come again.", \.untilMs),
            .former("until", of: "forbiddenUntil", .instant, \.untilMs),
        ])

    private static let member = OutputType<TalkSnapshot.Member>.object(
        "TalkMember",
        [
            .field("userId", .text, "The participant.", \.userID),
            .field("role", .words(["host", "cohost", "guest"]), "Who goes first.") { $0.role.word },
            .field("hasFloor", .flag, "Whether it is heard.", \.hasFloor),
            .field("muted", .flag, "Left out by a call.", \.isMuted),
            .field("gainDb", .number, "How much louder it is made.", \.gainDB),
            .field("speaking", .flag, "Whether there is a voice now.") { $0.report?.isSpeaking ?? false },
            .field("levelDb", .nullable(.number), "How loud, in dBFS: -100 is silence; null until it is listened to.") {
                $0.report.map { Self.rounded($0.levelDB) }
            },
            .field("codec", .nullable(.text), "What it sends.") { $0.report?.codec },
            .field("jitterMs", .number, "How unevenly it arrives (RFC 3550).") { Self.rounded($0.report?.counters.jitterMs) },
            .field("bufferMs", .number, "How much of it waits to be played.") { Self.rounded($0.report?.counters.depthMs) },
            .field("targetMs", .number, "How much is to wait, by the jitter of late.") { Self.rounded($0.report?.counters.targetMs) },
            .field("delayMs", .number, "From its arrival to its being mixed.") { Self.rounded($0.report?.counters.delayMs) },
            .field("lostMs", .number, "Missing between its timestamps; what came too late is in droppedMs.") {
                Self.ms($0.report?.counters.lost)
            },
            .field("concealedMs", .number, "Made up where it was late.") { Self.ms($0.report?.counters.concealed) },
            .field("droppedMs", .number, "Left out because it came in a burst, decoded or not.") { Self.ms($0.report?.counters.dropped) },
            .field("underruns", .count, "How often the buffer ran dry: because sound came late, or because it paused in sending.") {
                Int($0.report?.counters.underruns ?? 0)
            },
            .field("droppedFrames", .count, "Frames of a burst that were left out without being decoded; their time is in droppedMs.") {
                $0.report?.droppedFrames ?? 0
            },
            .field("damagedFrames", .count, "Frames that could not be decoded.") { $0.report?.damaged ?? 0 },
            .field("mutedFrames", .count, "Frames that came without the floor.") { $0.leftOut?.muted ?? 0 },
            .field("otherFrames", .count, "Frames that were no audio, and were left out.") { $0.leftOut?.notAudio ?? 0 },
        ])

    private static func rounded(_ value: Double?) -> Double { ((value ?? 0) * 10).rounded() / 10 }
    private static func ms(_ samples: Int64?) -> Double { self.rounded(Double(samples ?? 0) * 1_000 / Double(TalkFormat.sampleRate)) }
}

extension TalkRole {
    fileprivate var word: String {
        switch self {
        case .host: "host"
        case .coHost: "cohost"
        case .guest: "guest"
        }
    }
}

/// A participant's floor state after a floor call.
struct FloorAnswer: Sendable {
    let user: String
    let state: String
    let position: Int?

    init(_ id: ParticipantID, _ standing: FloorStanding) {
        self.user = id.rawValue
        switch standing {
        case .holding: (self.state, self.position) = ("holding", nil)
        case .waiting(let position): (self.state, self.position) = ("waiting", position)
        case .none: (self.state, self.position) = ("none", nil)
        }
    }

    static let outputType = OutputType<FloorAnswer>.object(
        "Floor",
        [
            .field("userId", .text, "The participant.", \.user),
            .field("state", .words(["holding", "waiting", "none"]), "Whether it may speak.", \.state),
            .field("position", .nullable(.count), "Of who waits: the place in the queue, from 1.", \.position),
        ])
}

/// The URLs with which a participant speaks and listens.
struct TalkURLsAnswer: Sendable {
    let room: RoomID
    let user: String
    let canSpeak: Bool
    let urls: StreamURLs.Talk

    static let outputType = OutputType<TalkURLsAnswer>.object(
        "TalkUrls",
        [
            .field("roomId", .text, "The room.") { $0.room.rawValue },
            .field("userId", .text, "The participant.", \.user),
            .field("token", .text, "The credential in the URLs.", \.urls.token),
            .field("publish", .nullable(.uri), "Where it speaks; null for a listener. Holds a credential.") {
                $0.canSpeak ? $0.urls.publish : nil
            },
            .field("play", .uri, "Where it hears everybody else. Holds a credential.", \.urls.play),
            .field("expiresAt", .instant, "Until when talk may begin with it.", \.urls.expiresAt),
        ])
}
