import Foundation
import Listening
import NIOCore
import NIOPosix
import RTMP
import Relay
import Synchronization
import Testing

@testable import Delivery
@testable import EarshotServer
@testable import Support

/// Viewers of one stream are spread over the event loops, and all get the whole stream.
@Suite struct PlacementTests {
    @Test func viewersAreSpreadEvenly() async throws {
        try await TestServer.run { server in
            let port = server.addresses.rtmp.port
            let publisher = try await RawClient.publishing(port, "spread")
            publisher.send(.video, SyntheticTag.videoHeader)
            publisher.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 4_000))
            var viewers: [RawClient] = []
            for _ in 0..<80 { viewers.append(try await RawClient.playing(port, "spread")) }
            try await eventually("80 viewers") { try await server.api("sessions")["total"].int == 81 }
            let perLoop = try await server.server.parts.streams.collect { loop in
                [loop.sessionSnapshots().count { $0.viewers.contains { $0.path == "live/spread" } }]
            }
            #expect(perLoop.count == MultiThreadedEventLoopGroup.singleton.makeIterator().reduce(0) { count, _ in count + 1 })
            #expect(perLoop.reduce(0, +) == 80)
            // Other tests share the loops; their connections come in between.
            let fair = 80 / perLoop.count
            #expect(perLoop.allSatisfy { $0 >= fair * 3 / 4 && $0 <= fair * 5 / 4 }, "\(perLoop)")
            publisher.send(.video, SyntheticTag.video(2, isKeyframe: false, bytes: 900))
            for viewer in viewers {
                try await eventually("both pictures") { viewer.media().compactMap { SyntheticTag.number($0.message) } == [1, 2] }
            }
            for viewer in viewers { await viewer.close() }
            await publisher.close()
        }
    }

    /// Separate loops, so that other tests' connections do not count.
    @Test func connectionsGoWhereFewestAre() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 3)
        let loops = Array(group.makeIterator())
        let placement = Placement(group)
        let accepted = Mutex<[any Channel]>([])
        let listening = try await ServerBootstrap(group: group)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(placement.handler()) }
            }
            .childChannelInitializer { channel in
                accepted.withLock { $0.append(channel) }
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listening.localAddress?.port)
        var clients: [any Channel] = []
        func connect(_ count: Int) async throws {
            for _ in 0..<count {
                let before = accepted.withLock { $0.count }
                clients.append(try await ClientBootstrap(group: RawClient.group).connect(host: "127.0.0.1", port: port).get())
                try await eventually("a connection") { accepted.withLock { $0.count } > before }
            }
        }
        /// Open connections of each loop.
        func open() -> [Int] {
            let channels = accepted.withLock { $0.filter(\.isActive) }
            return loops.map { loop in channels.count { $0.eventLoop === loop } }
        }
        try await connect(90)
        try await eventually("90 connections") { open().reduce(0, +) == 90 }
        #expect(open() == [30, 30, 30])
        // The connections are of three kinds in turn; no kind is all on one loop.
        let places = accepted.withLock { $0.map { channel in loops.firstIndex { $0 === channel.eventLoop } ?? -1 } }
        for kind in 0..<3 {
            let ofKind = stride(from: kind, to: 90, by: 3).map { places[$0] }
            #expect(Set(ofKind).count > 1, "\(ofKind)")
        }
        for channel in accepted.withLock({ $0 }) where channel.eventLoop === loops[1] { try await channel.close().get() }
        try await connect(31)
        // The first one's loop was chosen when the connection before it arrived.
        try await eventually("91 connections") { open().reduce(0, +) == 91 }
        #expect(open()[1] >= 30, "\(open())")
        for client in clients { try? await client.close().get() }
        try await listening.close()
        try await group.shutdownGracefully()
    }
}
