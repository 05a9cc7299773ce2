import AppServer
import Foundation
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// A peer of the mesh in real time. Others are in AppServerTests.
@Suite struct MeshTests {
    /// A peer that is gone without a word, as behind a broken network: its socket stays open and says nothing more.
    @Test func aPeerThatIsGoneWithoutAWord() async throws {
        try await TestServer.run { server in
            let (a, _) = try await MeshPeer.joined(server)
            let silent = try await SocketClient.open(server.addresses.http.port)
            try await silent.send(WebSocketClient.request("/mesh"))
            let (head, _) = try await silent.answer()
            #expect(head.hasPrefix("HTTP/1.1 101"))
            try await silent.send(ClientFrame.bytes(1, Array(#"{"eventName":"__join","data":{"room":"r"}}"#.utf8), final: true))
            let gone = try await a.frame("_new_peer")["socketId"].string.orThrow()
            let start = ContinuousClock.now
            var answered = start
            try await eventually("word that it is gone", within: 90) {
                // The other one answers the pings.
                if ContinuousClock.now - answered > .seconds(10) {
                    answered = .now
                    try await a.socket.send(10, [])
                }
                return try a.frames.contains { $0.name == "_remove_peer" }
            }
            #expect(try await a.frame("_remove_peer")["socketId"].string == gone)
            #expect(ContinuousClock.now - start > .seconds(40), "not before its time")
            let counters = server.server.parts.apps.counters
            try await eventually("its connection to be closed, and counted") {
                counters.current.connections == 1 && counters.current.cut[.silent] == 1
            }
            #expect(await server.lines.comes("A mesh connection was cut", "reason=silent"))
            await silent.close()
            await a.socket.close()
        }
    }

    /// A thousand joins and leaves a second disturb nobody, and nothing is left of them.
    @Test func manyJoinsAndLeaves() async throws {
        try await TestServer.run({ $0.apps.messageRate = 500 }) { server in
            let (a, first) = try await MeshPeer.joined(server, "quiet")
            let (b, second) = try await MeshPeer.joined(server, "quiet")
            let (rounds, people, perSecond) = (100, 20, 1_000)
            let clock = ContinuousClock()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for person in 0..<people {
                    group.addTask {
                        let peer = try await MeshPeer.open(server)
                        let start = clock.now
                        for round in 0..<rounds {
                            // Each join leaves the room before.
                            try await peer.say("__join", "{\"room\":\"busy\((round + person) % 7)-\(person / 5)\"}")
                            try await Task.sleep(until: start + .seconds(Double((round + 1) * people) / Double(perSecond)), clock: clock)
                        }
                        try await eventually("the last join's answer") { try peer.frames.filter { $0.name == "_peers" }.count == rounds }
                        #expect(try !peer.frames.contains { $0.name == "_error" })
                        await peer.socket.close()
                    }
                }
                // Meanwhile the two talk on.
                group.addTask {
                    for turn in 0..<50 {
                        try await a.say("__offer", #"{"socketId":"\#(second)","sdp":"\#(turn)"}"#)
                        #expect(try await b.frame("_offer", after: turn)["sdp"].string == "\(turn)")
                    }
                }
                try await group.waitForAll()
            }
            #expect(try a.frames.filter { $0.name == "_new_peer" }.map { $0.data["socketId"].string } == [second])
            #expect(try !a.frames.contains { $0.name == "_remove_peer" } && !b.frames.contains { $0.name == "_new_peer" })
            let mesh = server.server.parts.apps.mesh
            try await eventually("the two alone to be left") { mesh.size == (1, 2) }
            #expect(try await b.frame("_peers")["connections"].list.map(\.string) == [first])
            for peer in [a, b] { await peer.socket.close() }
            try await eventually("all to be gone") { mesh.size == (0, 0) && server.server.parts.apps.counters.current.connections == 0 }
        }
    }
}
