import HTTPAPI
import HTTPServer
import HTTPTypes
import Relay
import RoomRegistry
import Rooms
import Streaming
import Support

enum SessionRoutes {
    private static let role = Input("role", .choice() as InputType<SessionRole>, "Only connections that publish, or that play.")
    private static let stream = Input(
        "stream", .soughtName(length: 1...2 * RoomLimits.streamNameLength + 1),
        "Only connections that publish or play this stream, app/name.")
    private static let after = Input("after", .whole(0...Int64.max), "The `next` of the previous page.", fallback: 0)
    private static let limit = Input("limit", .whole(1...1_000), "The maximum number of connections.", fallback: 100)
    private static let sort = Input(
        "sort", .choice() as InputType<SessionOrder>,
        "id: by number. -behind: players that are furthest behind live first; there are no further pages then.", fallback: .id)
    private static let id = Input("sessionId", .whole(1...Int64.max), "The connection's number.").required

    enum SessionRole: String, Sendable, CaseIterable { case publisher, player }
    enum SessionOrder: String, Sendable, CaseIterable {
        case id
        case mostBehind = "-behind"
    }

    /// Sessions: connections of publishers and players.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/sessions", "listSessions", .sessions, .ops, .list, "List connections, by number or by distance behind live.",
            query: [Self.role, Self.stream, Self.sort, Self.after, Self.limit],
            answers: SessionListAnswer.outputType
        ) { call in
            var all = try await Self.visible(try await call.services.streams.collect { $0.sessionSnapshots() }, call).sorted {
                $0.id < $1.id
            }
            if let role = call[Self.role] { all.removeAll { role == .publisher ? $0.publishing.isEmpty : $0.viewers.isEmpty } }
            if let name = call[Self.stream] {
                let stream = if let path = StreamPath(name) { await call.rooms.stream(named: path).description } else { name }
                all.removeAll { session in !session.streams.contains { $0.exact == stream.exact } }
            }
            let (limit, node) = (Int(try call.value(Self.limit)), call.rooms.nodeName)
            if try call.value(Self.sort) == .mostBehind {
                // A second page would not continue the first, because the delays change all the time.
                let behind = all.map { (session: $0, ms: $0.viewers.map(\.behindMs).max() ?? -1) }.sorted { $0.ms > $1.ms }
                return SessionListAnswer(total: all.count, next: nil, behind.prefix(limit).map(\.session), node: node)
            }
            let after = UInt64(clamping: try call.value(Self.after))
            let page = all.filter { $0.id > after }.prefix(limit)
            let isLast = page.last?.id == all.last?.id || page.isEmpty
            return SessionListAnswer(total: all.count, next: isLast ? nil : page.last?.id, Array(page), node: node)
        },
        ControlRoute(
            .get, "/sessions/{sessionId}", "getSession", .sessions, .ops, .thing, "Look a connection up.", in: [Self.id],
            answers: SessionAnswer.outputType, home: .session
        ) { call in
            let id = UInt64(clamping: try call.value(Self.id))
            let session = try await call.services.streams.collect { $0.sessionSnapshots() }.first { $0.id == id }
            guard let session, try await call.seesAll(session.streams) else {
                throw APIError.notFound("session", "\(id)", field: "sessionId")
            }
            return SessionAnswer(session: session, node: call.rooms.nodeName)
        },
        ControlRoute(
            .get, "/sessions/{sessionId}/trace", "getSessionTrace", .sessions, .ops, .thing,
            "Read what a connection said and did last. Also for five minutes after an abnormal end.",
            in: [Self.id], answers: TraceReport.outputType, home: .session
        ) { call in
            let id = UInt64(clamping: try call.value(Self.id))
            if call.scope.isLimited {
                // The streams of an ended session are unknown, so a limited token does not see it.
                let session = await call.services.control.session(id)
                guard let session, try await call.seesAll(session.streams) else {
                    throw APIError.notFound("session", "\(id)", field: "sessionId")
                }
            }
            if let running = try await call.services.streams.collect({ $0.trace(of: id).map { [$0] } ?? [] }).first { return running }
            guard let ended = call.services.connections.traces.ended(id) else {
                throw APIError.notFound("session", "\(id)", field: "sessionId")
            }
            return ended
        },
        ControlRoute(
            .delete, "/sessions/{sessionId}", "endSession", .sessions, .ops, .thing, "End a connection. Its client may connect again.",
            in: [Self.id], answers: .nothing, home: .session
        ) { call in
            let id = try call.value(Self.id)
            if call.scope.isLimited {
                let session = await call.services.control.session(UInt64(clamping: id))
                guard let session, try await call.seesAll(session.streams) else {
                    throw APIError.notFound("session", "\(id)", field: "sessionId")
                }
            }
            guard await call.services.control.endSession(UInt64(clamping: id), by: call.actor) else {
                throw APIError.notFound("session", "\(id)", field: "sessionId")
            }
        },
    ]

    /// The connections of which the token covers all streams.
    private static func visible(_ all: [SessionSnapshot], _ call: APICall) async throws -> [SessionSnapshot] {
        guard call.scope.isLimited else { return all }
        var visible: [SessionSnapshot] = []
        for session in all { if try await call.seesAll(session.streams) { visible.append(session) } }
        return visible
    }
}

