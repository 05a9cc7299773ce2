import HTTPAPI
import HTTPTypes
import RoomRegistry
import Rooms

enum MemberRoutes {
    /// Members of rooms.
    static let all: [ControlRoute] = [
        ControlRoute(
            storing: "/rooms/{roomId}/join", "joinRoom", .members, .backend, .room, "Add a user to a room. Joining again updates the nick.",
            in: [RoomInputs.room], body: [RoomInputs.user, RoomInputs.nick], answers: Member.outputType,
            failures: [.conflict]
        ) { call, keep in
            let (id, user, nick) = (try call.value(RoomInputs.room), try call.value(RoomInputs.user), try call.value(RoomInputs.nick))
            return try await keep({ $0 }) { try await call.rooms.join(id, user: user, nick: nick, keeping: $0) }
        },
        ControlRoute(
            storing: "/rooms/{roomId}/leave", "leaveRoom", .members, .backend, .room, "Remove a user from a room.",
            in: [RoomInputs.room],
            body: [RoomInputs.user], answers: .nothing, failures: [.conflict]
        ) { call, keep in
            let (id, user) = (try call.value(RoomInputs.room), try call.value(RoomInputs.user))
            try await keep({}) { try await call.rooms.leave(id, user: user, keeping: $0) }
        },
        ControlRoute(
            .get, "/rooms/{roomId}/members", "listMembers", .members, .backend, .room, "List a room's members, by user id.",
            in: [RoomInputs.room], query: [RoomInputs.afterUser, RoomInputs.limit],
            answers: MemberListAnswer.outputType
        ) { call in
            let limit = Int(try call.value(RoomInputs.limit))
            let (total, list) = try await call.rooms.members(
                try call.value(RoomInputs.room), after: call[RoomInputs.afterUser], limit: limit)
            return MemberListAnswer(total: total, next: list.count == limit ? list.last?.user : nil, list: list)
        },
        ControlRoute(
            storing: "/rooms/{roomId}/members/{userId}/kick", "kickMember", .members, .backend, .room,
            "Kick a user: ends the user's connections, and refuses the user's joins, pushes, plays and talk for a while.",
            in: [RoomInputs.room, RoomInputs.user], body: [RoomInputs.kick], answers: .nothing, failures: [.conflict]
        ) { call, keep in
            let (id, user) = (try call.value(RoomInputs.room), try call.value(RoomInputs.user))
            let forMs = try call.value(RoomInputs.kick)
            try await keep({}) { try await call.rooms.kick(id, user: user, forMs: forMs, by: call.actor, keeping: $0) }
        },
    ]
}

extension Member {
    static let outputType = OutputType<Member>.object(
        "Member",
        [
            .field("userId", .text, "The user's id.", \.user),
            .field("nick", .text, "The nick, for lists.", \.nick),
            .field("joinedAt", .instant, "When the user joined.", \.joinedAt),
            .field("seenAt", .instant, "When the user's last join or heartbeat arrived.", \.seenAt),
        ])
}

struct MemberListAnswer: Sendable {
    let total: Int
    let next: String?
    let list: [Member]

    static let outputType = OutputType<MemberListAnswer>.object(
        "MemberList",
        [
            .field("total", .count, "The number of members on all pages.", \.total),
            .field("next", .nullable(.text), "Pass it as `after` to get the next page; null on the last page.", \.next),
            .field("list", .list(Member.outputType), "The members of this page.", \.list),
        ])
}
