import HTTPAPI
import HTTPServer
import HTTPTypes
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support

extension APICall {
    /// Does not reveal the name of a room that the token does not cover.
    fileprivate func refused(_ refusal: RegistryError) -> any Error {
        let (message, field, value): (String, String, String)
        switch refusal {
        case .deviceTaken(let device, _) where self.scope.isLimited:
            (message, field, value) = ("Device \(device) already has an open room.", "deviceUid", device)
        case .nameTaken(let path, _, let name) where self.scope.isLimited:
            (message, field, value) = ("The name \(path) already stands for a stream of another room.", name, path.name)
        default: return refusal
        }
        var error = APIError(.conflict, .conflict, message)
        error.field = field
        error.value = value
        return error
    }
}

enum RoomRoutes {
    /// Rooms: create, look up, change, end.
    static let all: [ControlRoute] = [
        ControlRoute(
            storing: "/rooms", "createRoom", .rooms, .backend, .creation, "Create a room; it becomes live when media arrives.",
            body: [
                RoomInputs.id, RoomInputs.app, RoomInputs.slots, RoomInputs.owner, RoomInputs.title,
                RoomInputs.custom, RoomInputs.isPublic, RoomInputs.device, RoomInputs.policy,
            ],
            answers: RoomAnswer.outputType, status: .created, location: ("/rooms/", "roomId"), failures: [.conflict, .diskFull]
        ) { call, keep in
            var new = NewRoom(policy: call.services.config.rooms.policy)
            new.id = call[RoomInputs.id]
            new.app = try call.value(RoomInputs.app)
            new.slots = Int(try call.value(RoomInputs.slots))
            new.owner = call[RoomInputs.owner]
            new.title = call[RoomInputs.title] ?? ""
            new.custom = call[RoomInputs.custom] ?? "{}"
            new.isPublic = call[RoomInputs.isPublic] ?? true
            new.deviceUid = call[RoomInputs.device]
            for (name, value) in call[RoomInputs.policy] ?? [:] {
                RoomPolicy.fields.first { $0.name == name }?.set(&new.policy, value)
            }
            let room = try await Self.withinLimits(new, call)
            do {
                return try await keep({ try RoomAnswer($0, call, nodes: [:]) }) {
                    try await call.rooms.create(room, by: call.actor, keeping: $0)
                }
            } catch let refusal as RegistryError {
                throw call.refused(refusal)
            }
        },
        ControlRoute(
            .get, "/rooms", "listRooms", .rooms, .backend, .list, "List rooms, page by page.",
            query: [
                RoomInputs.states, RoomInputs.text, RoomInputs.ownerFilter, RoomInputs.deviceFilter, RoomInputs.listed,
                RoomInputs.sort, RoomInputs.page, RoomInputs.pageSize, RoomInputs.after,
            ],
            answers: RoomListAnswer.outputType
        ) { call in
            let page = try await call.rooms.rooms(try Self.query(call))
            let (urls, nodes) = (try call.urls(), try await call.rooms.nodeNames(of: page.rooms))
            return RoomListAnswer(page: page, rooms: try page.rooms.map { try RoomAnswer($0, call, urls, nodes: nodes) })
        },
        ControlRoute(
            .get, "/rooms/{roomId}", "getRoom", .rooms, .backend, .room, "Look a room up.", in: [RoomInputs.room],
            answers: RoomAnswer.outputType
        ) { call in
            let room = try await call.rooms.room(try call.value(RoomInputs.room))
            return try RoomAnswer(room, call, nodes: try await call.rooms.nodeNames(of: [room]))
        },
        ControlRoute(
            .patch, "/rooms/{roomId}", "updateRoom", .rooms, .backend, .room, "Change a room; omitted fields stay unchanged.",
            in: [RoomInputs.room],
            body: [RoomInputs.newOwner, RoomInputs.title, RoomInputs.custom, RoomInputs.isPublic, RoomInputs.newDevice, RoomInputs.policy],
            answers: RoomAnswer.outputType, failures: [.conflict], isConditional: true
        ) { call in
            var patch = RoomPatch()
            patch.owner = call[RoomInputs.newOwner]
            patch.title = call[RoomInputs.title]
            patch.custom = call[RoomInputs.custom]
            patch.isPublic = call[RoomInputs.isPublic]
            patch.deviceUid = call[RoomInputs.newDevice]
            patch.policy = call[RoomInputs.policy] ?? [:]
            let id = try call.value(RoomInputs.room)
            do {
                let room = try await call.rooms.update(id, patch, if: call.condition, by: call.actor)
                return try RoomAnswer(room, call, nodes: try await call.rooms.nodeNames(of: [room]))
            } catch let refusal as RegistryError {
                throw call.refused(refusal)
            }
        },
        ControlRoute(
            .delete, "/rooms/{roomId}", "deleteRoom", .rooms, .admin, .room, "Delete a room, closing it first if it is open.",
            in: [RoomInputs.room], answers: .nothing, failures: [.conflict], isConditional: true
        ) { call in
            try await call.rooms.delete(try call.value(RoomInputs.room), if: call.condition, by: call.actor)
        },
        Self.room(
            "close", "closeRoom", .backend,
            "Close a room permanently, even an expired one: ends its pushes and its viewers' streams. A closed room is answered as it is."
        ) {
            _ in
            .close
        },
        Self.room("expire", "expireRoom", .ops, "Expire a room as if its time were over. The next valid push reopens it.") { _ in .expire },
        Self.room(
            "renew", "renewRoom", .backend,
            "Give a room more time. The answer says whether another deadline, such as missed heartbeats, still comes first.",
            body: [RoomInputs.seconds], answers: RoomAnswer.renewed
        ) { call in
            .renew(byMs: call[RoomInputs.seconds])
        },
        Self.room(
            "heartbeat", "sendHeartbeat", .backend, "Report that a room is still wanted, or that its owner is present.",
            body: [RoomInputs.sender], isAudited: false
        ) {
            .heartbeat(sender: $0[RoomInputs.sender])
        },
        Self.room(
            "pause", "pauseRoom", .backend, "Announce that media will pause; the room then waits longer.", body: [RoomInputs.slot]
        ) { .pauseAnnounced(slot: $0[RoomInputs.slot].map(Int.init)) },
        Self.room(
            "forbid", "forbidRoom", .ops,
            "Forbid a room, even an expired one: ends its pushes and refuses pushes and plays for a time. A repeated call changes the ban.",
            body: Ban.inputs
        ) { call in
            .forbid(untilMs: try Ban.end(call), reason: try call.value(Ban.reason))
        },
        Self.room("resume", "resumeRoom", .ops, "Lift a room's ban, so that it accepts pushes and plays again.") { _ in .resume },
        ControlRoute(
            storing: "/rooms/{roomId}/like", "likeRoom", .rooms, .backend, .room, "Add likes to a room.", in: [RoomInputs.room],
            body: [RoomInputs.likes], answers: RoomAnswer.outputType, isAudited: false
        ) { call, keep in
            let (id, count) = (try call.value(RoomInputs.room), Int(try call.value(RoomInputs.likes)))
            let nodes = try await call.rooms.nodeNames(ofRoom: id)
            return try await keep({ try RoomAnswer($0, call, nodes: nodes) }) { try await call.rooms.like(id, count: count, keeping: $0) }
        },
    ]

