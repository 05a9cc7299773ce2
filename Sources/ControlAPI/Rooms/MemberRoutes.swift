import HTTPTypes
import Rooms

extension APIRoute {
    /// Members of rooms.
    static let members: [APIRoute] = [
        APIRoute(
            storing: "/rooms/{roomId}/join", "joinRoom", .members, .app, "A user enters; entering again renews the nick.",
            in: [RoomInputs.room.erased], body: [RoomInputs.user.erased, RoomInputs.nick.erased], answers: Member.outputType,
            failures: [.conflict]
        ) { call, keep in
            let (id, user, nick) = (try call.value(RoomInputs.room), try call.value(RoomInputs.user), try call.value(RoomInputs.nick))
            return try await keep({ $0 }) { try await call.rooms.join(id, user: user, nick: nick, keeping: $0) }
        },
        APIRoute(
            storing: "/rooms/{roomId}/leave", "leaveRoom", .members, .app, "A user leaves.", in: [RoomInputs.room.erased],
            body: [RoomInputs.user.erased], answers: .nothing, failures: [.conflict]
        ) { call, keep in
            let (id, user) = (try call.value(RoomInputs.room), try call.value(RoomInputs.user))
            try await keep({}) { try await call.rooms.leave(id, user: user, keeping: $0) }
        },
        APIRoute(
            .get, "/rooms/{roomId}/members", "listMembers", .members, .app, "Who is there, by user id.", in: [RoomInputs.room.erased],
            query: [RoomInputs.afterUser.erased, RoomInputs.limit.erased], answers: MemberListAnswer.outputType
        ) { call in
            let limit = Int(try call.value(RoomInputs.limit))
            let (total, list) = try await call.rooms.members(
                try call.value(RoomInputs.room), after: call[RoomInputs.afterUser], limit: limit)
            return MemberListAnswer(total: total, next: list.count == limit ? list.last?.user : nil, list: list)
        },
        APIRoute(
            storing: "/rooms/{roomId}/members/{userId}/kick", "kickMember", .members, .app,
            "Throw a user out: the user's connections end, and it stays out for a while: joins, pushes, plays and talk are refused.",
            in: [RoomInputs.room.erased, RoomInputs.user.erased], body: [RoomInputs.kick.erased], answers: .nothing, failures: [.conflict]
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
            .field("nick", .text, "For lists.", \.nick),
            .field("joinedAt", .instant, "When the user entered.", \.joinedAt),
            .field("seenAt", .instant, "The last heartbeat or call.", \.seenAt),
        ])
}

struct MemberListAnswer: Sendable {
    let total: Int
    let next: String?
    let list: [Member]

    static let outputType = OutputType<MemberListAnswer>.object(
        "MemberList",
        [
            .field("total", .count, "How many there are on all pages.", \.total),
            .field("next", .nullable(.text), "For `after`; null on the last page.", \.next),
            .field("list", .list(Member.outputType), "The page.", \.list),
        ])
}
