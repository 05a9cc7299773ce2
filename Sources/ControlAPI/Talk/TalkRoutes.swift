import Access
import HTTPAPI
import HTTPServer
import HTTPTypes
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support
import Talk
import Talkback

/// Inputs of the talk channel calls.
private enum TalkInputs {
    enum Action: String, Sendable, CaseIterable { case request, release, revoke, handOver }
    /// Roles, as tokens and calls name them.
    enum Role: String, Sendable, CaseIterable {
        case host, cohost, guest, listener

        var talk: TalkRole {
            switch self {
            case .host: .host
            case .cohost: .coHost
            case .guest, .listener: .guest
            }
        }
    }

    static let mode = Input("mode", .choice() as InputType<TalkSettings.Mode>, "open: all talkers are heard; ptt: one at a time.")
    static let talkers = Input("talkers", Self.count(TalkSettings.talkerRange), "Maximum talkers at a time.")
    static let listeners = Input("listeners", Self.count(TalkSettings.listenerRange), "Maximum listeners at a time.")
    static let maxOpen = Input("maxOpen", Self.count(TalkSettings.talkerRange), "Maximum open microphones at a time, in mode open.")
    static let maxHold = Input("maxHold", .seconds(TalkSettings.holdRange), "How long the floor may be held, in seconds, in mode ptt.")
    static let preempts = Input("preempts", .flag, "Whether a higher role takes the floor at once, in mode ptt.")
    static let ducks = Input("ducks", .flag, "Whether a speaker hears the others at a lower volume.")
    static let settings: [any RequestInput] = [
        Self.mode, Self.talkers, Self.listeners, Self.maxOpen, Self.maxHold, Self.preempts,
        Self.ducks,
    ]

    static let action = Input(
        "action", .choice() as InputType<Action>,
        "request: asks for the floor; release: gives it back; revoke: takes it away; handOver: gives it to the participant in `to`."
    ).required
    static let user = Input("userId", .id, "The participant.").required
    static let to = Input("to", .id, "For handOver: the participant who gets the floor.")
    static let role = Input(
        "role", .choice() as InputType<Role>,
        "The role, which decides who gets the floor first; if omitted, the participant's own role.")
    static let muted = Input("muted", .flag, "Whether the participant is left out of all mixes; unchanged if omitted.")
    static let gain = Input("gainDb", .whole(-60...18), "The participant's gain in dB; unchanged if omitted.")
    static let ban = Input(
        "seconds", .seconds(0...Kick.longestMs), "Seconds for which the participant may not come back: 10 if omitted, 0 for none.")
    static let tokenRole = Input("role", .choice() as InputType<Role>, "The holder's role; a listener may only listen.", fallback: .guest)
    static let lifetime = Input(
        "lifetime", .whole(StreamURLs.lifetimeSeconds),
        "Seconds for which talk may begin with the token; if omitted, the room's policy.urlLifetime.")

    private static func count(_ range: ClosedRange<Int>) -> InputType<Int64> { .whole(Int64(range.lowerBound)...Int64(range.upperBound)) }
}

