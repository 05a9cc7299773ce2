import Listening
import Logging
import NIOCore
import NIOPosix
import Relay
import ServerTestSupport
import Sockets
import Support
import Synchronization
import TestSupport
import Testing

/// Connections are spread over the event loops by their number and by how late the loops are.
@Suite struct PlacementTests {
    @Test func connectionsGoWhereFewestAre() async throws {
        try await Listener.run { listener in
            try await listener.connect(90)
            #expect(listener.open() == [30, 30, 30])
            // The connections are of three kinds in turn; no kind is all on one loop.
            let places = listener.places()
            for kind in 0..<3 {
                let ofKind = stride(from: kind, to: 90, by: 3).map { places[$0] }
                #expect(Set(ofKind).count > 1, "\(ofKind)")
            }
            try await listener.closeAll(on: 1)
            try await listener.connect(31)
            #expect(listener.open().sorted() == [30, 30, 31], "\(listener.open())")
        }
    }

    @Test func connectionsGoWhereLoopsAreNotLate() async throws {
        let pressures = [900, 0, 0].map(LoopPressure.late(byMs:))
        try await Listener.run(pressures) { listener in
            try await listener.connect(41)
            let open = listener.open()
            #expect(open[0] == 0 && abs(open[1] - open[2]) <= 1, "\(open)")
            pressures[0].publish(LoopLoad.late(byMs: 0))
            try await listener.connect(61)
            #expect(listener.open().allSatisfy { $0 >= 33 }, "\(listener.open())")
        }
    }

    /// A port on three loops of its own, so that other tests' connections do not count.
    private final class Listener: Sendable {
        private let group: SocketLoopGroup
        private let accepted = Mutex<[any Channel]>([])
        private let clients = Mutex<[any Channel]>([])
        private let port = Atomic<Int>(0)

        init() throws { self.group = try SocketLoopGroup(loops: 3) }

        static func run(_ pressures: [LoopPressure] = [], _ body: (Listener) async throws -> Void) async throws {
            let listener = try Listener()
            let log = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            let gate = AcceptGate(limit: 1_000, counters: ServerCounters(), log: log)
            let channel = try await Placement(listener.group, pressures).bootstrap(gate) { channel in
                listener.accepted.withLock { $0.append(channel) }
                return channel.eventLoop.makeSucceededVoidFuture()
            }.bind(host: "127.0.0.1", port: 0).get()
            listener.port.store(try #require(channel.localAddress?.port), ordering: .relaxed)
            try await body(listener)
            for client in listener.clients.withLock({ $0 }) { try? await client.close().get() }
            try await channel.close()
            try await listener.group.shutdownGracefully()
        }

        /// Opens connections, one after the other.
        func connect(_ count: Int) async throws {
            for _ in 0..<count {
                let before = self.accepted.withLock { $0.count }
                let client = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(host: "127.0.0.1", port: self.port.load(ordering: .relaxed)).get()
                self.clients.withLock { $0.append(client) }
                try await eventually("a connection") { self.accepted.withLock { $0.count } > before }
            }
            // One is active a moment after it was accepted.
            try await eventually("connections of all clients") {
                self.open().reduce(0, +) == self.clients.withLock { $0.count { $0.isActive } }
            }
        }

        /// The loop of each accepted connection, in the order of their arrival.
        func places() -> [Int] {
            let loops = Array(self.group.makeIterator())
            return self.accepted.withLock { $0.map { channel in loops.firstIndex { $0 === channel.eventLoop } ?? -1 } }
        }

        /// Open connections of each loop.
        func open() -> [Int] {
            let channels = self.accepted.withLock { $0.filter(\.isActive) }
            return self.group.makeIterator().map { loop in channels.count { $0.eventLoop === loop } }
        }

        func closeAll(on loop: Int) async throws {
            let places = self.places()
            let channels = self.accepted.withLock { $0 }
            for (place, channel) in zip(places, channels) where place == loop { try await channel.close().get() }
        }
    }
}