    /// A call that applies one ``RoomInput`` to the room.
    private static func room(
        _ action: String, _ name: String, _ role: TokenRole, _ summary: String, body: [any RequestInput] = [], isAudited: Bool = true,
        answers outputType: OutputType<RoomAnswer> = RoomAnswer.outputType, _ input: @escaping @Sendable (APICall) throws -> RoomInput
    ) -> ControlRoute {
        ControlRoute(
            storing: "/rooms/{roomId}/\(action)", name, .rooms, role, .room, summary, in: [RoomInputs.room], body: body,
            answers: outputType, failures: [.conflict], isAudited: isAudited, isConditional: true
        ) { call, keep in
            let (id, input) = (try call.value(RoomInputs.room), try input(call))
            let nodes = try await call.rooms.nodeNames(ofRoom: id)
            return try await keep({ try RoomAnswer($0, call, nodes: nodes) }) {
                try await call.rooms.apply(input, to: id, action: action, if: call.condition, by: call.actor, keeping: $0)
            }
        }
    }

    /// The room to create. For a limited token without a room id, the server chooses an id within the limits.
    private static func withinLimits(_ new: NewRoom, _ call: APICall) async throws -> NewRoom {
        let scope = call.scope
        guard scope.isLimited else { return new }
        guard scope.holds(app: new.app) else { throw call.outside("this room", "app", new.app) }
        var room = new
        if let id = new.id {
            guard scope.holds(name: id.rawValue) else { throw call.outside("this room", "roomId", id.rawValue) }
        } else {
            // The device's last room keeps its id only if the token covers it.
            var keepsID = false
            if let device = new.deviceUid, let last = try await call.rooms.room(ofDevice: device) { keepsID = scope.holds(last) }
            if !keepsID {
                room.id = try RoomID(checking: String("\(scope.rooms.first ?? "")\(RoomID.random())".prefix(64)))
            }
        }
        return room
    }

    private static func query(_ call: APICall) throws -> RoomQuery {
        var query = RoomQuery()
        query.scope = call.scope
        query.states = call[RoomInputs.states] ?? []
        query.owner = call[RoomInputs.ownerFilter]
        query.deviceUid = call[RoomInputs.deviceFilter]
        query.isPublic = call[RoomInputs.listed]
        query.text = call[RoomInputs.text]
        query.order = try call.value(RoomInputs.sort)
        query.after = call[RoomInputs.after]
        query.size = Int(try call.value(RoomInputs.pageSize))
        if let page = call[RoomInputs.page].map(Int.init) {
            guard query.after == nil else { throw APIError(FieldError("page", "\(page)", "expected page or after, not both")) }
            guard (page - 1) * query.size < RoomQuery.deepest else {
                throw APIError(FieldError("page", "\(page)", "pages end at the first \(RoomQuery.deepest) rooms; use after to go further"))
            }
            query.page = page
        }
        return query
    }
}
