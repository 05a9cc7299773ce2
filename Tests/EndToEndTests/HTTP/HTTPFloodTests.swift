import LibC
import RTMPTestSupport
import NIOCore
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Listening
@testable import Streaming

/// HTTP service while a few addresses flood the port.
@Suite(.serialized, .timeLimit(.minutes(5))) struct HTTPFloodTests {
    private static let greedy = ["127.0.0.3", "127.0.0.4"]

    /// Opens connections one after another, which never read.
    private final class Flood: Sendable {
        private let task: Task<[CInt], Never>

        /// Most connections that are kept; beyond that, the oldest is closed for each new one. The server has ended it long before.
        private static let most = 6_000

        /// Most connections that the server has not dealt with yet: on a machine with other work a flood that goes on regardless only shows that
        /// nothing is answered when there is no time to answer.
        private static let ahead = 1_000

        /// Opens `perSecond` connections a second, from `addresses` in turn, until it is ended. Each sends `request`. `handled` says how many
        /// connections the server has ended.
        init(perSecond: Int, from addresses: [String], port: Int, request: String, handled: @escaping @Sendable () -> UInt64) {
            self.task = Task {
                var sockets: [CInt] = []
                var next = ContinuousClock.now
                var count = 0
                while !Task.isCancelled {
                    if count > Int(handled()) + Self.ahead {
                        try? await Task.sleep(for: .milliseconds(20))
                        next = .now
                        continue
                    }
                    if let socket = PlainSocket.open(port, from: addresses[count % addresses.count]) {
                        _ = send(socket, request, request.utf8.count, CInt(MSG_NOSIGNAL))
                        if sockets.count < Self.most {
                            sockets.append(socket)
                        } else {
                            close(sockets[count % Self.most])
                            sockets[count % Self.most] = socket
                        }
                        count += 1
                    }
                    next += .seconds(1) / perSecond
                    // Throws only on cancellation, which ends the loop.
                    try? await Task.sleep(until: next)
                }
                return sockets
            }
        }

        func end() async {
            self.task.cancel()
            for socket in await self.task.value { close(socket) }
        }
    }

    private static func get(_ path: String, _ headers: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(headers)\r\n"
    }

    private static func configure(_ config: inout ServerConfig) {
        config.limits.httpConnections = 400
        config.http.firstWaitMs = 600_000
        config.access.apiFrom = [.address([127, 0, 0, 2])]
        config.access.playFrom = CIDR.any
    }

    /// Connections that found no place, or were shed for others.
    private static func tooMany(_ server: TestServer) -> UInt64 {
        let counters = server.server.parts.connections.counters.current
        return counters.httpConnectionsRefused + counters.httpConnectionsShed
    }

    /// Expects answers to ten health checks and ten API calls while the flood goes on.
    private static func expectAnswers(_ server: TestServer, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let port = server.addresses.http.port
        for number in 0..<10 {
            let before = Self.tooMany(server)
            for (address, request, expected) in [
                ("127.0.0.9", Self.get("/healthz"), "ok\n"),
                ("127.0.0.2", Self.get("/api/v1/counters", "Authorization: Bearer \(server.token)\r\n"), "connectionsAccepted"),
            ] {
                let client = try await SocketClient.open(port, from: address)
                do {
                    try await client.send(request)
                    let answer = try await client.answer()
                    #expect(
                        answer.head.hasPrefix("HTTP/1.1 200 ") && answer.body.contains(expected), "\(answer)",
                        sourceLocation: sourceLocation)
                } catch {
                    Issue.record("\(address), the \(number + 1)th: \(error)", sourceLocation: sourceLocation)
                }
                await client.close()
            }
            try await eventually("more of the flood") { Self.tooMany(server) >= before + 20 }
        }
    }

    /// One address uses up its share with waiting players, and keeps asking for more.
    @Test func refusedRequestsTakeNobodysPlace() async throws {
        try await TestServer.run(Self.configure) { server in
            try await server.makeRoom("cam1")
            let port = server.addresses.http.port
            var players: [SocketClient] = []
            for _ in 0..<200 {
                let player = try await SocketClient.open(port, from: Self.greedy[0])
                try await player.send(Self.get("/live/cam1.flv"))
                players.append(player)
            }
            try await eventually("players") { server.server.parts.connections.counters.current.playsWaited == 200 }
            let flood = Flood(perSecond: 300, from: [Self.greedy[0]], port: port, request: Self.get("/live/cam1.flv")) {
                Self.tooMany(server)
            }
            try await eventually("a full linger's worth of refused ones") {
                server.server.parts.connections.counters.current.httpConnectionsRefused >= 300
            }
            try await Self.expectAnswers(server)
            await flood.end()
            #expect(players.allSatisfy { !$0.isClosed }, "\(players.count { $0.isClosed }) of 200 were closed")
            for player in players { await player.close() }
        }
    }

    /// Two addresses fill all places within a second, and send nothing.
    @Test func idleOnesNeither() async throws {
        try await TestServer.run(Self.configure) { server in
            let flood = Flood(perSecond: 800, from: Self.greedy, port: server.addresses.http.port, request: "") { Self.tooMany(server) }
            try await eventually("all places to be taken") { Self.tooMany(server) >= 20 }
            try await Self.expectAnswers(server)
            await flood.end()
        }
    }
}
