import Access
import Apps
package import HTTPAPI
import HTTPServer
import HTTPTypes
import RoomRegistry
import Rooms
import ServerConfiguration
import Support

/// Inputs of the calls on gatherings.
enum GatheringInputs {
    static let id = Input(
        "gatheringId", .soughtName(length: 1...300),
        "The gathering's id: its kind and its room, as in plain-cam1; the room's id of a class or a machine."
    ).required
    static let room = Input("roomId", .id, "The room's id.").required
    static let member = Input("userId", .id, "The member.").required
    static let user = Input("userId", .id, "The user's id.").required
    static let key = Input("key", .id, "The member whose place it is.").required
    static let kind = Input("kind", .choice() as InputType<GatheringKind>, "Only gatherings of this kind.")
    static let tokenKind = Input(
        "kind", .choice() as InputType<ChannelKind>, "plain: chat, presence and a queue at /channel; mesh: a room at /mesh.",
        fallback: .plain)
    static let name = Input(
        "name", .text(length: 0...GatheringLimits.nameBytes), "The name that others see; the userId if omitted.", fallback: "")
    static let role = Input(
        "role", .choice() as InputType<GatheringRole>, "host: may act for others, and take the first out of the queue.", fallback: .member)
    static let after = Input("after", .sought(length: 1...300), "The `next` of the previous page.")
    static let limit = Input("limit", .whole(1...1_000), "The maximum number of gatherings.", fallback: 1_000)
    static let lifetime = Input(
        "lifetime", .whole(StreamURLs.lifetimeSeconds), "Seconds for which a connection may begin with the token; a day if omitted.",
        fallback: 86_400)
}

/// The kinds of gatherings.
enum GatheringKind: String, Sendable, CaseIterable {
    case plain, mesh
    case classroom = "class"
    case machine
}

/// The kinds for which the API makes tokens. Classes and machines make their own.
enum ChannelKind: String, Sendable, CaseIterable { case plain, mesh }

/// The rights of a channel token's holder.
enum GatheringRole: String, Sendable, CaseIterable { case member, host }

