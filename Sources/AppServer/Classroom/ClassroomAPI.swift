import Access
import Apps
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore
import Playback
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support

/// The classes' REST API at `/classroom/api/v1` (``ClassroomCall``), in SealClass's form: its envelope, and status 200. Any thread.
///
/// With `apps.classroom.rongcloud` set, `imToken` is RongCloud's (``RongCloudBridge``); otherwise it equals `authorization`.
///
/// `Authorization` is a ``ChannelToken`` of the kind `class`, with or without `Bearer`; joining needs none. The token also opens the class's channel.
final class ClassroomAPI: HTTPPart {
    private let services: AppServices
    private let call: DialectCall
    private let classes: Classes

    static let base = "/classroom/api/v1"
    private static let longestBody = 256 << 10
    private static let requestsInTenSeconds = 2_000

    init(_ services: AppServices) {
        self.services = services
        self.call = DialectCall(services, perTenSeconds: Self.requestsInTenSeconds, longestBody: Self.longestBody)
        self.classes = Classes(services: services)
    }

    func door(_ request: Request) -> Door? { request.uri.path.hasPrefix("\(Self.base)/") ? .classroom : nil }

    func respond(to request: Request, _ context: APIContext) async -> Response {
        let query = QueryParameters(request.uri.query ?? "").pairs.map { (name: $0.name, value: $0.value ?? "") }
        if request.method == .post, request.uri.path == "\(Self.base)\(RongCloudCallbackRoute.path)" {
            return await RongCloudCallbackRoute(services: self.services, call: self.call).respond(to: request, query, context)
        }
        if let preflight = self.call.preflight(request, context) { return preflight }
        let headers = self.call.readable(request, context)
        let value: JSONValue
        do {
            let token = self.token(request)
            try self.call.checkPage(request, context, (try? token.get()).map { VerifiedCaller($0) })
            value = ClassroomAnswer.result(try await self.answer(request, query, token, context))
        } catch {
            value = ClassroomAnswer.refusal(Self.refusal(error))
        }
        return DialectCall.answer(value, headers, to: request)
    }

    static func refusal(_ error: any Error) -> GatheringRefusal {
        switch error {
        case let error as GatheringRefusal: error
        case GatheringFailure.refused(let refusal): refusal
        case let error as GatheringFailure: ClassroomCode.other.refusal(error.message)
        case let error as APIError:
            ([.invalid, .tooLarge].contains(error.kind) ? ClassroomCode.parameter : error.kind == .forbidden ? .authorization : .other)
                .refusal(error.message)
        case RegistryError.diskFull: ClassroomCode.createRoom.refusal("The server's disk is almost full, so nothing new is stored.")
        case RegistryError.tooMany(let what, let limit): ClassroomCode.createRoom.refusal("There are \(limit) \(what) already, the limit.")
        default: ClassroomCode.other.refusal("The server failed to carry this out; nothing has changed. Try again.")
        }
    }

    // MARK: - Calls

    private func answer(
        _ request: Request, _ query: [(name: String, value: String)], _ token: Result<ChannelToken, GatheringRefusal>, _ context: APIContext
    ) async throws -> JSONValue {
        guard let client = self.call.client(request, context), self.services.config.apps.classroomFrom.contains(address: client) else {
            self.services.noteRefusal(
                "A call on classes was refused",
                ["remote": "\(self.call.client(request, context)?.ipAddress ?? "unknown")", "setting": "apps.classroom.from"])
            throw ClassroomCode.authorization.refusal(
                "This address may not call this; the server's setting apps.classroom.from lists the addresses that may.")
        }
        guard self.call.mayGoOn(client) else { throw ClassroomCode.other.refusal("There are too many requests from this address.") }
        let read = try ClassroomCall.read(
            method: request.method.rawValue, path: String(request.uri.path.dropFirst(Self.base.count)), query: query,
            body: try await self.call.body(request, context))
        guard let read else { throw ClassroomCode.parameter.refusal("There is no such call.") }
        switch read.action {
        case .join(let name, let isAudience, let disableCamera):
            return try await self.classes.join(
                read.roomID ?? "", name: name, isAudience: isAudience, disableCamera: disableCamera, token: try? token.get())
        case .onlineStatus: throw ClassroomCode.authorization.refusal()
        case .refreshToken: return try await self.refresh(try token.get())
        default:
            let token = try token.get()
            guard let room = read.roomID, token.room == "\(Classes.prefix)\(room)" else {
                throw ClassroomCode.role.refusal("The token is for another class.")
            }
            return try await self.answer(read, token, context)
        }
    }

    /// The caller's verified token.
    private func token(_ request: Request) -> Result<ChannelToken, GatheringRefusal> {
        var text = request.headers[.authorization] ?? ""
        if text.lowercased().hasPrefix("bearer ") { text = String(text.dropFirst(7)) }
        guard !text.isEmpty, let token = try? self.services.verified(text), token.kind == GatheringKinds.classroom else {
            return .failure(ClassroomCode.authorization.refusal())
        }
        return .success(token)
    }

    private func refresh(_ token: ChannelToken) async throws -> JSONValue {
        let room = try self.classes.find(token.room).classroom
        guard room.role(of: token.user) != nil else { throw ClassroomCode.authorization.refusal() }
        let text = try self.classes.token(token.user, token.name, token.room, room)
        let imToken = try await self.services.rongCloud?.token(token.user, name: token.name)
        return ["authorization": .string(text), "imToken": .string(imToken ?? text)]
    }

    private func answer(_ read: ClassroomCall, _ token: ChannelToken, _ context: APIContext) async throws -> JSONValue {
        let (runner, room) = try self.classes.find(token.room)
        switch read.action {
        case .members, .boards:
            guard room.role(of: token.user) != nil else { throw ClassroomCode.authorization.refusal() }
            return read.action == .members ? ClassroomAnswer.members(room) : ClassroomAnswer.boards(room)
        case .boardCreate:
            guard let own = self.call.addressForOthers(context) else { throw APIError.unavailable("The server is starting.") }
            return .string(try await self.classes.createBoard(by: token.user, here: own.http, runner, room))
        case .boardDelete(let id):
            try await self.classes.deleteBoard(id, by: token.user, runner, room)
            return true
        default:
            guard let input = read.input(by: token.user, newID: Classes.newID()) else { throw ClassroomCode.parameter.refusal() }
            try await self.classes.applyEverywhere(input, runner)
            return true
        }
    }
}
