package import HTTPServer
import HTTPTypes
import RoomRegistry
package import Rooms
import Support

extension APIRoute {
    /// Checks the path of a call whose token has limits. Throws 403 for calls about the whole server, 404 for objects outside the limits.
    package func checkReach(_ call: Call<Void>) async throws {
        guard call.scope.isLimited else { return }
        switch self.reach {
        case .anyone, .thing, .list, .creation: break
        case .room:
            guard let id = call.values.text("roomId") else { throw APIError(FieldError("roomId", "", "is required")) }
            guard call.scope.holds(name: id) else { throw RegistryError.noSuchRoom(id) }
            // A deleted room is known by its events only, which record its app.
            guard !call.scope.apps.isEmpty, let room = try await call.roomIfThere(id) else { return }
            guard call.scope.holds(room) else { throw RegistryError.noSuchRoom(id) }
        case .stream: _ = try await call.stream()
        case .server:
            var error = APIError(
                .forbidden, .forbidden, "This call concerns the whole server; this token is limited to some of its apps or rooms.")
            error.rule = "a token without limits"
            throw error
        }
    }
}

/// The app of talk mixes.
private let talkApp = "talk"

extension Call {
    /// The part of the server that the caller's token covers.
    package var scope: TokenScope { self.token?.scope ?? .all }

    /// Nil if there is no such room.
    package func roomIfThere(_ id: String) async throws -> Room? {
        do { return try await self.rooms.room(id) } catch RegistryError.noSuchRoom { return nil }
    }

    /// Whether the token covers the stream. A stream of a talk channel belongs to its room.
    package func sees(_ path: StreamPath) async throws -> Bool {
        let scope = self.scope
        guard scope.isLimited else { return true }
        guard path.app.exact == talkApp.exact else { return scope.holds(path) }
        let id = path.name.prefix { $0 != "/" }
        guard scope.holds(name: String(id)) else { return false }
        guard !scope.apps.isEmpty else { return true }
        return try await self.roomIfThere(String(id)).map { scope.holds($0) } ?? false
    }

    /// Whether the token covers all of these streams ("app/name"). A token with limits does not cover an empty list.
    package func seesAll(_ paths: [String]) async throws -> Bool {
        guard self.scope.isLimited else { return true }
        for path in paths {
            guard let path = StreamPath(path), try await self.sees(path) else { return false }
        }
        return !paths.isEmpty
    }

    /// A token of role backend operates the rooms that it created itself: throws 403 for another's. By name, so that a token that takes the place of a
    /// revoked one, under its name, has its rooms. Greater roles operate all.
    package func checkOwn(_ room: Room) throws(APIError) {
        guard self.token?.role == .backend, room.creator?.exact != self.actor.name.exact else { return }
        var error = APIError(
            .forbidden, .forbidden,
            "A token of role backend may do this with the rooms that it created itself; room \(room.id) is not one of them.")
        error.rule = "a room of the token's own, or role \(TokenRole.ops.rawValue)"
        throw error
    }

    /// The same for the stream's room. A stream without a room is nobody's: 404.
    package func checkOwn(of path: StreamPath) async throws {
        guard self.token?.role == .backend else { return }
        guard let room = try await self.rooms.room(ofStream: path) else {
            throw APIError.notFound("room of the stream", "\(path)", field: "name")
        }
        try self.checkOwn(room)
    }

    /// 403 for a new object outside the token's limits.
    package func outside(_ what: String, _ field: String, _ value: String) -> APIError {
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
