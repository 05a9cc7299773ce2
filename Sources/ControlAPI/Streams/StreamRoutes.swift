import Access
import HTTPAPI
import HTTPServer
import HTTPTypes
import Relay
import RoomRegistry
import Rooms
import Streaming
import Support

enum StreamRoutes {
    /// Streams: current, forbidden and past ones.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/streams", "listStreams", .streams, .ops, .list, "List the streams that somebody publishes or plays.",
            query: [
                StreamInputs.streams, StreamInputs.state, StreamInputs.appFilter, StreamInputs.sort,
                StreamInputs.after, StreamInputs.limit,
            ],
            answers: StreamListAnswer.outputType
        ) { call in
            try await StreamListing.page(call)
        },
        ControlRoute(
            .get, "/streams/forbidden", "listForbiddenStreams", .streams, .ops, .list, "List the forbidden streams.",
            query: [StreamInputs.after, StreamInputs.limit], answers: StreamBanListAnswer.outputType
        ) { call in
            let bans = try await call.rooms.bans(
                after: call[StreamInputs.after], scope: call.scope, limit: Int(try call.value(StreamInputs.limit)))
            return StreamBanListAnswer(total: bans.total, next: bans.next, list: bans.list)
        },
        ControlRoute(
            .get, "/streams/refused", "listRefusals", .streams, .ops, .list,
            """
            List the pushes and plays that were refused in the last day, newest first. Repetitions are one entry; what may be a credential \
            is hidden. Held in memory: the newest \(RecentRefusals.perAction) pushes and as many plays, of one host at most \
            \(RecentRefusals.perHost). A push that is let in removes its host's refusals for that stream.
            """,
            query: [StreamInputs.appFilter, StreamInputs.nameFilter, StreamInputs.action],
            answers: RefusalListAnswer.outputType
        ) { call in
            let path: StreamPath? = try Self.filter(call)
            let action = call[StreamInputs.action]
            var list: [RecentRefusals.Entry] = []
            for entry in call.services.connections.refusals.list() {
                guard path == nil || entry.path == path, action == nil || entry.action == action else { continue }
                if try await call.sees(entry.path) { list.append(entry) }
            }
            return RefusalListAnswer(list: list)
        },
        ControlRoute(
            .get, "/streams/published", "listPushes", .streams, .ops, .list, "List pushes, including running ones, newest first.",
            query: [
                StreamInputs.appFilter, StreamInputs.nameFilter, StreamInputs.from, StreamInputs.to,
                StreamInputs.before, StreamInputs.limit,
            ],
            answers: PushListAnswer.outputType
        ) { call in
            let limit = Int(try call.value(StreamInputs.limit))
            let list = try await call.rooms.published(
                path: try await Self.stream(call), scope: call.scope, fromMs: call[StreamInputs.from], toMs: call[StreamInputs.to],
                before: call[StreamInputs.before], limit: limit)
            return PushListAnswer(next: list.count == limit ? list.last?.sequence : nil, list: list)
        },
        ControlRoute(
            .get, "/streams/{app}/{name}", "getStream", .streams, .backend, .stream,
            "Get a stream's state, even if nobody uses it. Role backend: of the rooms that the token created.",
            in: StreamInputs.path, answers: StreamStateAnswer.outputType, home: .stream
        ) { call in
            let path = try await call.stream()
            try await call.checkOwn(of: path)
            return try await Self.state(of: path, call)
        },
        ControlRoute(
            .get, "/streams/{app}/{name}/stats", "getStreamStats", .streams, .ops, .stream,
            "Get a stream's figures of the last minutes, second by second.",
            in: StreamInputs.path, query: [StreamInputs.minutes], answers: StreamStatsAnswer.outputType, home: .stream
        ) { call in
            let path = try await call.stream()
            guard let seconds = await call.services.control.history(of: path) else {
                throw APIError.notFound("stream", "\(path)", field: "name")
            }
            return StreamStatsAnswer(path: path, seconds: seconds.suffix(Int(try call.value(StreamInputs.minutes))))
        },
        ControlRoute(
            .post, "/streams/{app}/{name}/drop", "dropStream", .streams, .backend, .stream,
            "End a push. The device may push again immediately. Role backend: of the rooms that the token created.",
            in: StreamInputs.path, answers: DropAnswer.outputType, failures: [.conflict], home: .stream
        ) { call in
            let path = try await Self.pushed(call)
            try await call.checkOwn(of: path)
            return DropAnswer(wasDropped: await call.services.control.drop(path, by: call.actor))
        },
        ControlRoute(
            storing: "/streams/{app}/{name}/forbid", "forbidStream", .streams, .ops, .stream,
            "Forbid a stream: ends its push and refuses pushes and plays for a time. A repeated call changes the ban.",
            in: StreamInputs.path, body: Ban.inputs, answers: StreamBan.outputType, failures: [.conflict]
        ) { call, keep in
            let (path, until, reason) = (try await Self.pushed(call), try Ban.end(call), try call.value(Ban.reason))
            return try await keep({ $0 }) {
                try await call.rooms.forbid(path, untilMs: until, reason: reason, by: call.actor, keeping: $0)
            }
        },
        ControlRoute(
            storing: "/streams/{app}/{name}/resume", "resumeStream", .streams, .ops, .stream,
            "Lift a stream's ban, so that it accepts pushes and plays again.",
            in: StreamInputs.path, answers: StreamStateAnswer.outputType, failures: [.conflict]
        ) { call, keep in
            let path = try await call.stream()
            let stream = await call.services.streamAnswer(path)
            do {
                return try await keep({ (room: Room?) in
                    Self.state(of: path, room: room, ban: nil, stream: stream)
                }) { try await call.rooms.resume(path, by: call.actor, keeping: $0) }
            } catch RegistryError.notForbidden {
                let state = try await Self.state(of: path, call).state.rawValue
                throw APIError.wrongState("The stream \(path) is not forbidden.", state: state, allowed: ["forbid"])
            }
        },
    ]

    /// The path's stream. Throws for a talk mix, which the server makes itself.
    private static func pushed(_ call: APICall) async throws -> StreamPath {
        let path = try await call.stream()
        guard TalkStreamName.isMix(path) else { return path }
        throw APIError.wrongState(
            "\(path) is a talk mix that the server makes; to silence somebody, mute or kick the participant.", state: "mix",
            allowed: [])
    }

    /// The stream that the filter's name stands for.
    private static func stream(_ call: APICall) async throws -> StreamPath? {
        guard let name = try Self.filter(call) else { return nil }
        return await call.rooms.stream(named: name)
    }

    private static func filter(_ call: APICall) throws -> StreamPath? {
        switch (call[StreamInputs.appFilter], call[StreamInputs.nameFilter]) {
        case (let app?, let name?): return StreamPath(app: app, name: name)
        case (nil, nil): return nil
        case (_?, nil): throw APIError(FieldError("name", "", "is required with app"))
        case (nil, _?): throw APIError(FieldError("app", "", "is required with name"))
        }
    }

    private static func state(of path: StreamPath, _ call: APICall) async throws -> StreamStateAnswer {
        let room = try await call.rooms.room(ofStream: path)
        let ban = try await call.rooms.ban(of: path)
        return Self.state(of: path, room: room, ban: ban, stream: await call.services.streamAnswer(path))
    }

    private static func state(of path: StreamPath, room: Room?, ban: StreamBan?, stream: StreamAnswer?) -> StreamStateAnswer {
        StreamStateAnswer(
            path: path, state: ban != nil ? .forbid : stream?.state == .live ? .active : .inactive, room: room, ban: ban,
            stream: stream?.with(roomID: room?.id))
    }
}