extension SessionSnapshot {
    /// All streams that it publishes and plays, as app/name.
    fileprivate var streams: [String] { self.publishing + self.viewers.map(\.path) }
}

struct SessionListAnswer: Sendable {
    let total: Int
    let next: UInt64?
    let list: [SessionAnswer]

    init(total: Int, next: UInt64?, _ list: [SessionSnapshot], node: String?) {
        self.total = total
        self.next = next
        self.list = list.map { SessionAnswer(session: $0, node: node) }
    }

    static let outputType = OutputType<SessionListAnswer>.object(
        "SessionList",
        [
            .field("total", .count, "The number of connections on all pages.", \.total),
            .field("next", .nullable(.count), "Pass it as `after` to get the next page; null on the last page.", \.next),
            .field("list", .list(SessionAnswer.outputType), "The connections of this page.", \.list),
        ])
}

/// A connection, and the node that has it.
struct SessionAnswer: Sendable {
    let session: SessionSnapshot
    /// Nil if the registry is not shared.
    let node: String?

    static let outputType = OutputType<SessionAnswer>.object(
        "Session",
        [
            .field("sessionId", .count, "The connection's number.", \.session.id),
            .field("node", .nullable(.text), "The node that has the connection; null for a server that is alone.", \.node),
            .field("transport", .words(SessionSnapshot.Transport.allCases.map(\.rawValue)), "The protocol.", \.session.transport.rawValue),
            .field("address", .text, "The client's address.", \.session.remote),
            .field("app", .nullable(.text), "The app that the client connected to.", \.session.app),
            .field("client", .nullable(.text), "The name that the client gives itself.", \.session.client),
            .field("userId", .nullable(.text), "The user, if the credential or hook names one.", \.session.user),
            .field("seconds", .count, "Seconds since the client connected.", \.session.seconds),
            .field("bytesIn", .count, "Bytes received.", \.session.bytesIn),
            .field("bytesOut", .count, "Bytes sent.", \.session.bytesOut),
            .field("publishing", .list(.text), "Streams that the connection publishes, as app/name.", \.session.publishing),
            .field("playing", .list(Self.play), "Streams that the connection plays.", \.session.viewers),
        ])

    private static let play = OutputType<ViewerSnapshot>.object(
        "SessionPlay",
        [
            .field("stream", .text, "The stream, as app/name.", \.path),
            .field("behindMs", .count, "Milliseconds behind live.") { max(0, $0.behindMs) },
            .field(
                "isSlow", .flag,
                "Whether it was more than 1.5 s behind live by its own fault, or skipped frames, within the last minute, or its line is bad.",
                \.isSlow),
            .field("framesSkipped", .count, "Frames skipped because the client was too slow.", \.skippedFrames),
            .field("bytesSent", .count, "Bytes sent.", \.bytesSent),
            .field("messagesSent", .count, "Messages sent.", \.messagesSent),
            .field("paused", .flag, "Whether the client has paused.", \.isPaused),
            .field(
                "line", .nullable(Self.line), "How packets reach the client, by its own reports; null for transports other than webrtc.",
                \.line
            ),
        ])

    private static let line = OutputType<ViewerSnapshot.Line>.object(
        "ViewerLine",
        [
            .field(
                "verdict", .words(["unknown", "good", "lossy", "congested"]),
                "lossy: more than 5 % of the packets is lost. congested: packets queue for more than 150 ms on the way. unknown: no report yet.",
                \.verdict),
            .field("lossPercent", .number, "Packets lost of late, in percent.") { Self.rounded($0.loss * 100) },
            .field("jitterMs", .number, "The jitter of arrival in milliseconds (RFC 3550).") { Self.rounded($0.jitterMs) },
            .field("roundTripMs", .nullable(.number), "There and back, in milliseconds; null until reported.") {
                $0.roundTripMs.map(Self.rounded)
            },
            .field(
                "queuedMs", .nullable(.number), "How long packets stand in queues on the way; null for clients that do not report it."
            ) { $0.queuedMs.map(Self.rounded) },
            .field("repeats", .count, "Packets that were sent again because they were lost.", \.repeats),
            .field(
                "sends", .words(["all", "keyframes", "sound"]),
                "What is sent, since the line takes no more: all, keyframes and sound, or sound alone.", \.sends),
        ])

    private static func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }
}
