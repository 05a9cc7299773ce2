import Access
import HTTPAPI
import Rooms
import Streaming
import Talk
import Talkback

/// A talk channel and its participants.
struct TalkAnswer: Sendable {
    let room: RoomID
    let snapshot: TalkSnapshot
    let nowMs: Int64

    static let outputType = OutputType<TalkAnswer>.object(
        "Talk",
        [
            .field("roomId", .text, "The room.") { $0.room.rawValue },
            .field("mode", .choice(), "open: all talkers are heard; ptt: one at a time.", \.snapshot.settings.mode),
            .field("talkers", .count, "Maximum talkers at a time.", \.snapshot.settings.talkers),
            .field("listeners", .count, "Maximum listeners at a time.", \.snapshot.settings.listeners),
            .field("maxOpen", .count, "Maximum open microphones at a time, in mode open.", \.snapshot.settings.maxOpen),
            .field("maxHold", .seconds, "How long the floor may be held, in seconds, in mode ptt.", \.snapshot.settings.maxHoldMs),
            .field("preempts", .flag, "Whether a higher role takes the floor at once.", \.snapshot.settings.preempts),
            .field("ducks", .flag, "Whether a speaker hears the others at a lower volume.", \.snapshot.settings.ducks),
            .field("holders", .list(.text), "The participants that hold the floor now.", \.snapshot.holders),
            .field("waiting", .list(.text), "The participants that wait for the floor, the next one first.", \.snapshot.queue),
            .field("members", .list(Self.member), "The participants that send a voice, by user id.", \.snapshot.members),
            .field("listening", .count, "The number of listeners.", \.snapshot.listeners),
            .field("muted", .list(.text), "The participants that a call has muted, present or not.") {
                $0.snapshot.set.filter(\.isMuted).map(\.user)
            },
            .field("banned", .list(Self.ban), "The participants that may not join, with the end of each ban.") { answer in
                answer.snapshot.set.compactMap { setting in
                    setting.bannedUntilMs.flatMap { $0 > answer.nowMs ? Ban(user: setting.user, untilMs: $0) : nil }
                }
            },
            .field("mixes", .count, "Different mixes that have listeners; each is encoded once.", \.snapshot.mixes),
            .field("encodes", .count, "Blocks of mixes encoded since the channel began.", \.snapshot.encodes),
        ])

    private struct Ban: Sendable {
        let user: String
        let untilMs: Int64
    }

    private static let ban = OutputType<Ban>.object(
        "TalkBan",
        [
            .field("userId", .text, "The participant.", \.user),
            .field("forbiddenUntil", .instant, "When the participant may join again.", \.untilMs),
        ])

    private static let member = OutputType<TalkSnapshot.Member>.object(
        "TalkMember",
        [
            .field("userId", .text, "The participant.", \.userID),
            .field("role", .words(["host", "cohost", "guest"]), "The role, which decides who gets the floor first.") { $0.role.word },
            .field("hasFloor", .flag, "Whether the participant holds the floor.", \.hasFloor),
            .field("muted", .flag, "Whether a call muted the participant.", \.isMuted),
            .field("gainDb", .number, "The gain in dB.", \.gainDB),
            .field("speaking", .flag, "Whether the participant is speaking now.") { $0.report?.isSpeaking ?? false },
            .field("levelDb", .nullable(.number), "The level in dBFS, -100 for silence; null until first measured.") {
                $0.report.map { Self.rounded($0.levelDB) }
            },
            .field("codec", .nullable(.text), "The codec that the participant sends.") { $0.report?.codec },
            .field("jitterMs", .number, "The jitter of arrival in milliseconds (RFC 3550).") { Self.rounded($0.report?.counters.jitterMs) },
            .field("bufferMs", .number, "Milliseconds of audio in the jitter buffer.") { Self.rounded($0.report?.counters.depthMs) },
            .field("targetMs", .number, "The target of delayMs, derived from recent jitter.") {
                Self.rounded($0.report?.counters.targetMs)
            },
            .field("delayMs", .number, "Milliseconds from arrival to mixing.") { Self.rounded($0.report?.counters.delayMs) },
            .field("lostMs", .number, "Milliseconds missing by the timestamps; late audio counts in droppedMs.") {
                Self.ms($0.report?.counters.lost)
            },
            .field("concealedMs", .number, "Milliseconds synthesized in place of missing or late audio.") {
                Self.ms($0.report?.counters.concealed)
            },
            .field("droppedMs", .number, "Milliseconds dropped because they came in a burst or too late.") {
                Self.ms($0.report?.counters.dropped)
            },
            .field("underruns", .count, "Times that the buffer ran empty: audio came late, or sending paused.") {
                Int($0.report?.counters.underruns ?? 0)
            },
            .field("droppedFrames", .count, "Frames of a burst dropped without decoding; their time counts in droppedMs.") {
                $0.report?.droppedFrames ?? 0
            },
            .field("damagedFrames", .count, "Frames that could not be decoded.") { $0.report?.damaged ?? 0 },
            .field("mutedFrames", .count, "Frames dropped because the participant did not hold the floor.") { $0.leftOut?.muted ?? 0 },
            .field("otherFrames", .count, "Frames dropped because they were not audio.") { $0.leftOut?.notAudio ?? 0 },
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

    init(_ id: ParticipantID, _ status: FloorStatus) {
        self.user = id.rawValue
        switch status {
        case .holding: (self.state, self.position) = ("holding", nil)
        case .waiting(let position): (self.state, self.position) = ("waiting", position)
        case .none: (self.state, self.position) = ("none", nil)
        }
    }

    static let outputType = OutputType<FloorAnswer>.object(
        "Floor",
        [
            .field("userId", .text, "The participant.", \.user),
            .field("state", .words(["holding", "waiting", "none"]), "Whether the participant holds the floor or waits for it.", \.state),
            .field("position", .nullable(.count), "For a waiting participant: the place in the queue, from 1.", \.position),
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
            .field("publish", .nullable(.uri), "Where the participant publishes; null for a listener. Contains a credential.") {
                $0.canSpeak ? $0.urls.publish : nil
            },
            .field("play", .uri, "Where the participant hears everybody else, over RTMP. Contains a credential.", \.urls.play),
            .field("flv", .uri, "The same over HTTP-FLV; with ws:// in place of http:// over a WebSocket.", \.urls.flv),
            .field("mp4", .uri, "The same as endless fragmented MP4; with ws:// in place of http:// over a WebSocket.", \.urls.mp4),
            .field("expiresAt", .instant, "Talk may begin with the token until this time.", \.urls.expiresAt),
        ])
}
