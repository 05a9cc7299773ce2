import Access
import Apps
import HTTPServer
import HTTPTypes
import Hummingbird
import NIOCore
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support

/// `POST /dollsCatcher/…`: guests' accounts, the list of claw machines, and their hosts' calls (``DollsCatcherCall``). Any thread.
///
/// Guests come from `apps.machine.from`, hosts from `apps.machine.hostFrom`. Answers have status 200 and a code.
final class DollsCatcher: HTTPPart {
    private let services: AppServices
    private let call: DialectCall
    private let machines: MachineRooms
    private let tourists = TouristAccounts()

    private static let longestBody = 64 << 10
    private static let requestsInTenSeconds = 2_000
    /// Validity of a host's token and of a guest's addresses, in seconds.
    private static let hostSeconds: Int64 = 30 * 86_400
    private static let guestSeconds = TouristAccounts.lifetimeMs / 1_000

    init(_ services: AppServices) {
        self.services = services
        self.call = DialectCall(services, perTenSeconds: Self.requestsInTenSeconds, longestBody: Self.longestBody)
        self.machines = MachineRooms(services)
    }

    func door(_ request: Request) -> Door? { request.uri.path.hasPrefix(DollsCatcherCall.prefix) ? .machine : nil }

    func respond(to request: Request, _ context: APIContext) async -> Response {
        if let preflight = self.call.preflight(request, context) { return preflight }
        let headers = self.call.readable(request, context)
        let value: JSONValue
        do {
            try self.call.checkPage(request, context, nil)
            value = try await self.answer(request, context)
        } catch let error as DollsCatcherError {
            value = DollsCatcherAnswer.failure(error)
        } catch {
            value = DollsCatcherAnswer.failure(Self.failure(error))
        }
        return DialectCall.answer(value, headers, to: request)
    }

    /// The API's code for other errors.
    private static func failure(_ error: any Error) -> DollsCatcherError {
        switch error {
        case let error as APIError:
            DollsCatcherError(
                [.invalid, .tooLarge].contains(error.kind) ? .parameter : error.kind == .forbidden ? .forbidden : .server, error.message)
        case let error as GatheringFailure: DollsCatcherError(.server, error.message)
        case RegistryError.diskFull: DollsCatcherError(.server, "The server's disk is almost full, so nothing new is stored.")
        case RegistryError.tooMany(let what, let limit):
            DollsCatcherError(.server, "There are \(limit) \(what) already, the limit.")
        default: DollsCatcherError(.server, "The server failed to carry this out; nothing has changed. Try again.")
        }
    }

    private func answer(_ request: Request, _ context: APIContext) async throws -> JSONValue {
        guard let client = self.call.client(request, context) else {
            throw DollsCatcherError(
                .forbidden, "The client's address is unknown; behind a proxy, the server's setting access.trustedProxies names it.")
        }
        guard self.call.mayGoOn(client) else { throw DollsCatcherError.tooManyRequests }
        guard request.method == .post else { throw DollsCatcherError.invalid("the method is \(request.method); expected POST") }
        // In a form a plus sign is a space; in the query it stays one.
        let form = try await self.call.body(request, context).replacing("+", with: "%20")
        let pairs = QueryParameters(form).pairs + QueryParameters(request.uri.query ?? "").pairs
        guard
            let call = try DollsCatcherCall.read(
                path: request.uri.path, parameters: pairs.map { (name: $0.name, value: $0.value ?? "") })
        else { throw DollsCatcherError(.noSuchCall, "There is no such call.") }
        try self.check(call, from: client)
        guard let urls = self.call.urls(request) else { throw APIError.unavailable("The server is starting.") }
        return try await self.answer(call, HostKey.of(client), urls)
    }

    private func check(_ call: DollsCatcherCall, from client: SocketAddress) throws(DollsCatcherError) {
        let (allowed, setting) =
            switch call {
            case .tourist, .roomList: (self.services.config.apps.machineFrom, "apps.machine.from")
            case .hostCreate, .hostManage, .hostQuery: (self.services.config.apps.machineHostFrom, "apps.machine.hostFrom")
            }
        guard !allowed.contains(address: client) else { return }
        self.services.noteRefusal("A call on machines was refused", ["remote": "\(client.ipAddress ?? "unknown")", "setting": setting])
        throw DollsCatcherError(.forbidden, "This address may not call this; the server's setting \(setting) lists the addresses that may.")
    }

