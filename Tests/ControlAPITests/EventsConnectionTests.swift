import ControlAPI
import Foundation
import HTTPServer
import Listening
import NIOCore
import NIOEmbedded
import Notifications
import RoomRegistry
import ServerTestSupport
import Store
import Support
import TestSupport
import Testing

@testable import Rooms

/// A subscriber over time: heartbeat, silence, a blocked socket, a revoked token, a failing store.
@Suite struct EventsConnectionTests {
    /// A subscriber on a loop of its own, with a real registry.
    private struct Setup {
        let rooms: RoomRegistry
        let hub = EventHub()
        let channel: NIOAsyncTestingChannel
        let connection: NIOLoopBound<EventsConnection>
        /// Before it was opened.
        let openedMs: Int64

        var loop: NIOAsyncTestingEventLoop { self.channel.testingEventLoop }

        /// Sweeps as if no more than `ms` milliseconds had passed since it was opened, however long that took.
        func sweep(early ms: Int64) async throws {
            let (connection, at) = (self.connection, self.openedMs + ms)
            try await self.loop.executeInContext { connection.value.sweep(nowMs: at) }
        }

        /// Sweeps as if `ms` milliseconds more had passed.
        func sweep(after ms: Int64) async throws {
            let connection = self.connection
            let now = LoopSweeper.nowMs
            try await self.loop.executeInContext { connection.value.sweep(nowMs: now + ms) }
        }

        /// The frames written since the last call, by opcode.
        func frames() async throws -> [(opcode: UInt8, payload: [UInt8])] {
            var frames: [(opcode: UInt8, payload: [UInt8])] = []
            while var bytes = try await self.channel.readOutbound(as: ByteBuffer.self) {
                while let first = bytes.readInteger(as: UInt8.self), let length = bytes.readInteger(as: UInt8.self) {
                    let size = length == 126 ? bytes.readInteger(as: UInt16.self).map(Int.init) ?? 0 : Int(length)
                    frames.append((first & 15, bytes.readBytes(length: size) ?? []))
                }
            }
            return frames
        }

        func closeCode() async throws -> Int? {
            try await self.frames().first { $0.opcode == 8 }.map { Int($0.payload[0]) << 8 | Int($0.payload[1]) }
        }
    }

    private static func run(withStore: Bool = true, _ body: (Setup) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-feed-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let rooms = try RoomRegistry(.folder(folder.path), settings: .init())
        try await rooms.start()
        let token = try await rooms.createToken(name: "t", role: .backend).token
        if !withStore { await rooms.stop() }
        let channel = NIOAsyncTestingChannel()
        let hub = EventHub()
        let openedMs = LoopSweeper.nowMs
        let connection = try await channel.testingEventLoop.executeInContext {
            let connection = EventsConnection(
                EventsStart(frames: [WebSocketWriter.text("hello")], position: 0, room: nil, tokenID: token.id),
                place: try hub.acquirePlace().orThrow(), hub: hub, sweepers: LoopSweepers(channel.testingEventLoop),
                tokens: TokenWatch(rooms), clock: RoomClock(), events: StoredEvents(rooms: rooms, room: nil),
                counters: ServerCounters())
            return NIOLoopBound(connection, eventLoop: channel.testingEventLoop)
        }
        try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1))
        try await channel.testingEventLoop.executeInContext { try channel.pipeline.syncOperations.addHandler(connection.value) }
        try await body(Setup(rooms: rooms, channel: channel, connection: connection, openedMs: openedMs))
        _ = try? await channel.finish()
        if withStore { await rooms.stop() }
    }

    @Test func pingsEveryFifteenSeconds() async throws {
        try await Self.run { setup in
            #expect(try await setup.frames().map(\.opcode) == [1])
            try await setup.sweep(early: 14_000)
            #expect(try await setup.frames().isEmpty)
            try await setup.sweep(after: 15_100)
            #expect(try await setup.frames().map(\.opcode) == [9])
            try await setup.sweep(after: 16_000)
            #expect(try await setup.frames().isEmpty)
            try await setup.sweep(after: 30_200)
            #expect(try await setup.frames().map(\.opcode) == [9])
        }
    }

    @Test func silenceEndsIt() async throws {
        try await Self.run { setup in
            _ = try await setup.frames()
            try await setup.sweep(early: 44_000)
            #expect(try await setup.closeCode() == nil)
            try await setup.sweep(after: 45_100)
            #expect(try await setup.closeCode() == 1013)
            #expect(setup.channel.isActive)
            // The client does not answer.
            try await setup.sweep(after: 48_000)
            #expect(!setup.channel.isActive)
        }
    }

    @Test func anyFrameIsASignOfLife() async throws {
        try await Self.run { setup in
            _ = try await setup.frames()
            try await setup.channel.writeInbound(ByteBuffer(bytes: ClientFrame.bytes(10, [])))
            try await setup.sweep(early: 44_900)
            #expect(try await setup.closeCode() == nil)
        }
    }

    @Test func aSocketThatTakesNothing() async throws {
        try await Self.run { setup in
            _ = try await setup.frames()
            setup.channel.isWritable = false
            try await setup.sweep(after: 0)
            // Its silence proves nothing: our pings may still be unread.
            try await setup.sweep(early: 59_000)
            #expect(try await setup.frames().isEmpty)
            try await setup.sweep(after: 60_100)
            #expect(try await setup.closeCode() == 1013)
            try await setup.sweep(after: 63_000)
            #expect(!setup.channel.isActive)
        }
    }

    /// Pings that cannot be answered at once get one pong, for the newest.
    @Test func pongsAreNotQueued() async throws {
        try await Self.run { setup in
            _ = try await setup.frames()
            setup.channel.isWritable = false
            for number in UInt8(0)..<100 {
                try await setup.channel.writeInbound(ByteBuffer(bytes: ClientFrame.bytes(9, [number])))
            }
            #expect(try await setup.frames().isEmpty)
            setup.channel.isWritable = true
            try await setup.loop.executeInContext { setup.channel.pipeline.fireChannelWritabilityChanged() }
            let pongs = try await setup.frames().filter { $0.opcode == 10 }
            #expect(pongs.map(\.payload) == [[99]])
        }
    }

    @Test func aRevokedToken() async throws {
        try await Self.run { setup in
            _ = try await setup.frames()
            let id = try await setup.rooms.tokens()[0].id
            _ = try await setup.rooms.revokeToken(id)
            try await eventually("the close frame") {
                try await setup.sweep(after: 0)
                return try await setup.closeCode() == 1008
            }
        }
    }

    /// Retries each second, then gives up.
    @Test func aStoreThatFails() async throws {
        try await Self.run(withStore: false) { setup in
            #expect(try await setup.frames().map(\.opcode) == [1])
            var sweeps = 0
            try await eventually("the close frame") {
                sweeps += 1
                try await setup.sweep(after: 1_500)
                return try await setup.closeCode() == 1011
            }
            #expect(sweeps >= 9)
        }
    }

    @Test func placesAreCounted() throws {
        let hub = EventHub()
        var places = (0..<EventHub.subscriberLimit).compactMap { _ in hub.acquirePlace() }
        #expect(places.count == 1_000)
        #expect(hub.acquirePlace() == nil)
        places.removeLast()
        #expect(hub.subscribers == 999)
        #expect(hub.acquirePlace() != nil)
        places = []
        #expect(hub.subscribers == 0)
    }
}
