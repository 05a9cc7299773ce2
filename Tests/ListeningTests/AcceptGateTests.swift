import LibC
import Listening
import Logging
import NIOCore
import NIOPosix
import ServerTestSupport
import Synchronization
import TestSupport
import Testing

/// Listeners without a free place, or without a descriptor, for new connections.
@Suite(.timeLimit(.minutes(5))) struct AcceptGateTests {
    /// Records what the gate lets through.
    private final class Behind: ChannelInboundHandler, Sendable {
        typealias InboundIn = any Channel
        let connections = Mutex<[any Channel]>([])
        let errors = Mutex<[String]>([])

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let connection = self.unwrapInboundIn(data)
            self.connections.withLock { $0.append(connection) }
            context.fireChannelRead(data)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { self.errors.withLock { $0.append("\(error)") } }
    }

    private struct Listener: Sendable {
        let channel: any Channel
        let behind: Behind
        let counters: ServerCounters
        let gate: AcceptGate
        var port: Int { self.channel.localAddress?.port ?? 0 }
        var turnedAway: UInt64 { self.counters.current.connectionsTurnedAway }

        static func with(limit: Int, reserve: AcceptReserve? = nil, reads: Bool = true, _ body: (Listener) async throws -> Void)
            async throws
        {
            let (behind, counters) = (Behind(), ServerCounters())
            let log = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            let gate = AcceptGate(limit: limit, reserve: reserve, counters: counters, log: log)
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.autoRead, value: reads)
                .serverChannelOption(.maxMessagesPerRead, value: UInt(gate.perTurn))
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandlers([gate.handler(), behind]) }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            do {
                try await body(Listener(channel: channel, behind: behind, counters: counters, gate: gate))
            } catch {
                try await channel.close()
                throw error
            }
            for connection in behind.connections.withLock({ $0 }) { connection.close(promise: nil) }
            try await channel.close()
        }
    }

    @Test func moreThanThePlacesAreTurnedAway() async throws {
        try await Listener.with(limit: 10) { listener in
            var clients: [SocketClient] = []
            // Ten that are served, four in the places for refusals.
            for _ in 0..<40 { clients.append(try await SocketClient.open(listener.port)) }
            try await eventually("the others to be closed") { clients.count { $0.isClosed } == 26 }
            #expect(listener.turnedAway == 26)
            #expect(listener.behind.connections.withLock { $0.count } == 14)
            // A freed place is used again.
            let first = try listener.behind.connections.withLock { $0.first }.orThrow()
            try await first.close()
            try await eventually("a place") {
                let client = try await SocketClient.open(listener.port)
                clients.append(client)
                return listener.behind.connections.withLock { $0.count } == 15
            }
            for client in clients { await client.close() }
            #expect(listener.behind.errors.withLock { $0 } == [])
        }
    }

    private static func reserve(patience: TimeAmount) -> AcceptReserve {
        AcceptReserve(places: 2, patience: patience) { $0.ipAddress == "127.0.0.2" }
    }

    /// With all places taken, newcomers wait for the next free one.
    @Test func newcomersWaitForAPlace() async throws {
        try await Listener.with(limit: 10, reserve: Self.reserve(patience: .minutes(10))) { listener in
            var clients: [SocketClient] = []
            for _ in 0..<20 { clients.append(try await SocketClient.open(listener.port)) }
            try await eventually("the places to be taken") { listener.behind.connections.withLock { $0.count } >= 14 }
            // The rest of a turn is accepted beyond the places.
            for closed in 0..<6 {
                let count = listener.behind.connections.withLock { $0.count }
                #expect(count <= 18 + closed)
                try await listener.behind.connections.withLock { $0[closed] }.close()
                try await eventually("the next one") { listener.behind.connections.withLock { $0.count } >= 15 + closed }
            }
            try await eventually("all") { listener.behind.connections.withLock { $0.count } == 20 }
            #expect(listener.turnedAway == 0)
            for client in clients { await client.close() }
        }
    }

    /// A higher limit lets waiting connections in, without anybody leaving.
    @Test func aHigherLimitIsUsedAtOnce() async throws {
        try await Listener.with(limit: 10, reserve: Self.reserve(patience: .minutes(10))) { listener in
            var clients: [SocketClient] = []
            for _ in 0..<40 { clients.append(try await SocketClient.open(listener.port)) }
            try await eventually("the places to be taken") { listener.behind.connections.withLock { $0.count } >= 14 }
            #expect(listener.behind.connections.withLock { $0.count } <= 18)
            listener.gate.set(limit: 100)
            try await eventually("all") { listener.behind.connections.withLock { $0.count } == 40 }
            #expect(listener.turnedAway == 0)
            for client in clients { await client.close() }
        }
    }

    /// When no place becomes free, the reserve's addresses still get its places.
    @Test func theReserveIsForItsAddresses() async throws {
        try await Listener.with(limit: 10, reserve: Self.reserve(patience: .milliseconds(10))) { listener in
            var clients: [SocketClient] = []
            for _ in 0..<30 { clients.append(try await SocketClient.open(listener.port)) }
            try await eventually("the others to be closed") {
                clients.count { $0.isClosed } + listener.behind.connections.withLock { $0.count } == 30
            }
            let taken = listener.behind.connections.withLock { $0.count }
            #expect((14...18).contains(taken))
            var ops: [SocketClient] = []
            for _ in 0..<3 { ops.append(try await SocketClient.open(listener.port, from: "127.0.0.2")) }
            try await eventually("the third to be closed") { ops[2].isClosed }
            #expect(!ops[0].isClosed && !ops[1].isClosed && listener.turnedAway == 31 - taken)
            #expect(listener.behind.connections.withLock { $0.count } == taken + 2)
            // The reserve's places become free again, and so do the others.
            await ops[0].close()
            try await eventually("a place of the reserve") {
                clients.append(try await SocketClient.open(listener.port, from: "127.0.0.2"))
                return listener.behind.connections.withLock { $0.count } >= taken + 3
            }
            for connection in listener.behind.connections.withLock({ $0.prefix(taken - 13) }) { try await connection.close() }
            try await eventually("a place of the others") {
                clients.append(try await SocketClient.open(listener.port))
                return listener.behind.connections.withLock { $0.count } >= taken + 4
            }
            for client in clients + ops { await client.close() }
        }
    }

    /// NIO reports EMFILE and retries at once, for ever; handlers behind the gate do not see it.
    @Test func withoutADescriptorWhoWaitsIsTurnedAway() async throws {
        try await Listener.with(limit: 10, reads: false) { listener in
            // Both wait to be accepted.
            let waiting = [try await SocketClient.open(listener.port), try await SocketClient.open(listener.port)]
            listener.channel.pipeline.fireErrorCaught(IOError(errnoCode: EMFILE, reason: "accept"))
            try await eventually("their end") { waiting.allSatisfy(\.isClosed) }
            #expect(listener.turnedAway == 2)
            #expect(listener.behind.errors.withLock { $0 } == [])
            // The listener continues by itself.
            let next = try await SocketClient.open(listener.port)
            try await eventually("the next one") { listener.behind.connections.withLock { $0.count } == 1 }
            #expect(!next.isClosed)
            await next.close()
        }
    }

    @Test func otherErrorsPass() async throws {
        try await Listener.with(limit: 10) { listener in
            listener.channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNABORTED, reason: "accept"))
            listener.channel.pipeline.fireErrorCaught(IOError(errnoCode: EINVAL, reason: "accept"))
            try await eventually("the error") { listener.behind.errors.withLock { $0.count } == 1 }
        }
    }
}