    private func answer(_ call: DollsCatcherCall, _ host: HostKey, _ urls: StreamURLs) async throws -> JSONValue {
        switch call {
        case .tourist(let sid):
            let account = try self.tourists.account(sid, from: host, nowMs: WallClock.ms)
            let token = ChannelToken(
                user: account.accid, name: account.nickname, room: GatheringKinds.everyMachine, kind: GatheringKinds.machine,
                role: Machine.player,
                expires: WallClock.seconds + Self.guestSeconds)
            return DollsCatcherAnswer.tourist(account, imToken: try token.signed(with: self.services.keys))
        case .roomList(let sid, let limit, let offset):
            guard self.tourists.isKnown(sid, nowMs: WallClock.ms) else { throw DollsCatcherError.unknownAccount }
            let all = self.machines.all.filter(\.machine.info.isPublic)
            var entries: [JSONValue] = []
            for entry in all.dropFirst(offset).prefix(limit) { if let shown = try await self.entry(entry, urls) { entries.append(shown) } }
            return DollsCatcherAnswer.list(total: all.count, entries)
        case .hostCreate(let accid, let nickname, _, let name, let mode):
            return DollsCatcherAnswer.created(
                roomID: try await self.machines.create(accid: accid, nickname: nickname, name: name, mode: mode))
        case .hostManage(let number, let isOpen, let isPublic):
            try await self.machines.manage(number, isOpen: isOpen, isPublic: isPublic)
            return DollsCatcherAnswer.success()
        case .hostQuery(let number): return try await self.query(number, urls)
        }
    }

    /// Nil when the room has just been deleted.
    private func entry(_ entry: MachineRooms.Entry, _ urls: StreamURLs) async throws -> JSONValue? {
        guard let room = try await self.room(entry) else { return nil }
        let signing = StreamURLs.Signing(scheme: .txSecret, lifetimeSeconds: Self.guestSeconds)
        let pulls = try room.slots.map { slot in
            let play = try urls.play(slot.path, signing, nowMs: WallClock.ms)
            return DollsCatcherAnswer.PullURLs(rtmp: play.rtmp, http: play.flv, hls: play.hls)
        }
        guard let first = pulls.first, let second = pulls.last else { return nil }
        let status = room.liveStatus(isRecording: room.slots.contains { self.services.isRecording($0.path) })
        return DollsCatcherAnswer.entry(
            entry.room, first: first, second: second, liveStatus: status, online: entry.online,
            queued: entry.machine.gathering.queue.count)
    }

    private func room(_ entry: MachineRooms.Entry) async throws(RegistryError) -> Room? {
        do throws(RegistryError) {
            return try await self.services.rooms.room(entry.runner.room.rawValue)
        } catch {
            guard case .noSuchRoom = error else { throw error }
            return nil
        }
    }

    private func query(_ number: Int64, _ urls: StreamURLs) async throws -> JSONValue {
        guard let entry = self.machines.entry(number), let room = try await self.room(entry) else { throw DollsCatcherError.noSuchRoom }
        let token = ChannelToken(
            user: entry.machine.info.device, name: entry.machine.info.accid, room: entry.runner.room.rawValue,
            kind: GatheringKinds.machine, role: Gathering.host, expires: WallClock.seconds + Self.hostSeconds)
        let signing = StreamURLs.Signing(scheme: .txSecret, lifetimeSeconds: Self.hostSeconds)
        let pushes = try room.slots.map { try urls.push($0.path, signing, nowMs: WallClock.ms).rtmp }
        guard let first = pushes.first, let second = pushes.last else { throw DollsCatcherError.noSuchRoom }
        return DollsCatcherAnswer.host(entry.room, token: try token.signed(with: self.services.keys), pushURLs: first, second)
    }
}
