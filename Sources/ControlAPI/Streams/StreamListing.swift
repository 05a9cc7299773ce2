import HTTPAPI
import HTTPServer
import Health
import Relay
import RoomRegistry
import Rooms
import Streaming
import Support

/// Selects and sorts the streams of a list.
enum StreamListing {
    /// The orders of a list of streams. Pages by `name` stay stable while streams come and go.
    enum Order: String, Sendable, CaseIterable {
        case name
        /// Most viewers first.
        case viewers
        /// Interrupted streams first, then the worst verdict; among equals the stream with most viewers.
        case verdict
    }

    /// The page that the call asks for.
    static func page(_ call: APICall) async throws -> StreamListAnswer {
        let order = try call.value(StreamInputs.sort)
        var all = try await Self.candidates(call, order)
        if call.scope.isLimited {
            var visible: [StreamAnswer] = []
            for stream in all { if try await call.sees(stream.path) { visible.append(stream) } }
            all = visible
        }
        if let state = call[StreamInputs.state] { all.removeAll { $0.state != state } }
        if let app = call[StreamInputs.appFilter] { all.removeAll { $0.path.app.exact != app.exact } }
        let limit = Int(try call.value(StreamInputs.limit))
        let (start, next) = try Self.sort(&all, by: order, after: call[StreamInputs.after])
        var page = Array(all[start...].prefix(limit))
        let end = start + page.count
        let cursor = page.isEmpty || end == all.count ? nil : next(end, page[page.count - 1])
        if order != .name { page = await Self.complete(page, call) }
        for index in page.indices {
            page[index] = page[index].with(roomID: try await call.rooms.room(ofStream: page[index].path)?.id)
        }
        return StreamListAnswer(total: all.count, next: cursor, list: page)
    }

    /// Looks up named streams on their own loops. Does the same for a page of sorted streams, once they are known. Only a list of all streams
    /// collects every session's figures.
    private static func candidates(_ call: APICall, _ order: Order) async throws -> [StreamAnswer] {
        if let asked = call[StreamInputs.streams] {
            var paths: [StreamPath] = []
            for name in asked { paths.append(await call.rooms.stream(named: name)) }
            return await Self.answers(paths, call)
        }
        if order == .name { return try await call.services.streamAnswers() }
        return try await call.services.streams.collect { $0.relay.streamSnapshots() }.compactMap { snapshot in
            StreamPath(snapshot.path).map {
                StreamAnswer(
                    snapshot: snapshot, path: $0, publisher: nil, bytesOut: 0, worstBehindMs: nil, slowViewers: 0, webrtc: nil, roomID: nil,
                    node: call.rooms.nodeName)
            }
        }
    }

    /// Sorts the streams. Returns the first index after the cursor, and a function that makes the cursor from an end index and a page's last stream.
    private static func sort(
        _ all: inout [StreamAnswer], by order: Order, after: String?
    ) throws(APIError) -> (start: Int, next: (Int, StreamAnswer) -> String) {
        switch order {
        case .name: all.sort { $0.snapshot.path < $1.snapshot.path }
        case .viewers: all.sort { (-$0.snapshot.viewers, $0.snapshot.path) < (-$1.snapshot.viewers, $1.snapshot.path) }
        case .verdict:
            all.sort {
                // An interrupted stream has no verdict. Its viewers see nothing, which is worse than a bad one.
                let isAway = $0.state == .interrupted
                guard isAway == ($1.state == .interrupted) else { return isAway }
                let (one, other) = ($0.snapshot.health?.verdict ?? .good, $1.snapshot.health?.verdict ?? .good)
                guard one == other else { return one > other }
                return (-$0.snapshot.viewers, $0.snapshot.path) < (-$1.snapshot.viewers, $1.snapshot.path)
            }
        }
        guard order != .name else {
            let start = after.flatMap { after in all.firstIndex { $0.snapshot.path > after } ?? all.count } ?? 0
            return (start, { $1.snapshot.path })
        }
        guard let after else { return (0, { end, _ in "\(end)" }) }
        guard let offset = Int(after), offset >= 0 else {
            throw APIError(FieldError("after", after, "expected the next of the previous page: a place in the sorted list"))
        }
        return (min(offset, all.count), { end, _ in "\(end)" })
    }

    /// The same streams with all their figures, in the same order. Leaves out streams that have ended meanwhile.
    private static func complete(_ page: [StreamAnswer], _ call: APICall) async -> [StreamAnswer] {
        let found = await Self.answers(page.map(\.path), call)
        let byPath = Dictionary(found.map { ($0.path, $0) }) { first, _ in first }
        return page.compactMap { byPath[$0.path] }
    }

    /// The named streams that are in use, each once. Asks all loops concurrently, so that a late loop is waited for once.
    private static func answers(_ paths: [StreamPath], _ call: APICall) async -> [StreamAnswer] {
        await withTaskGroup(of: StreamAnswer?.self) { group in
            for path in Set(paths) { group.addTask { await call.services.streamAnswer(path) } }
            var found: [StreamAnswer] = []
            for await answer in group { if let answer { found.append(answer) } }
            return found
        }
    }
}

extension InputType<[StreamPath]> {
    /// Streams as app/name, separated by commas in a query.
    static func streamPaths(atMost most: Int) -> InputType {
        let longest = 2 * RoomLimits.streamNameLength + 1
        let one: JSONValue = [
            "type": "string", "minLength": 3, "maxLength": .integer(Int64(longest)), "pattern": "^[^/]+/.+$",
        ]
        let rule = "expected 1 to \(most) streams as app/name, with commas between them"
        let name = InputType<String>.soughtName(length: 3...longest)
        return InputType(.keywords("array", ("items", one), ("minItems", 1), ("maxItems", .integer(Int64(most))))) {
            (json: JSONValue) throws(BrokenRule) in
            guard case .array(let values) = json, (1...most).contains(values.count) else { throw BrokenRule(rule) }
            var paths: [StreamPath] = []
            for value in values {
                guard let path = StreamPath(try name.read(value)) else { throw BrokenRule(rule, value: value.shown) }
                paths.append(path)
            }
            return paths
        }
    }
}
