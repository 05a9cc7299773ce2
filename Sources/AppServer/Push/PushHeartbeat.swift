import Access
import HTTPServer
import HTTPTypes
import Hummingbird
import Listening
import NIOCore
import Playback
import RTMP
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support
import Synchronization

/// `POST /push/{app}/{name}/heartbeat?<the push URL's query>`: a broadcaster reports its status with the credential that it pushes with. Any thread.
///
/// | body | |
/// |---|---|
/// | `{"status": "pushing"}`, `"resumed"` | the room is still wanted |
/// | `"paused"` | media will pause; the room waits longer |
/// | `"finished"` | the push ends, as if the client had stopped it; if its connection was lost before, the room waits as after a stop |
///
/// The answer has the room's `state`, `stateReason` and `expiresAt`; `stop` asks the broadcaster to stop, for `reason`. An expired URL is accepted
/// here while the push that it began still runs, and for a forbidden stream. ``RoomAdmission/mayAct(_:_:on:)`` decides who may report.
final class PushHeartbeat: HTTPPart {
    private let services: AppServices
    /// Reports per stream: one a second, a few at once.
    private let paces = Mutex(PaceTable<String>(rate: 1, burst: 3))

    /// Calls per address, which may be shared by many broadcasters.
    private let calls = Mutex(PaceTable<HostKey>(rate: 200, burst: 400))

    private static let bodyBytes = 4 << 10

    init(_ services: AppServices) { self.services = services }

    enum Status: String, CaseIterable { case pushing, paused, resumed, finished }