package enum GatheringRoutes {
    /// Gatherings of apps: members, queues, and tokens for admission.
    package static let all: [Route<AppServices>] = [
        Route<AppServices>(
            .get, "/gatherings", "listGatherings", .gatherings, .backend, .list,
            "List the gatherings in use, by id: channels, mesh rooms, classes and claw machines.",
            query: [GatheringInputs.kind, GatheringInputs.after, GatheringInputs.limit],
            answers: GatheringListAnswer.outputType
        ) { call in
            let kind = call[GatheringInputs.kind]
            let apps = call.services
            var all = kind == .mesh ? [] : apps.gatherings.all
            if let kind { all.removeAll { $0.kind != kind.rawValue } }
            if kind == nil || kind == .mesh { all += apps.mesh.snapshots }
            if call.scope.isLimited {
                var visible: [Gatherings.Snapshot] = []
                for gathering in all { if try await call.sees(gathering) { visible.append(gathering) } }
                all = visible
            }
            all.sort { $0.id < $1.id }
            let (limit, after) = (Int(try call.value(GatheringInputs.limit)), call[GatheringInputs.after])
            let rest = after.map { after in all.drop { $0.id <= after } } ?? all[...]
            return GatheringListAnswer(
                total: all.count, next: rest.count > limit ? rest.prefix(limit).last?.id : nil, list: Array(rest.prefix(limit)))
        },
        Route<AppServices>(
            .get, "/gatherings/{gatheringId}", "getGathering", .gatherings, .backend, .thing, "Get a gathering: its members and its queue.",
            in: [GatheringInputs.id], answers: Gatherings.Snapshot.wholeType, home: .gathering
        ) { call in
            try await call.gathering()
        },
        Route<AppServices>(
            .post, "/gatherings/{gatheringId}/end", "endGathering", .gatherings, .ops, .thing,
            "End a gathering: its connections are closed, its queue and tickets are gone. The next member of a channel, mesh room or class begins a new one; a machine is gone.",
            in: [GatheringInputs.id], answers: .nothing, failures: [.conflict], home: .gathering
        ) { call in
            let found = try await call.gathering()
            call.audit { $0.add("members", from: .integer(Int64(found.gathering.members.count)), to: nil) }
            if found.kind == MeshService.kind { return call.services.mesh.end(room: found.room) }
            _ = try await Self.apply(.end(reason: "ended"), found, call)
        },
        Route<AppServices>(
            .post, "/gatherings/{gatheringId}/kick", "kickFromGathering", .gatherings, .ops, .thing,
            "Remove a member: ends the connection and gives up the place in the queue.",
            in: [GatheringInputs.id], body: [GatheringInputs.member], answers: .nothing, failures: [.conflict],
            home: .gathering
        ) { call in
            let (found, user) = (try await call.gathering(), try call.value(GatheringInputs.member))
            call.audit { $0.add("userId", from: .string(user), to: nil) }
            if found.kind == MeshService.kind {
                guard call.services.mesh.kick(user, from: found.room) else { throw APIError.notFound("member", user, field: "userId") }
                return
            }
            _ = try await Self.apply(.kick(id: user), found, call)
        },
        Route<AppServices>(
            .post, "/gatherings/{gatheringId}/queue/pause", "pauseQueue", .gatherings, .backend, .thing,
            "Take nobody new into a gathering's queue.", in: [GatheringInputs.id], answers: Gatherings.Snapshot.wholeType,
            failures: [.conflict], home: .gathering
        ) { call in
            try await Self.pause(true, call)
        },
        Route<AppServices>(
            .post, "/gatherings/{gatheringId}/queue/resume", "resumeQueue", .gatherings, .backend, .thing,
            "Let members into a gathering's queue again.", in: [GatheringInputs.id], answers: Gatherings.Snapshot.wholeType,
            failures: [.conflict], home: .gathering
        ) { call in
            try await Self.pause(false, call)
        },
        Route<AppServices>(
            .post, "/gatherings/{gatheringId}/queue/remove", "removeFromQueue", .gatherings, .backend, .thing,
            "Take a member out of a gathering's queue.", in: [GatheringInputs.id], body: [GatheringInputs.key],
            answers: Gatherings.Snapshot.wholeType, failures: [.conflict], home: .gathering
        ) { call in
            let (found, key) = (try await Self.stored(call), try call.value(GatheringInputs.key))
            call.audit { $0.add("key", from: .string(key), to: nil) }
            return try await Self.apply(.remove(key: key), found, call)
        },
        Route<AppServices>(
            .post, "/rooms/{roomId}/channel-token", "makeChannelToken", .gatherings, .backend, .room,
            "Make a token with which one user comes into the room's channel, or its mesh room.",
            in: [GatheringInputs.room],
            body: [GatheringInputs.user, GatheringInputs.name, GatheringInputs.tokenKind, GatheringInputs.role, GatheringInputs.lifetime],
            answers: ChannelTokenAnswer.outputType, secret: "token", effect: .nothing
        ) { call in
            let room = try await call.rooms.room(try call.value(GatheringInputs.room))
            let (user, name, kind) = (
                try call.value(GatheringInputs.user), try call.value(GatheringInputs.name), try call.value(GatheringInputs.tokenKind)
            )
            if !name.isEmpty, let problem = GatheringLimits.problem(ofName: name) { throw APIError(FieldError("name", name, problem)) }
            let role = try call.value(GatheringInputs.role)
            let token = ChannelToken(
                user: user, name: name.isEmpty ? user : name, room: room.id.rawValue, kind: kind.rawValue,
                role: role == .host ? Gathering.host : "", expires: WallClock.seconds + (try call.value(GatheringInputs.lifetime)))
            let text: String
            do { text = try token.signed(with: call.services.keys) } catch {
                throw APIError(FieldError("credentials.jwtKey", "", "\(error)"))
            }
            let address = try call.publicAddress()
            let socket = address.http.hasPrefix("https") ? "wss" + address.http.dropFirst(5) : "ws" + address.http.dropFirst(4)
            return ChannelTokenAnswer(
                token: text, url: "\(socket)/\(kind == .mesh ? "mesh" : "channel")?token=\(text)", expiresAt: token.expires * 1_000)
        },
    ]

    /// Throws for a mesh room, which has no queue.
    private static func stored(_ call: Call<AppServices>) async throws -> Gatherings.Snapshot {
        let found = try await call.gathering()
        guard found.kind != MeshService.kind else {
            throw APIError.wrongState("\(found.id) is a mesh room, which has no queue.", state: "mesh", allowed: [])
        }
        return found
    }

    private static func pause(_ isPaused: Bool, _ call: Call<AppServices>) async throws -> Gatherings.Snapshot {
        let found = try await Self.stored(call)
        call.audit { $0.add("isPaused", from: .bool(found.gathering.isPaused), to: .bool(isPaused)) }
        return try await Self.apply(.pause(isPaused), found, call)
    }

    private static func apply(_ input: Gathering.Input, _ found: Gatherings.Snapshot, _ call: Call<AppServices>) async throws
        -> Gatherings.Snapshot
    {
        do throws(GatheringRefusal) {
            guard let now = try await call.services.gatherings.apply(input, to: found.id) else {
                throw GatheringRefusal.ended
            }
            return now
        } catch {
            switch error {
            case .ended: throw APIError.notFound("gathering", found.id, field: "gatheringId")
            case .noSuchMember(let user), .notQueued(let user): throw APIError.notFound("member", user, field: "userId")
            default: throw APIError.unavailable("\(error)")
            }
        }
    }
}

