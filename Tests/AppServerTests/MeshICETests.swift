import Access
import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// ICE servers for the mesh: who gets them, and in which ways. How credentials are made: ``ICEServersTests``.
@Suite struct MeshICETests {
    private static func configure(_ config: inout ServerConfig) {
        config.ice.urls = ["stun:t.example", "turn:t.example"]
        config.ice.secret = "a-shared-secret"
        config.credentials.jwtKey = TestCredential.keys.jwtKey
    }

    private static func token(kind: String = "mesh", expires: Int = 4_000_000_000) -> String {
        TestCredential.token(#"{"aud":"channel","kind":"\#(kind)","sub":"ann","room":"r","exp":\#(expires)}"#)
    }

    /// Whether these are the servers of ``configure``, with a credential of half a day for `user`.
    private func areServers(_ servers: JSON, for user: String?) -> Bool {
        let parts = (servers[1]["username"].string ?? "").split(separator: ":", maxSplits: 1).map(String.init)
        let now = Int(Date().timeIntervalSince1970)
        let isNew = parts.first.flatMap { Int($0) }.map { abs($0 - now - 43_200) < 600 } ?? false
        return servers.list.count == 2 && servers[0]["urls"].list.map(\.string) == ["stun:t.example"]
            && servers[1]["urls"].list.map(\.string) == ["turn:t.example"] && isNew && parts.dropFirst().first == user
            && Data(base64Encoded: servers[1]["credential"].string ?? "")?.count == 20
    }

    @Test func whereAnAddressNeedsNone() async throws {
        try await PortlessServer.run(Self.configure) { server in
            let answer = try await HTTPAnswer.get("\(server.http)/mesh/ice")
            #expect(answer.status == 200 && answer.headers["cache-control"] == "no-store", "\(answer.text)")
            #expect(answer.headers["content-type"]?.hasPrefix("application/json") == true)
            #expect(try self.areServers(answer.json()["iceServers"], for: nil), "\(answer.text)")
            #expect(!answer.text.contains("a-shared-secret"))
            for headers in [["Origin": "http://evil.example"], ["Sec-Fetch-Site": "cross-site"]] {
                let foreign = try await HTTPAnswer.call("GET", "\(server.http)/mesh/ice", headers: headers)
                #expect(foreign.status == 403 && !foreign.text.contains("iceServers"), "\(headers): \(foreign.text)")
            }
            let post = try await HTTPAnswer.call("POST", "\(server.http)/mesh/ice", body: Data())
            #expect(post.status == 405 && post.headers["allow"] == "GET, HEAD")
            // The page's files and the WebSocket are where they were.
            #expect(try await HTTPAnswer.get("\(server.http)/mesh/mesh.js").text.contains("iceServers"))
            await (try MeshPeer.open(server, "/mesh/ice")).socket.close()
        }
    }

    @Test func withAToken() async throws {
        try await PortlessServer.run({
            Self.configure(&$0)
            $0.apps.meshFrom = []
            $0.http.allowOrigin = ["https://app.example"]
        }) { server in
            func ask(_ query: String, _ headers: [String: String] = [:]) async throws -> HTTPAnswer {
                try await HTTPAnswer.call("GET", "\(server.http)/mesh/ice\(query)", headers: headers)
            }
            let without = try await ask("")
            #expect(without.status == 401 && without.text.contains("apps.mesh.from"), "\(without.text)")
            #expect(without.headers["cache-control"] == "no-store")
            for wrong in ["x", Self.token(kind: "plain"), Self.token(expires: 1)] {
                #expect(try await ask("?token=\(wrong)").status == 401)
            }
            #expect(try await ask("?token=\(Self.token())&token=\(Self.token())").status == 401)
            let with = try await ask("?token=\(Self.token())")
            #expect(with.status == 200, "\(with.text)")
            #expect(try self.areServers(with.json()["iceServers"], for: "ann"), "\(with.text)")
            // Pages of the origins in http.allowOrigin may read it, and why it is refused.
            let app = ["Origin": "https://app.example"]
            for (query, status) in [("?token=\(Self.token())", 200), ("?token=x", 401)] {
                let answer = try await ask(query, app)
                #expect(
                    answer.status == status && answer.headers["access-control-allow-origin"] == "https://app.example", "\(answer.headers)")
            }
            let foreign = try await ask("?token=\(Self.token())", ["Origin": "https://evil.example"])
            #expect(foreign.status == 403 && foreign.headers["access-control-allow-origin"] == nil, "\(foreign.text)")
        }
    }

    /// Those who ask at joining get the servers with the list of peers; others get the frame as it always was.
    @Test func inTheListOfPeers() async throws {
        try await PortlessServer.run(Self.configure) { server in
            let (plain, _) = try await MeshPeer.joined(server)
            #expect(try !plain.socket.messages.contains { $0["data"].names.contains("iceServers") })
            let asking = try await MeshPeer.open(server)
            try await asking.say("__join", #"{"room":"r","ice":true}"#)
            #expect(try await self.areServers(asking.frame("_peers")["iceServers"], for: nil))
            #expect(try !plain.socket.messages.contains { $0["data"].names.contains("iceServers") }, "the others get none")
            // Joining again without asking gives none.
            try await asking.say("__join", #"{"room":"r"}"#)
            #expect(try await !asking.frame("_peers", after: 1).names.contains("iceServers"))
            let holder = try await MeshPeer.open(server, "/mesh?token=\(Self.token())")
            try await holder.say("__join", #"{"ice":true}"#)
            #expect(try await self.areServers(holder.frame("_peers")["iceServers"], for: "ann"))
            for peer in [plain, asking, holder] { await peer.socket.close() }
        }
    }

    /// Without servers in the settings the list is there and empty.
    @Test func without() async throws {
        try await PortlessServer.run { server in
            let answer = try await HTTPAnswer.get("\(server.http)/mesh/ice")
            #expect(answer.status == 200 && answer.text == #"{"iceServers":[]}"#)
        }
    }
}
