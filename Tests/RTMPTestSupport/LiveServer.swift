package import EarshotServer
import Listening
import RTMP
import Relay
import RoomRegistry
package import Rooms
package import ServerTestSupport
import Streaming
package import Support
import TestSupport
package import Testing

@testable import ControlAPI

/// A server in this process, whose services a test can look at.
package protocol LiveServer: TestedServer {
    var parts: ServerParts { get }
}

extension LiveServer {
    package func closed(_ reason: CloseReason) -> UInt64 { self.parts.connections.counters.current.closed[reason] ?? 0 }

    /// Publishers' messages that were skipped.
    package var skipped: UInt64 { self.parts.connections.counters.current.messagesSkipped }

    /// How often the limit was hit, as `/metrics` has it.
    package func hits(_ limit: CountedLimit) -> UInt64 { self.parts.connections.counters.limits.current[limit] ?? 0 }

    /// Waits until `count` connections are left, and checks that each closed one was counted once.
    package func expectConnections(
        _ count: Int, within seconds: Double = 60, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await self.wait("sessions", within: seconds) { $0["total"].int == count }
        let counters = self.parts.connections.counters.current
        let closed = counters.closed.values.reduce(0, +)
        #expect(counters.connectionsAccepted == closed + UInt64(count), sourceLocation: sourceLocation)
    }

    // MARK: Clients

    /// A publisher that has sent its first audio.
    package func livePublisher(_ name: String) async throws -> RawClient {
        let client = try await RawClient.publishing(self.port, name)
        client.send(.audio, SyntheticTag.audio(1, bytes: 20))
        return client
    }

    /// A player that gets all that is published from now on. `Play.Start` alone does not say so: the stream's home loop hears of a loop's
    /// first viewer a turn or more later.
    package func player(of name: String, _ options: RawClient.Options = RawClient.Options()) async throws -> RawClient {
        let client = try await RawClient.playing(self.port, name, options)
        try await self.pass(client)
        // To the home loop, and back with what the stream holds.
        for _ in 0..<2 { _ = try await self.parts.streams.collect { _ in [true] } }
        return client
    }

    /// Waits until the server has handled all from this client, and the client has all sent to it.
    package func pass(_ client: RawClient) async throws {
        let value = UInt32.random(in: 1...(.max))
        try await client.run { $0.ping(value) }
        try await eventually("the pong") { client.outputs.contains(.pong(value)) }
    }

    /// Runs the body beside a canary, which it must not delay.
    package func withCanary(
        sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable (Self) async throws -> Void
    ) async throws {
        let loops = try await self.parts.streams.collect { _ in [ThreadWait.current] }
        try await Canary.during(self.port, loops: loops, sourceLocation: sourceLocation) { try await body(self) }
    }

    // MARK: Rooms

    /// Creates a room without a connection, which would occupy a place.
    package func makeRoom(_ id: String) async throws {
        var room = NewRoom(policy: RoomPolicy())
        room.id = try RoomID(checking: id)
        _ = try await self.rooms.create(room, by: Actor("test"))
    }

    /// Waits until a stream without a publisher waits at least that many milliseconds for one.
    package func waitForGrace(_ name: String, ofAtLeast ms: Int64) async throws {
        try await eventually("a grace of \(ms) ms") {
            let path = StreamPath(app: "live", name: name)
            guard case .grace(let deadlineMs)? = await self.parts.api.streamAnswer(path)?.snapshot.phase else { return false }
            return deadlineMs - LoopSweeper.nowMs >= ms
        }
    }

    package func events(_ id: String) async throws -> [RoomEvent] { try await self.rooms.events(after: 0, room: id, limit: 1_000) }
}