    /// The app and name in the path; nil for another path.
    private static func stream(of path: String) -> (app: String, name: String)? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 5, parts[0].isEmpty, parts[1] == "push", parts[parts.count - 1] == "heartbeat" else { return nil }
        return (QueryParameters.decode(parts[2]), parts[3..<(parts.count - 1)].map { QueryParameters.decode($0) }.joined(separator: "/"))
    }

    func door(_ request: Request) -> Door? { Self.stream(of: request.uri.path) == nil ? nil : .heartbeat }

    /// A broadcaster's page may read the answer as they may read a playlist; who may report is decided without them.
    func respond(to request: Request, _ context: APIContext) async -> Response {
        let access = self.services.pages.withCredential(PageRequest(request, context.channel))
        guard request.method != .options else { return Response(status: .noContent, headers: Self.preflight).readable(access) }
        let answer: APIAnswer
        do {
            answer = APIAnswer(.ok, try await self.answer(request, context))
        } catch {
            let error = (error as? APIError) ?? APIError(.internalServerError, .internal, "The server failed to carry out the call.")
            answer = APIAnswer(error, requestID: context.id)
        }
        return answer.response(to: request).readable(access)
    }

    private static let preflight: HTTPFields = [
        .accessControlAllowMethods: "POST, OPTIONS", .accessControlAllowHeaders: "content-type", .accessControlMaxAge: "86400",
    ]

    private func answer(_ request: Request, _ context: APIContext) async throws -> JSONValue {
        guard request.method == .post else {
            var error = APIError(.methodNotAllowed, .methodNotAllowed, "A heartbeat is sent by POST.")
            error.headers[.allow] = "POST"
            throw error
        }
        let body = try await BodyReader(request, context, self.services.memory.ledger, atMost: Self.bodyBytes).collect()
        let status = try Self.status(body)
        guard let stream = Self.stream(of: request.uri.path) else { throw APIError.notFound("page", request.uri.path) }
        let address = try self.address(stream, request)
        let client = self.services.connections.clients.client(
            peer: self.services.connections.clients.peer(of: context.channel), request.headers)
        // Checked before the back end's hook is asked.
        if let client, !self.calls.withLock({ $0.acquire(HostKey.of(client), nowNs: NIODeadline.now().uptimeNanoseconds) }).isAllowed {
            throw APIError(.tooManyRequests, .rateLimited, "There are too many heartbeats from this address.")
        }
        let caller = try self.caller(
            AdmissionRequest(.heartbeat, action: .publish, address: address, remote: client, session: 0), request, context)
        let path = address.streamPath
        guard let (room, slot) = try await self.room(path),
            caller.pass.room == nil || caller.pass.room?.exact == room.id.rawValue.exact
        else {
            if let late = caller.late { throw self.refused(late, caller.request) }
            // Who shows no credential must not learn which rooms exist.
            if let page = caller.pageRefusal { throw self.refused(page, caller.request) }
            throw APIError.notFound("room of the stream", "\(path)", field: "name")
        }
        let permit: PushPermit
        switch await self.services.admission.mayAct(.report, caller, on: slot.path) {
        case .success(let given): permit = given
        case .failure(let refusal): throw self.refused(refusal, caller.request)
        }
        // Checked last: the reports of others must not use up the publisher's.
        try self.checkPace(address.path)
        self.services.counters.update { $0.heartbeats += 1 }
        let now = permit.isForbidden ? room : try await self.applyIfAllowed(status, room, slot, permit)
        return Self.answer(now, slot: slot.number)
    }

    private static func status(_ body: ByteBuffer) throws(APIError) -> Status {
        let rule = "expected {\"status\": …} with \(Status.allCases.map(\.rawValue).joined(separator: ", "))"
        let value: JSONValue
        do {
            value = try JSONParser.parse(body.readableBytesView)
        } catch {
            throw APIError(FieldError("body", "", "\(rule); \(error)"))
        }
        guard case .string(let text)? = value["status"], let status = Status(rawValue: text) else {
            throw APIError(FieldError("status", value["status"]?.shown ?? "", rule))
        }
        return status
    }

    private func address(_ stream: (app: String, name: String), _ request: Request) throws(APIError) -> StreamAddress {
        let query = request.uri.query ?? ""
        do {
            return try StreamAddress(
                app: stream.app, name: query.isEmpty ? stream.name : "\(stream.name)?\(query)",
                limits: RTMP.Limits(self.services.config.limits))
        } catch {
            throw APIError(FieldError("name", "", "expected the app and name of a push URL: \(error)"))
        }
    }

    /// Who asks, by credential or address.
    private func caller(_ request: AdmissionRequest, _ http: Request, _ context: APIContext) throws(APIError) -> PushCaller {
        let page =
            self.services.pages.objection(PageRequest(http, context.channel)).map {
                PageVerdict.refused(AdmissionRefusal(reason: .accessDenied, message: $0.message))
            } ?? .mayAsk
        switch self.services.rules.check(request, nowSeconds: WallClock.seconds) {
        case .success(let pass): return PushCaller(request, pass, page: page)
        case .failure(let refusal):
            guard let late = refusal.late else { throw self.refused(refusal, request) }
            return PushCaller(request, late, page: page, late: refusal)
        }
    }

    private func refused(_ refusal: AdmissionRefusal, _ request: AdmissionRequest) -> APIError {
        self.services.noteRefusal(
            "A push heartbeat was refused",
            [
                "stream": "\(request.address.path)", "remote": "\(request.remote?.ipAddress ?? "unknown")",
                "reason": "\(refusal.reason.rawValue)",
            ])
        switch refusal.reason {
        case .credentialMissing, .credentialNoTime, .credentialExpired, .credentialWrong, .hookDenied:
            return APIError(.unauthorized, .unauthorized, refusal.message)
        default: return APIError(refusal)
        }
    }

    private func checkPace(_ path: String) throws(APIError) {
        guard !self.paces.withLock({ $0.acquire(path, nowNs: NIODeadline.now().uptimeNanoseconds) }).isAllowed else { return }
        var error = APIError(.tooManyRequests, .rateLimited, "More than one heartbeat a second for this stream.")
        error.headers[.retryAfter] = "1"
        throw error
    }

    /// The room and the slot to which a push by this name goes.
    private func room(_ name: StreamPath) async throws(APIError) -> (Room, Room.Slot)? {
        let path = await self.services.rooms.stream(named: name)
        do throws(RegistryError) {
            guard let room = try await self.services.rooms.room(ofStream: path), let slot = room.slot(path) else { return nil }
            return (room, slot)
        } catch {
            throw APIError.unavailable("The rooms cannot be read: \(error)")
        }
    }

    /// The room after the report. A report that the room's state does not allow changes nothing; the answer then asks the broadcaster to stop.
    private func applyIfAllowed(_ status: Status, _ room: Room, _ slot: Room.Slot, _ permit: PushPermit) async throws(RegistryError) -> Room
    {
        do throws(RegistryError) {
            return try await self.apply(status, room, slot, permit, by: Actor(permit.pass.user ?? "publisher"))
        } catch {
            guard case .wrongState = error else { throw error }
            return try await self.services.rooms.room(room.id.rawValue)
        }
    }

    private func apply(
        _ status: Status, _ room: Room, _ slot: Room.Slot, _ permit: PushPermit, by actor: Actor
    ) async throws(RegistryError) -> Room {
        let (rooms, id) = (self.services.rooms, room.id.rawValue)
        switch status {
        case .pushing, .resumed: return try await rooms.apply(.heartbeat(sender: permit.pass.user), to: id, action: "heartbeat", by: actor)
        case .paused: return try await rooms.apply(.pauseAnnounced(slot: slot.number), to: id, action: "pause", by: actor)
        case .finished:
            if let running = permit.running {
                await self.services.control.cut(slot.path, sequence: running, .clientStopped, endsViewers: false)
            }
            // Behind the push's end in the registry's queue, so that the answer has the state after it. A stream whose connection was lost before
            // waits as after a stop; one that has just ended stays as it is.
            return try await rooms.apply(.finished(slot: slot.number), to: id, action: "finish", by: actor)
        }
    }

    private static func answer(_ room: Room, slot number: Int) -> JSONValue {
        let isForbidden = room.state == .forbidden || room.slots.contains { $0.number == number && $0.isForbidden }
        let stops = room.state.isTerminal || isForbidden
        let reason = room.slots.first { $0.number == number && $0.isForbidden }?.forbidReason ?? room.forbidReason ?? ""
        return [
            "state": .string(room.state.rawValue), "stateReason": .string(room.reason.rawValue),
            "expiresAt": RoomRules.nextDeadline(of: room).map { .string(Instant.text($0)) } ?? .null, "stop": .bool(stops),
            "reason": stops ? .string(isForbidden ? (reason.isEmpty ? "forbidden" : reason) : room.reason.rawValue) : .null,
        ]
    }
}