extension Call<AppServices> {
    /// The gathering in the path. Throws 404 also for a gathering that the caller's token does not cover.
    func gathering() async throws -> Gatherings.Snapshot {
        let id = try self.value(GatheringInputs.id)
        let apps = self.services
        guard let found = apps.gatherings.snapshot(id) ?? apps.mesh.snapshot(id), try await self.sees(found) else {
            throw APIError.notFound("gathering", id, field: "gatheringId")
        }
        return found
    }

    /// A mesh room belongs to no app, so a token that is limited to some apps does not cover it.
    fileprivate func sees(_ gathering: Gatherings.Snapshot) async throws -> Bool {
        let scope = self.scope
        guard scope.isLimited else { return true }
        guard scope.holds(name: gathering.room) else { return false }
        guard !scope.apps.isEmpty else { return true }
        guard gathering.kind != MeshService.kind, let room = try await self.roomIfThere(gathering.room) else { return false }
        return scope.holds(room)
    }
}

struct GatheringListAnswer: Sendable {
    let total: Int
    let next: String?
    let list: [Gatherings.Snapshot]

    static let outputType = OutputType<GatheringListAnswer>.object(
        "GatheringList",
        [
            .field("total", .count, "All that fit the filter, on whatever page.", \.total),
            .field("next", .nullable(.text), "Pass it as `after` to get the next page; null at the end.", \.next),
            .field("list", .list(Gatherings.Snapshot.outputType), "The gatherings, by id.", \.list),
        ])
}

struct ChannelTokenAnswer: Sendable {
    let token: String
    let url: String
    let expiresAt: Int64

    static let outputType = OutputType<ChannelTokenAnswer>.object(
        "ChannelToken",
        [
            .field("token", .text, "The token.", \.token),
            .field("url", .uri, "The address of the WebSocket, with the token.", \.url),
            .field("expiresAt", .instant, "Until when a connection may begin with it.", \.expiresAt),
        ])
}

extension Gatherings.Snapshot {
    private static let head: [Field<Gatherings.Snapshot>] = [
        .field("gatheringId", .text, "The kind and the room.", \.id),
        .field("kind", .text, "plain: a channel; mesh: a mesh room, which is in memory only; class; machine.", \.kind),
        .field("roomId", .text, "The room; of a mesh room, the name that its members have agreed on.", \.room),
        .field("members", .count, "How many are in it, those who are away included.", \.gathering.members.count),
        .field("queued", .count, "How many wait in its queue.", \.gathering.queue.count),
        .field("createdAt", .nullable(.instant), "When it began; null for a mesh room.", \.createdAtMs),
    ]

    static let outputType = OutputType<Gatherings.Snapshot>.object("Gathering", Self.head)

    static let wholeType = OutputType<Gatherings.Snapshot>.object(
        "WholeGathering",
        Self.head + [
            .field("isPaused", .flag, "Whether the queue takes nobody new.", \.gathering.isPaused),
            .field("people", .list(Gathering.Member.outputType), "The members, in the order in which they joined.", \.gathering.members),
            .field("queue", .list(Gathering.Entry.outputType), "The queue, the first one first.", \.gathering.queue),
        ])
}

extension Gathering.Member {
    static let outputType = OutputType<Gathering.Member>.object(
        "GatheringMember",
        [
            .field("userId", .text, "The member's id.", \.id), .field("name", .text, "The name that others see.", \.name),
            .field("role", .text, "host, or empty.", \.role), .field("joinedAt", .instant, "When the member joined.", \.joinedAtMs),
            .field("awaySince", .nullable(.instant), "Since when the member has no connection; null while there is one.", \.awaySinceMs),
        ])
}

extension Gathering.Entry {
    static let outputType = OutputType<Gathering.Entry>.object(
        "QueueEntry",
        [
            .field("key", .text, "The member.", \.key), .field("value", .text, "What the member gave.", \.value),
            .field("at", .instant, "When the place was taken.", \.atMs),
        ])
}
