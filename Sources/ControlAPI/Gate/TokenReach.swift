import HTTPServer
import HTTPTypes
import RoomRegistry
import Rooms

/// Which objects a call may concern when its token has limits (``TokenScope``).
enum TokenReach: Sendable, Equatable {
    /// Needs no token, or concerns the token alone.
    case anyone
    /// The room in the path. Others answer as if they did not exist.
    case room
    /// The stream in the path. Others answer as if they did not exist.
    case stream
    /// The gathering in the path. Others answer as if they did not exist.
    case gathering
    /// The object in the path: its handler looks it up and decides by ``APICall/sees(_:)``.
    case thing
    /// A list, which its handler filters.
    case list
    /// A new object: its handler refuses one outside the limits.
    case creation
    /// The whole server: refused.
    case server
}

extension APIRoute {
    /// Nil when the table has no entry: the call is refused, and a test fails.
    var reach: TokenReach? { Self.reaches[self.name] }

    private static let reaches: [String: TokenReach] = [
        "createRoom": .creation, "listRooms": .list, "getRoom": .room, "updateRoom": .room, "deleteRoom": .room, "closeRoom": .room,
        "expireRoom": .room, "renewRoom": .room, "sendHeartbeat": .room, "pauseRoom": .room, "forbidRoom": .room, "resumeRoom": .room,
        "likeRoom": .room, "getSnapshot": .room, "listSnapshots": .room, "downloadSnapshot": .thing,
        "joinRoom": .room, "leaveRoom": .room, "listMembers": .room, "kickMember": .room,
        "makePushUrl": .room, "makePlayUrls": .room, "drawPushUrl": .room, "paintPushUrl": .room,
        "listStreams": .list, "listForbiddenStreams": .list, "listRefusals": .list, "listPushes": .list, "getStream": .stream,
        "getStreamStats": .stream,
        "dropStream": .stream, "forbidStream": .stream, "resumeStream": .stream,
        "listSessions": .list, "getSession": .thing, "endSession": .thing, "getSessionTrace": .thing,
        "getStats": .server, "listStreamFigures": .list, "getStreamFigures": .stream, "listFinishedPlays": .list,
        "listFinishedPushes": .list,
        "listEvents": .list, "listRoomEvents": .room, "makeEventTicket": .creation,
        "listCallbacks": .list, "listCallbackTargets": .server, "redeliverCallback": .thing,
        "listWebhooks": .server, "createWebhook": .server, "getWebhook": .server, "updateWebhook": .server, "deleteWebhook": .server,
        "pauseWebhook": .server, "resumeWebhook": .server, "testWebhook": .server, "redeliverWebhook": .server,
        "listRelayTasks": .list, "createRelayTask": .creation, "getRelayTask": .thing, "deleteRelayTask": .thing,
        "recordRoom": .room, "listRecordings": .list, "getRecording": .thing, "deleteRecording": .thing, "downloadRecording": .thing,
        "getTalk": .room, "changeTalk": .room, "changeFloor": .room, "muteTalker": .room, "kickTalker": .room, "allowTalker": .room,
        "makeTalkToken": .room,
        "listGatherings": .list, "getGathering": .gathering, "endGathering": .gathering, "kickFromGathering": .gathering,
        "pauseQueue": .gathering, "resumeQueue": .gathering, "removeFromQueue": .gathering, "makeChannelToken": .room,
        "listTokens": .server, "createToken": .server, "revokeToken": .server, "listAudit": .server,
        "getCounters": .server, "getMetrics": .server, "checkSelf": .server, "getServer": .server, "reloadSettings": .server,
        "drainServer": .server, "listNodes": .server, "drainNode": .server,
        "reconnectSession": .thing, "reconnectViewers": .stream, "getOpenAPI": .anyone,
    ]

    /// Checks the path of a call whose token has limits. Throws 403 for calls about the whole server, 404 for objects outside the limits.
    func checkReach(_ call: APICall) async throws {
        guard call.scope.isLimited else { return }
        switch self.reach {
        case .anyone, .thing, .list, .creation: break
        case .room:
            let id = try call.value(RoomInputs.room)
            guard call.scope.holds(name: id) else { throw RegistryError.noSuchRoom(id) }
            // A deleted room is known by its events only, which record its app.
            guard !call.scope.apps.isEmpty, let room = try await call.roomIfThere(id) else { return }
            guard call.scope.holds(room) else { throw RegistryError.noSuchRoom(id) }
        case .stream:
            let path = try call.streamPath()
            guard try await call.sees(path) else { throw APIError.notFound("stream", "\(path)", field: "name") }
        case .gathering: _ = try await call.gathering()
        case .server, nil:
            var error = APIError(
                .forbidden, .forbidden, "This call concerns the whole server; this token is limited to some of its apps or rooms.")
            error.rule = "a token without limits"
            throw error
        }
    }
}

extension APICall {
    /// The part of the server that the caller's token covers.
    var scope: TokenScope { self.token?.scope ?? .all }

    /// Nil if there is no such room.
    func roomIfThere(_ id: String) async throws -> Room? {
        do { return try await self.rooms.room(id) } catch RegistryError.noSuchRoom { return nil }
    }

    /// Whether the token covers the stream. A stream of a talk channel belongs to its room.
    func sees(_ path: StreamPath) async throws -> Bool {
        let scope = self.scope
        guard scope.isLimited else { return true }
        guard path.app == Self.talkApp else { return scope.holds(path) }
        let id = path.name.prefix { $0 != "/" }
        guard scope.holds(name: String(id)) else { return false }
        guard !scope.apps.isEmpty else { return true }
        return try await self.roomIfThere(String(id)).map { scope.holds($0) } ?? false
    }

    private static let talkApp = "talk"

    /// Whether the token covers all of these streams ("app/name"). A token with limits does not cover an empty list.
    func seesAll(_ paths: [String]) async throws -> Bool {
        guard self.scope.isLimited else { return true }
        for path in paths {
            guard let path = StreamPath(path), try await self.sees(path) else { return false }
        }
        return !paths.isEmpty
    }

    /// 403 for a new object outside the token's limits.
    func outside(_ what: String, _ field: String, _ value: String) -> APIError {
        var rules: [String] = []
        if !self.scope.apps.isEmpty { rules.append("app \(self.scope.apps.joined(separator: " or "))") }
        if !self.scope.rooms.isEmpty { rules.append("a name that begins with \(self.scope.rooms.joined(separator: " or "))") }
        var error = APIError(
            .forbidden, .forbidden, "This token may not create \(what): it is limited to \(rules.joined(separator: " and ")).")
        error.field = field
        error.value = String(value.prefix(80))
        error.rule = "expected \(rules.joined(separator: " and "))"
        return error
    }
}
