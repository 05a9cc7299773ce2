@testable import AppServer
import HTTPServer
import NIOCore
import NIOPosix
import Relay
import ServerTestSupport
import Support
import Synchronization
import TestSupport
import Testing

/// A connection of an app leaves nothing behind, even if its session keeps it.
@Suite struct AppSocketTests {
    /// Keeps its peer, as sessions do.
    private final class Session: AppSession {
        var peer: AppPeer?
        func opened(_ peer: AppPeer) { self.peer = peer }
        func received(_ text: String) -> Bool { true }
        func closed() {}
    }

    private final class Held: Sendable {
        private struct Weak: @unchecked Sendable {
            weak var object: AnyObject?
        }

        private let all = Mutex<[Weak]>([])

        func hold(_ object: AnyObject) {
            let weak = Weak(object: object)
            self.all.withLock { $0.append(weak) }
        }

        var left: Int { self.all.withLock { $0.count { $0.object != nil } } }
        var count: Int { self.all.withLock { $0.count } }
    }

    @Test func nothingIsLeft() async throws {
        let (held, counters, group) = (Held(), AppCounters(), MultiThreadedEventLoopGroup.singleton)
        let sweepers = LoopSweepers(group)
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let session = Session()
                    let socket = AppSocket(
                        session, limits: AppSocketLimits(), sweepers: sweepers, counters: counters,
                        account: HTTPHoldings(MemoryLedger(limit: 1 << 30)).account(of: nil))
                    held.hold(session)
                    held.hold(socket)
                    try channel.pipeline.syncOperations.addHandler(socket)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try (server.localAddress?.port).orThrow()
        for _ in 0..<3 {
            let client = try await SocketClient.open(port)
            try await client.send(ClientFrame.bytes(1, Array("{}".utf8)))
            try await eventually("the connection") { counters.current.messages > 0 && counters.current.connections > 0 }
            await client.close()
            try await eventually("its end") { counters.current.connections == 0 }
        }
        #expect(held.count == 6)
        try await eventually("all to be given back") { held.left == 0 }
        try await server.close()
    }
}
