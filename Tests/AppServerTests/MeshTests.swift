import Access
import AppServer
import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// The mesh's wire, strict and with peers that behave badly. Foreign peers are in Tests/Apps.
@Suite struct MeshTests {
    @Test func theSixEvents() async throws {
        try await PortlessServer.run { server in
            let (a, first) = try await MeshPeer.joined(server)
            let (b, second) = try await MeshPeer.joined(server)
            #expect(try await b.frame("_peers")["connections"].list.map(\.string) == [first])
            #expect(try await a.frame("_new_peer")["socketId"].string == second)
            try await b.say("__offer", #"{"socketId":"\#(first)","sdp":{"type":"offer","sdp":"v=0"},"extra":[1]}"#)
            let offer = try await a.frame("_offer")
            #expect(offer["socketId"].string == second && offer["sdp"]["sdp"].string == "v=0" && offer["extra"][0].int == 1)
            try await a.say("__answer", #"{"socketId":"\#(second)","sdp":"v=1"}"#)
            #expect(try await b.frame("_answer")["sdp"].string == "v=1")
            try await a.say("__ice_candidate", #"{"socketId":"\#(second)","label":1,"id":"video","candidate":"c"}"#)
            let candidate = try await b.frame("_ice_candidate")
            #expect(
                candidate["sdpMLineIndex"].int == 1 && candidate["sdpMid"].string == "video" && candidate["label"].int == 1
                    && candidate["candidate"].string == "c")
            // Joining the same room again gives the list alone; another room leaves the first.
            try await b.say("__join", #"{"room":"r"}"#)
            #expect(try await b.frame("_peers", after: 1)["connections"].list.map(\.string) == [first])
            #expect(try a.frames.filter { $0.name == "_new_peer" }.count == 1)
            try await b.say("__join", #"{"room":"other"}"#)
            #expect(try await a.frame("_remove_peer")["socketId"].string == second)
            await b.socket.close()
            await a.socket.close()
            let mesh = server.server.parts.apps.mesh
            try await eventually("the rooms to be gone") { mesh.size == (0, 0) }
        }
    }

    /// Frames for others never leave the room, and a peer that has not joined can send none.
    @Test func roomsAreApart() async throws {
        try await PortlessServer.run { server in
            let (a, first) = try await MeshPeer.joined(server, "one")
            let (b, _) = try await MeshPeer.joined(server, "two")
            let outside = try await MeshPeer.open(server)
            try await b.say("__offer", #"{"socketId":"\#(first)","sdp":"x"}"#)
            try await outside.say("__offer", #"{"socketId":"\#(first)","sdp":"x"}"#)
            #expect(try await outside.frame("_error")["code"].string == "not_member")
            let counters = server.server.parts.apps.counters
            try await eventually("the dropped frames to be counted") { counters.current.undelivered == 2 }
            #expect(try !a.frames.contains { $0.name == "_offer" })
            for peer in [a, b, outside] { await peer.socket.close() }
        }
    }

    @Test func namesWithTwoUnderscores() async throws {
        try await PortlessServer.run { server in
            let peer = try await MeshPeer.open(server, "/mesh/any/path?names=double")
            try await peer.say("__join", "{}")
            #expect(try await peer.frame("__peers")["connections"].list.isEmpty)
            await peer.socket.close()
        }
    }

    @Test func theNinthFindsItFull() async throws {
        try await PortlessServer.run { server in
            var peers: [MeshPeer] = []
            for _ in 0..<8 { peers.append(try await MeshPeer.joined(server).peer) }
            let ninth = try await MeshPeer.open(server)
            try await ninth.say("__join", #"{"room":"r"}"#)
            #expect(try await ninth.frame("_error")["code"].string == "full")
            try await eventually("its end") { try ninth.socket.closeCode == 4003 }
            for peer in peers { await peer.socket.close() }
        }
    }

    /// Wrong frames are named one by one; twenty of them end the connection, and nobody else notices.
    @Test func wrongFrames() async throws {
        try await PortlessServer.run { server in
            let (honest, id) = try await MeshPeer.joined(server)
            let peer = try await MeshPeer.open(server)
            let texts = [
                "nonsense", "[]", "{\"eventName\":7}", "{\"eventName\":\"__dance\"}", "{\"eventName\":\"__join\",\"data\":{\"room\":[]}}",
                "{\"eventName\":\"__offer\",\"data\":{}}",
            ]
            for text in texts { try await peer.socket.send(text) }
            try await eventually("an error for each") { try peer.frames.filter { $0.name == "_error" }.count == texts.count }
            #expect(try peer.frames.allSatisfy { $0.data["code"].string == "invalid" })
            try await peer.socket.send(#"{"data":{}}"#)
            for _ in 0..<20 { try await peer.socket.send("x") }
            try await eventually("its end") { try peer.socket.closeCode == 1008 }
            let large = try await MeshPeer.open(server)
            try await large.socket.send(String(repeating: "s", count: 1 << 20))
            try await eventually("the end of who sends a mebibyte") { try large.socket.closeCode == 1009 }
            let fast = try await MeshPeer.open(server)
            try await fast.socket.send(1, #"{"data":{}}"#, times: 300)
            try await eventually("the end of who sends too many") { try fast.socket.closeCode == 1008 }
            // The honest one is still there.
            let (other, _) = try await MeshPeer.joined(server)
            #expect(try await other.frame("_peers")["connections"].list.map(\.string) == [id])
            await honest.socket.close()
            await other.socket.close()
            let counters = server.server.parts.apps.counters
            try await eventually("the counters") {
                let now = counters.current
                return now.connections == 0 && now.cut[.badMessages] == 1 && now.cut[.tooMany] == 1 && now.cut[.protocolError] == 1
            }
        }
    }

    /// A peer that does not read is cut, and its room is notified.
    @Test func aSlowReader() async throws {
        try await PortlessServer.run({ $0.apps.backlogBytes = 64 << 10 }) { server in
            let (a, _) = try await MeshPeer.joined(server)
            let slow = MeshPeer(socket: try await WebSocketClient.open(server.addresses.http.port, "/mesh", receiveBuffer: 4_096))
            try await slow.say("__join", #"{"room":"r"}"#)
            let id = try await slow.frame("_peers")["you"].string.orThrow()
            try await slow.socket.socket.reads(false)
            let sdp = String(repeating: "s", count: 60_000)
            for _ in 0..<400 where try !a.frames.contains(where: { $0.name == "_remove_peer" }) {
                try await a.say("__offer", #"{"socketId":"\#(id)","sdp":"\#(sdp)"}"#)
                try await Task.sleep(for: .milliseconds(25))
            }
            #expect(try await a.frame("_remove_peer")["socketId"].string == id)
            #expect(server.server.parts.apps.counters.current.cut[.tooSlow] == 1)
            #expect(await server.lines.comes("A mesh connection was cut", "reason=too_slow"))
            await a.socket.close()
            await slow.socket.close()
        }
    }

    /// Tokens: which clients need one, and what it opens.
    @Test func tokens() async throws {
        try await PortlessServer.run({
            $0.apps.meshFrom = []
            $0.credentials.jwtKey = TestCredential.keys.jwtKey
        }) { server in
            func refusal(_ target: String) async -> String {
                do {
                    await (try MeshPeer.open(server, target)).socket.close()
                    return ""
                } catch { return "\(error)" }
            }
            func token(_ claims: String) -> String { TestCredential.token(claims) }
            #expect(await refusal("/mesh").contains("apps.mesh.from"))
            #expect(await refusal("/mesh?token=x").contains(" 401 "))
            #expect(
                await refusal("/mesh?token=\(token(#"{"aud":"channel","sub":"ann","room":"r","exp":4000000000}"#))").contains(
                    "expected mesh"))
            #expect(
                await refusal("/mesh?token=\(token(#"{"aud":"channel","kind":"mesh","sub":"ann","room":"r","exp":1}"#))").contains(
                    "expired"))
            #expect(await refusal("/mesh?token=\(token(#"{"room":"r","act":"play","exp":4000000000}"#))").contains("401"))
            let peer = try await MeshPeer.open(
                server, "/mesh?token=\(token(#"{"aud":"channel","kind":"mesh","sub":"ann","room":"r","exp":4000000000}"#))")
            try await peer.say("__join", #"{"room":"other"}"#)
            #expect(try await peer.frame("_error")["code"].string == "forbidden")
            try await peer.say("__join", "{}")
            _ = try await peer.frame("_peers")
            #expect(server.server.parts.apps.mesh.snapshots.map(\.room) == ["r"])
            await peer.socket.close()
            // A channel's token is no push or play credential.
            let play = token(#"{"aud":"channel","kind":"mesh","sub":"ann","room":"cam1","role":"host","exp":4000000000}"#)
            let answer = try await HTTPAnswer.get("\(server.http)/live/cam1.flv?token=\(play)")
            #expect(answer.status == 401 || answer.status == 403, "\(answer.status) \(answer.text)")
        }
    }

    /// A ticket opens once what its token opens.
    @Test(arguments: [nil, "a-key-of-a-cluster-0123456789abcdef"]) func oneTicketOneConnection(_ cluster: String?) async throws {
        try await PortlessServer.run({
            $0.cluster.key = cluster
            $0.apps.meshFrom = []
            $0.credentials.jwtKey = TestCredential.keys.jwtKey
        }) { server in
            func ask(_ body: String) async throws -> HTTPAnswer {
                try await HTTPAnswer.call("POST", "\(server.http)/channel/ticket", body: Data(body.utf8))
            }
            let token = TestCredential.token(#"{"aud":"channel","kind":"mesh","sub":"ann","room":"r","exp":4000000000}"#)
            let answer = try await ask("{\"token\":\"\(token)\"}")
            #expect(answer.status == 200 && answer.headers["cache-control"] == "no-store", "\(answer.text)")
            let ticket = try answer.json()["ticket"].string.orThrow()
            let peer = try await MeshPeer.open(server, "/mesh?ticket=\(ticket)")
            try await peer.say("__join", "{}")
            _ = try await peer.frame("_peers")
            #expect(server.server.parts.apps.mesh.snapshots.map(\.room) == ["r"])
            await #expect(throws: (any Error).self, "used") { await (try MeshPeer.open(server, "/mesh?ticket=\(ticket)")).socket.close() }
            let other = try await ask("{\"token\":\"\(token)\"}").json()["ticket"].string.orThrow()
            await #expect(throws: (any Error).self, "another kind") {
                await (try MeshPeer.open(server, "/channel?ticket=\(other)")).socket.close()
            }
            await #expect(throws: (any Error).self, "a ticket and a token") {
                await (try MeshPeer.open(server, "/mesh?ticket=\(other)&token=\(token)")).socket.close()
            }
            #expect(try await ask("{\"token\":\"\(token)x\"}").status == 401)
            #expect(try await ask("{}").status == 400)
            #expect(try await ask("[").status == 400)
            #expect(try await HTTPAnswer.get("\(server.http)/channel/ticket").status == 405)
            await peer.socket.close()
        }
    }

    /// Fragments, pings and pongs are frames too: an endless message is cut, and the log says so once.
    @Test func fragmentsWithoutEnd() async throws {
        try await PortlessServer.run { server in
            let (a, _) = try await MeshPeer.joined(server)
            let (b, _) = try await MeshPeer.joined(server)
            try await b.socket.send(1, Array("{".utf8), final: false)
            let nothing = (0..<2_000).flatMap { _ in ClientFrame.bytes(0, [], final: false) }
            for _ in 0..<10 { guard (try? await b.socket.socket.send(nothing)) != nil else { break } }
            try await eventually("its end") { try b.socket.closeCode == 1008 }
            _ = try await a.frame("_remove_peer")
            #expect(await server.lines.comes("A mesh connection was cut", "reason=too_many_messages", "frames for a message"))
            for peer in [a, b] { await peer.socket.close() }
        }
    }

    /// A kick keeps the token's user out, and the room's end closes connections made with its tokens.
    @Test func kicksAndEnds() async throws {
        try await PortlessServer.run { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"r","policy":{"neverStarted":3600}}"#)
            func target(_ user: String) async throws -> String {
                let made = try await server.call(
                    "POST", "rooms/r/channel-token", "{\"userId\":\"\(user)\",\"name\":\"\(user.uppercased())\",\"kind\":\"mesh\"}")
                let url = try made.json()["data"]["url"].string.orThrow()
                return try url.components(separatedBy: ":\(server.addresses.http.port)").last.orThrow()
            }
            let (ann, bob) = (try await target("ann"), try await target("bob"))
            let first = try await MeshPeer.open(server, ann)
            try await first.say("__join", "{}")
            let second = try await MeshPeer.open(server, bob)
            try await second.say("__join", "{}")
            _ = try await first.frame("_new_peer")
            let (free, _) = try await MeshPeer.joined(server, "r")
            // Lists name the users; a kick takes the user's id.
            #expect(try await server.api("gatherings/mesh-r")["people"].list.contains { $0["name"].string == "ANN" })
            #expect(try await server.call("POST", "gatherings/mesh-r/kick", #"{"userId":"bob"}"#).status == 200)
            try await eventually("bob's end") { try second.socket.closeCode == 4002 }
            let again = try await MeshPeer.open(server, bob)
            try await again.say("__join", "{}")
            #expect(try await again.frame("_error")["code"].string == "kept_out")
            try await eventually("bob to be kept out") { try again.socket.closeCode == 4003 }
            _ = try await server.call("POST", "rooms/r/close")
            try await eventually("ann's end") { try first.socket.closeCode == 4004 }
            #expect(try free.socket.closeCode == nil, "who has nothing of the room but its name stays")
            for peer in [first, second, again, free] { await peer.socket.close() }
        }
    }

    /// A page of another site cannot profit from this machine's needing no token.
    @Test func foreignPages() async throws {
        try await PortlessServer.run { server in
            for (headers, isIn) in [
                (["Origin: http://evil.example"], false), (["Sec-Fetch-Site: cross-site"], false), (["Origin: http://127.0.0.1"], true),
            ] {
                let socket = try await SocketClient.open(server.addresses.http.port)
                try await socket.send(WebSocketClient.request("/mesh", headers: headers))
                let (head, _) = try await socket.answer()
                #expect(head.hasPrefix("HTTP/1.1 101") == isIn, "\(headers): \(head)")
                await socket.close()
            }
        }
    }
}
