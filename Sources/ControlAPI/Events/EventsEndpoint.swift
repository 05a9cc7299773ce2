import Access
import HTTPAPI
import HTTPServer
import HTTPTypes
import Listening
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import Notifications
import Packaging
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
package import Support

/// `GET /events?ticket=&after=&roomId=&kinds=`: opens the event feed, a WebSocket. Every refusal is an ordinary HTTP answer.
///
/// The credential is the ticket, or the token in an Authorization header, never a cookie. So pages of any origin may connect, and a page without a
/// ticket learns nothing.
package struct EventsEndpoint: HTTPHandoff {
    private let services: APIServices
    private let hello: EventsHello
    private let tokens: TokenWatch
    private let authentication: Authentication
    private let sweepers: LoopSweepers
    private let flood = LogRateLimiter()

    package init(services: APIServices, sweepers: LoopSweepers) {
        self.services = services
        self.sweepers = sweepers
        self.hello = EventsHello(services.rooms) { [recordings = services.recordings] in recordings.isRecording($0) }
        self.tokens = TokenWatch(services.rooms)
        self.authentication = Authentication(
            registry: services.rooms, rate: services.config.api.rateLimit, figures: services.figures.calls)
    }

    func door(_ head: HTTPRequestHead) -> Door? { head.method == .GET && head.path == "/events" ? .events : nil }

    func route(_ head: HTTPRequestHead) -> String { "/events" }

    func decide(_ request: HTTPHandoffRequest) async -> HTTPHandoffDecision {
        do {
            return try await self.open(request)
        } catch let error as APIError {
            self.note(error, request)
            return .refuse(error)
        } catch let error as RegistryError {
            return .refuse(APIError(error))
        } catch let error as FieldError {
            return .refuse(APIError(error))
        } catch {
            return .refuse(APIError(.internalServerError, .internal, "The server failed."))
        }
    }

    /// Logs refused tokens, tickets and addresses, as the API does.
    private func note(_ error: APIError, _ request: HTTPHandoffRequest) {
        guard [.unauthorized, .forbidden, .rateLimited].contains(error.kind), let held = self.flood.pass(nowMs: LoopSweeper.nowMs) else {
            return
        }
        let remote = self.services.clients.client(of: request)?.ipAddress ?? "unknown"
        let metadata: Logger.Metadata = ["status": "\(error.status.code)", "remote": "\(remote)"]
        self.services.log.write("An event feed was refused", metadata, at: .warning, heldBack: held)
    }

    private func open(_ request: HTTPHandoffRequest) async throws -> HTTPHandoffDecision {
        try APIService.checkAddress(self.services.clients.client(of: request), self.services.config.access)
        let query = try EventsQuery(request.head.query ?? "")
        // Check this before the ticket is used up.
        if let refusal = WebSocketHandshake.refusal(of: request.head) { throw refusal }
        let holder = try await self.holder(query, request)
        let room = query.room ?? holder.room
        guard holder.room == nil || room?.exact == holder.room?.exact else {
            throw APIError(.forbidden, .forbidden, "This ticket is for another room.")
        }
        guard let place = self.services.events.acquirePlace() else {
            self.services.connections.counters.update { $0.eventFeedsRefused += 1 }
            throw APIError.unavailable("The event feed already has \(EventHub.subscriberLimit) subscribers, its limit.")
        }
        let start = try await self.start(room, query, holder)
        return .accept(WebSocketHandshake.response(to: request.head)) { self.handlers(start, place) }
    }

    private func holder(_ query: EventsQuery, _ request: HTTPHandoffRequest) async throws -> EventHolder {
        guard let ticket = query.ticket else {
            let headers = HTTPFields(request.head.headers, splitCookie: false)
            let token = try await self.authentication.token(headers, from: self.services.clients.client(of: request))
            return EventHolder(tokenID: token.id, role: token.role, room: nil, scope: token.scope)
        }
        guard let holder = self.services.tickets.redeem(ticket) else {
            throw APIError(.unauthorized, .unauthorized, "This ticket is unknown, already used, or older than a minute.")
        }
        return holder
    }

    private func start(_ room: String?, _ query: EventsQuery, _ holder: EventHolder) async throws -> EventsStart {
        let after = query.after
        let hello = try await self.hello.message(room: room, scope: holder.scope, atLeast: after ?? 0)
        var frames = [hello.frame]
        var position = after ?? hello.lastEventID
        if let after, let gap = try await self.gap(after: after, last: hello.lastEventID) {
            frames.append(WebSocketWriter.text(EventMessage.gap(from: gap.lowerBound, to: gap.upperBound)))
            // This client has seen events of a store that no longer exists, so it starts over.
            position = min(gap.upperBound, hello.lastEventID)
        }
        return EventsStart(
            frames: frames, position: position, room: try room.map { try RoomID(checking: $0) }, kinds: query.kinds,
            tokenID: holder.tokenID, scope: holder.scope, rooms: holder.scope.apps.isEmpty ? [] : hello.rooms)
    }

    /// The ids after `after` that can no longer be sent.
    private func gap(after: Int64, last: Int64) async throws(RegistryError) -> ClosedRange<Int64>? {
        if after > last { return last + 1...after }
        if after == last { return nil }
        let oldest = try await self.services.rooms.events(after: 0, room: nil, limit: 1).first?.id ?? last + 1
        return oldest > after + 1 ? after + 1...oldest - 1 : nil
    }

    private func handlers(_ start: EventsStart, _ place: EventHub.Place) -> [any ChannelHandler] {
        [
            EventsConnection(
                start, place: place, hub: self.services.events, sweepers: self.sweepers, tokens: self.tokens,
                clock: self.services.rooms.clock,
                events: StoredEvents(rooms: self.services.rooms, room: start.room, kinds: start.kinds, scope: start.scope),
                counters: self.services.connections.counters)
        ]
    }
}

/// The feed's query parameters, validated.
struct EventsQuery: Equatable {
    private(set) var ticket: String?
    private(set) var after: Int64?
    private(set) var room: String?
    /// Empty: all.
    private(set) var kinds: Set<RoomEvent.Kind> = []

    init(_ text: some StringProtocol) throws(FieldError) {
        var seen: Set<String> = []
        for pair in QueryParameters(String(text)).pairs {
            let value = pair.value ?? ""
            guard seen.insert(pair.name).inserted else { throw FieldError(pair.name, "", "expected once") }
            switch pair.name {
            case "ticket":
                guard (1...OneTimeTicket.longest).contains(value.utf8.count) else { throw FieldError("ticket", "", "expected a ticket") }
                self.ticket = value
            case "after":
                guard let id = Int64(value), id >= 0, value.utf8.first != UInt8(ascii: "+") else {
                    throw FieldError("after", value, "expected the id of an event, 0 or more")
                }
                self.after = id
            case "roomId":
                guard RoomID.isID(value) else { throw FieldError(pair.name, value, "expected 1 to 64 of A-Z a-z 0-9 _ -") }
                self.room = value
            case "kinds":
                self.kinds = Set(try value.split(separator: ",", omittingEmptySubsequences: false).map(Self.kind))
            default:
                throw FieldError(String(pair.name.prefix(60)), "", "expected ticket, after, roomId or kinds")
            }
        }
    }

    private static func kind(_ text: Substring) throws(FieldError) -> RoomEvent.Kind {
        guard let kind = RoomEvent.Kind(rawValue: String(text)) else {
            throw FieldError("kinds", String(text.prefix(60)), "expected kinds of events, with commas between them")
        }
        return kind
    }
}
