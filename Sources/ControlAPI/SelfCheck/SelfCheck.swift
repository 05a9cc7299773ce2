import Access
import HTTPAPI
import Listening
import Relay
import RoomRegistry
import Rooms
import Streaming
import Support

/// Compares each counter with the things it counts.
struct SelfCheck: Sendable {
    struct Verdict: Sendable, Equatable {
        let name: String
        let help: String
        /// The number of things, counted one by one.
        let expected: Int64
        /// The counter's value.
        let actual: Int64
        var isOK: Bool { self.expected == self.actual }
    }

    let verdicts: [Verdict]
    var isOK: Bool { self.verdicts.allSatisfy(\.isOK) }

    /// Repeats the count a few times while there is a difference, since things change during the count. A counter is wrong only if it differs each
    /// time.
    static func run(_ services: APIServices) async throws -> SelfCheck {
        var check = try await Self.count(services)
        for _ in 0..<Self.repeats where !check.isOK {
            try await Task.sleep(for: Self.pause)
            let again = try await Self.count(services)
            let right = Dictionary(check.verdicts.filter(\.isOK).map { ($0.name, $0) }) { first, _ in first }
            check = SelfCheck(verdicts: again.verdicts.map { right[$0.name] ?? $0 })
        }
        return check
    }

    private static let repeats = 5
    private static let pause = Duration.milliseconds(100)

    private static func count(_ services: APIServices) async throws -> SelfCheck {
        let counters = services.connections.counters.current
        let admitted = services.connections.admission.current
        let waiting = services.connections.waitingPlayers
        let sessions = try await services.streams.collect { $0.sessionSnapshots() }
        let streams = try await services.streams.collect { $0.relay.streamSnapshots() }
        let rooms = try await services.rooms.counts()
        // Talk voices and mixes are not pushes of a room.
        let live = streams.filter { if case .live = $0.phase { !TalkStreamName.isTalk(path: $0.path) } else { false } }
        let pushes = sessions.reduce(0) { $0 + $1.publishing.count { !TalkStreamName.isTalk(path: $0) } }
        let closed = counters.closed.values.reduce(UInt64(0)) { $0 &+ $1 }
        return SelfCheck(
            verdicts: [
                .init(
                    name: "connections", help: "Open connections; those counted as accepted minus those counted as closed.",
                    expected: Int64(sessions.count),
                    actual: Int64(clamping: counters.connectionsAccepted) - Int64(clamping: closed)),
                .init(
                    name: "connectionsAdmitted",
                    help: "Open connections, and players that wait for a publisher; those counted against the limits.",
                    expected: Int64(sessions.count + waiting), actual: Int64(admitted.connections + services.connections.hls.count)),
                .init(
                    name: "publishers", help: "Streams that connections publish; those counted against the limit.",
                    expected: Int64(sessions.reduce(0) { $0 + $1.publishing.count }), actual: Int64(admitted.publishers)),
                .init(
                    name: "viewers", help: "Plays of all connections; the sum of the streams' own counts.",
                    expected: Int64(sessions.reduce(0) { $0 + $1.viewers.count }), actual: Int64(streams.reduce(0) { $0 + $1.viewers })),
                .init(
                    name: "viewersOfStreams", help: "Streams; streams whose own count of viewers equals the connections' plays.",
                    expected: Int64(streams.count), actual: Int64(Self.streamsWithRightCount(streams, sessions))),
                .init(
                    name: "streams", help: "Streams on the event loops; those counted in the registry.", expected: Int64(streams.count),
                    actual: Int64(services.streams.registry.count)),
                .init(
                    name: "openPushes", help: "Streams that connections and links publish; this server's running pushes in the store.",
                    expected: Int64(pushes + services.figures.links.publishing),
                    actual: rooms.openPushes),
                .init(
                    name: "liveStreams", help: "Live streams; those for which their room has a running push.", expected: Int64(live.count),
                    actual: Int64(try await Self.streamsWithRoom(live, services))),
                .init(
                    name: "rooms", help: "Rooms in the store; the sum of the counters per state.", expected: rooms.rooms,
                    actual: rooms.counters),
                .init(
                    name: "liveRooms", help: "Live rooms in the store; the counter of that state.", expected: rooms.liveRooms,
                    actual: rooms.liveCounter),
            ])
    }

    private static func streamsWithRightCount(_ streams: [StreamSnapshot], _ sessions: [SessionSnapshot]) -> Int {
        var plays: NameTable<Int> = [:]
        for viewer in sessions.flatMap(\.viewers) { plays[viewer.path, default: 0] += 1 }
        return streams.count { $0.viewers == plays[$0.path, default: 0] }
    }

    private static func streamsWithRoom(_ streams: [StreamSnapshot], _ services: APIServices) async throws -> Int {
        var count = 0
        for path in streams.compactMap({ StreamPath($0.path) }) {
            if try await services.rooms.room(ofStream: path)?.slot(path)?.sequence != nil { count += 1 }
        }
        return count
    }

    static let outputType = OutputType<SelfCheck>.object(
        "SelfCheck",
        [.field("ok", .flag, "Whether all agree.", \.isOK), .field("list", .list(Verdict.outputType), "The verdicts.", \.verdicts)])
}

extension SelfCheck.Verdict {
    static let outputType = OutputType<SelfCheck.Verdict>.object(
        "Verdict",
        [
            .field("name", .text, "The comparison's name.", \.name),
            .field("help", .text, "What is compared: the things; their counter.", \.help),
            .field("expected", OutputType<Int64>(.keywords("integer")) { .integer($0) }, "Counted from the things themselves.", \.expected),
            .field("actual", OutputType<Int64>(.keywords("integer")) { .integer($0) }, "The counter's value.", \.actual),
            .field("ok", .flag, "Whether the two agree.", \.isOK),
        ])
}