enum TalkRoutes {
    /// Calls about the talk channels of rooms.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/rooms/{roomId}/talk", "getTalk", .talk, .backend, .room, "Get a room's talk channel: its rules and its participants.",
            in: [RoomInputs.room], answers: TalkAnswer.outputType, home: .room
        ) { call in
            let room = try await Self.room(call)
            return try await Self.answer(room.id, call)
        },
        ControlRoute(
            .patch, "/rooms/{roomId}/talk", "changeTalk", .talk, .backend, .room, "Change a talk channel's rules. Its participants stay.",
            in: [RoomInputs.room], body: TalkInputs.settings, answers: TalkAnswer.outputType, home: .room
        ) { call in
            let room = try await Self.room(call)
            let (mode, talkers, listeners) = (call[TalkInputs.mode], call[TalkInputs.talkers], call[TalkInputs.listeners])
            let (maxOpen, maxHold) = (call[TalkInputs.maxOpen], call[TalkInputs.maxHold])
            let (preempts, ducks) = (call[TalkInputs.preempts], call[TalkInputs.ducks])
            let (services, actor) = (call.services, call.actor)
            try await call.rooms.changeTalkSettings(of: room.id, from: call.services.config.talk.settings) { settings in
                if let mode { settings.mode = mode }
                if let talkers { settings.talkers = Int(talkers) }
                if let listeners { settings.listeners = Int(listeners) }
                if let maxOpen { settings.maxOpen = Int(maxOpen) }
                if let maxHold { settings.maxHoldMs = maxHold }
                if let preempts { settings.preempts = preempts }
                if let ducks { settings.ducks = ducks }
            } stored: { settings in
                services.talk.find(room.id)?.set(settings, by: actor)
            }
            return try await Self.answer(room.id, call)
        },
        ControlRoute(
            .post, "/rooms/{roomId}/talk/floor", "changeFloor", .talk, .backend, .room,
            "Request the floor, give it back, take it away or hand it over.", in: [RoomInputs.room],
            body: [TalkInputs.action, TalkInputs.user, TalkInputs.to, TalkInputs.role],
            answers: FloorAnswer.outputType, failures: [.conflict], home: .room
        ) { call in
            let (channel, room) = try await Self.channel(call)
            let id = try ParticipantID(checking: try call.value(TalkInputs.user), "userId")
            let role = call[TalkInputs.role]?.talk
            switch try call.value(TalkInputs.action) {
            case .request:
                let asked = try Self.floor(channel, .requested(id, role ?? channel.role(of: id, owner: room.owner)), of: id, call)
                if let denied = asked.events.first(where: { $0.kind == .denied && $0.participant == id }) {
                    throw Self.denied(id, denied.reason)
                }
                return FloorAnswer(id, asked.status)
            case .release: return FloorAnswer(id, try Self.floor(channel, .released(id), of: id, call).status)
            case .revoke: return FloorAnswer(id, try Self.floor(channel, .revoked(id, by: nil), of: id, call).status)
            case .handOver:
                guard let text = call[TalkInputs.to] else { throw APIError(FieldError("to", "", "is required with handOver")) }
                let to = try ParticipantID(checking: text, "to")
                let change = try Self.floor(
                    channel, .handedOver(from: id, to: to, role ?? channel.role(of: to, owner: room.owner)), of: to, call)
                guard change.events.contains(where: { $0.kind == .granted && $0.participant == to }) else {
                    throw Self.notHandedOver(id, to, change.events.first { $0.kind == .denied }?.reason)
                }
                return FloorAnswer(to, change.status)
            }
        },
        ControlRoute(
            storing: "/rooms/{roomId}/talk/members/{userId}/mute", "muteTalker", .talk, .backend, .room,
            "Mute or unmute a participant, or set its gain. The setting stays with the room.",
            in: [RoomInputs.room, TalkInputs.user], body: [TalkInputs.muted, TalkInputs.gain],
            answers: TalkAnswer.outputType, failures: [.conflict], home: .room
        ) { call, keep in
            let (_, room) = try await Self.channel(call)
            let id = try ParticipantID(checking: try call.value(TalkInputs.user), "userId")
            guard call[TalkInputs.muted] != nil || call[TalkInputs.gain] != nil else {
                throw APIError(FieldError("muted", "", "is required, unless gainDb is given"))
            }
            let (muted, gain) = (call[TalkInputs.muted], call[TalkInputs.gain])
            return try await Self.change(id, room, call, keep) { setting in
                if let muted { setting.isMuted = muted }
                if let gain { setting.gainDB = Double(gain) }
            }
        },
        ControlRoute(
            storing: "/rooms/{roomId}/talk/members/{userId}/kick", "kickTalker", .talk, .backend, .room,
            "Kick a participant from the talk channel. Other streams of the same connection continue.",
            in: [RoomInputs.room, TalkInputs.user], body: [TalkInputs.ban], answers: TalkAnswer.outputType,
            failures: [.conflict], home: .room
        ) { call, keep in
            let (channel, room) = try await Self.channel(call)
            let id = try ParticipantID(checking: try call.value(TalkInputs.user), "userId")
            let asked = call[TalkInputs.ban]
            // Without a time, kicking an absent participant is a mistake; with one, it bans somebody who may come later.
            guard asked ?? 0 > 0 || channel.has(id) else { throw APIError.notFound("participant", id.rawValue, field: "userId") }
            let ban = asked ?? Kick.defaultMs
            guard ban > 0 else {
                // Only ends connections. They end with the process anyway, so the answer need not outlive it.
                _ = channel.kick(id, by: call.actor)
                return try await Self.answer(room.id, call)
            }
            let until = call.nowMs + ban
            return try await Self.change(id, room, call, keep) { setting in
                // The default length never shortens an earlier ban.
                setting.bannedUntilMs = asked == nil ? max(setting.bannedUntilMs ?? 0, until) : until
            } then: {
                _ = channel.kick(id, by: call.actor)
            }
        },
        ControlRoute(
            storing: "/rooms/{roomId}/talk/members/{userId}/allow", "allowTalker", .talk, .backend, .room,
            "Let a kicked participant come back before its ban ends.", in: [RoomInputs.room, TalkInputs.user],
            answers: TalkAnswer.outputType, home: .room
        ) { call, keep in
            let room = try await Self.room(call)
            let id = try ParticipantID(checking: try call.value(TalkInputs.user), "userId")
            return try await Self.change(id, room, call, keep) { $0.bannedUntilMs = nil }
        },
        ControlRoute(
            .post, "/rooms/{roomId}/talk/token", "makeTalkToken", .talk, .backend, .room,
            "Make a token for one participant, and the URLs to speak and listen with it.", in: [RoomInputs.room],
            body: [TalkInputs.user, TalkInputs.tokenRole, TalkInputs.lifetime], answers: TalkURLsAnswer.outputType,
            effect: .nothing
        ) { call in
            let room = try await Self.room(call)
            let id = try ParticipantID(checking: try call.value(TalkInputs.user), "userId")
            let role = try call.value(TalkInputs.tokenRole)
            let lifetime = call[TalkInputs.lifetime] ?? max(1, room.policy.urlLifetimeMs / 1_000)
            let urls = try call.urls().talk(
                room.id, id, role: role == .listener ? "viewer" : role.rawValue, lifetimeSeconds: lifetime, nowMs: WallClock.ms)
            return TalkURLsAnswer(room: room.id, user: id.rawValue, canSpeak: role != .listener, urls: urls)
        },
    ]

    private static func answer(_ id: RoomID, _ call: APICall) async throws -> TalkAnswer {
        var snapshot: TalkSnapshot
        if let channel = call.services.talk.find(id) {
            snapshot = channel.snapshot
        } else {
            snapshot = TalkSnapshot(settings: try await call.rooms.talkSettings(id) ?? call.services.config.talk.settings)
        }
        snapshot.set = try await call.rooms.talkMembers(id)
        return TalkAnswer(room: id, snapshot: snapshot, nowMs: call.nowMs)
    }

    /// Stores a participant's setting and applies it to the channel in the order of storing. `then` runs after that.
    private static func change(
        _ id: ParticipantID, _ room: Room, _ call: APICall, _ keep: AnswerKeeper<TalkAnswer>,
        _ change: @escaping @Sendable (inout TalkMemberSetting) -> Void, then: @escaping @Sendable () -> Void = {}
    ) async throws -> TalkAnswer {
        let (services, actor, nowMs) = (call.services, call.actor, call.nowMs)
        @Sendable func apply(_ keeping: KeptAnswer<TalkMemberChange>?) async throws -> TalkMemberChange {
            try await services.rooms.changeTalkMember(id.rawValue, of: room.id, keeping: keeping, change) { setting in
                services.talk.find(room.id)?.set(setting, of: id, by: actor)
                then()
            }
        }
        guard keep.isKeyed else {
            _ = try await apply(nil)
            return try await Self.answer(room.id, call)
        }
        let before = try await Self.answer(room.id, call).snapshot
        return try await keep({ (change: TalkMemberChange) in
            // Runs inside the transaction; the channel gets the change after the commit.
            TalkAnswer(room: room.id, snapshot: before.after(change, nowMs: nowMs), nowMs: nowMs)
        }) { try await apply($0) }
    }

    private static func floor(
        _ channel: TalkChannel, _ input: FloorInput, of id: ParticipantID, _ call: APICall
    ) throws -> (events: [FloorEvent], status: FloorStatus) {
        guard let change = channel.floor(input, of: id, by: call.actor) else {
            throw APIError.wrongState(
                "The talk channel of room \(channel.roomID) has ended.", state: "closed",
                allowed: [RoomState.live, .interrupted].map(\.rawValue))
        }
        return change
    }

    private static func notHandedOver(_ from: ParticipantID, _ to: ParticipantID, _ reason: FloorReason?) -> APIError {
        switch reason {
        case .notHolding: .wrongState("\(from) does not have the floor to hand it over.", state: "not holding", allowed: ["holding"])
        case let reason?: Self.denied(to, reason)
        case nil: .wrongState("\(to) has the floor already.", state: "holding", allowed: [])
        }
    }

    private static func denied(_ id: ParticipantID, _ reason: FloorReason) -> APIError {
        let why =
            switch reason {
            case .muted: "is muted"
            case .banned: "was kicked"
            case .notPublishing: "does not publish to the room's talk channel now"
            case .queueFull: "finds the queue full"
            default: "may not have it (\(reason.rawValue))"
            }
        return .wrongState("\(id) \(why) and cannot get the floor.", state: reason.rawValue, allowed: [])
    }

    /// The call's room, by its id or its device's name. Throws 404 for one that the token does not cover.
    private static func room(_ call: APICall) async throws -> Room {
        let name = try call.value(RoomInputs.room)
        let room = try await call.rooms.room(named: name)
        guard call.scope.holds(room) else { throw RegistryError.noSuchRoom(name) }
        return room
    }

    /// The call's room and its talk channel. Throws when the room's state allows no talk.
    private static func channel(_ call: APICall) async throws -> (TalkChannel, Room) {
        let room = try await Self.room(call)
        guard room.allowsTalk(always: call.services.config.talk.always) else {
            throw APIError.wrongState(
                "Room \(room.id) is \(room.state.rawValue); its talk channel is open while it is live.", state: room.state.rawValue,
                allowed: [RoomState.live, .interrupted].map(\.rawValue))
        }
        return (try await call.services.talk.channel(of: room), room)
    }
}

extension ParticipantID {
    fileprivate init(checking text: String, _ field: String) throws(APIError) {
        do throws(TalkAddressError) { try self.init(text) } catch { throw APIError(FieldError(field, text, "\(error)")) }
    }
}
