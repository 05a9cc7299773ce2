import Access
import Foundation
import HTTPServer
import NIOCore
import PortlessTestSupport
import RTMP
import Relay
import ServerConfiguration
import ServerTestSupport
import Streaming
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// A request at a door.
struct Knock: Sendable, CustomTestStringConvertible {
    let door: Door
    let method: String
    let path: String
    var body = ""
    var headers: [String] = []
    /// Opens a WebSocket.
    var isSocket = false
    var testDescription: String { "\(self.method) \(self.path)" }

    func answer(
        _ server: PortlessServer, query: String = "", extra: [String] = []
    ) async throws -> (status: Int, head: String, body: String) {
        let socket = try await SocketClient.open(server.addresses.http.port)
        let target = query.isEmpty ? self.path : "\(self.path)\(self.path.contains("?") ? "&" : "?")\(query)"
        var lines = ["\(self.method) \(target) HTTP/1.1", "Content-Length: \(self.body.utf8.count)"] + extra + self.headers
        if !extra.contains(where: { $0.hasPrefix("Host:") }) { lines.append("Host: 127.0.0.1:\(server.addresses.http.port)") }
        if self.isSocket {
            lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
            lines.append("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
        } else if !self.headers.contains(where: { $0.hasPrefix("Content-Type:") }) {
            lines.append("Content-Type: text/plain")
        }
        try await socket.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + self.body)
        let (head, body) = try await socket.answer()
        await socket.close()
        return (Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0, head, body)
    }
}

extension Door {
    /// An offer of WebRTC, as short as one may be.
    private static var publishOffer: String {
        Self.offer.replacing("SAVPF 0\r\na=recvonly", with: "SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\na=sendonly")
    }

    private static let offer =
        "v=0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=fingerprint:sha-256 "
        + Array(repeating: "00", count: 32).joined(separator: ":") + "\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=recvonly\r\n"

    /// Requests as a client of the door sends them, without a credential.
    var knocks: [Knock] {
        func knock(_ method: String, _ path: String, _ body: String = "", isSocket: Bool = false) -> Knock {
            Knock(door: self, method: method, path: path, body: body, isSocket: isSocket)
        }
        return switch self {
        case .rtmpPublish, .rtmpPlay, .rtmpTalk: []
        case .player: [knock("GET", "/live/cam1.flv"), knock("GET", "/live/cam1.mp4"), knock("GET", "/live/cam1.flv", isSocket: true)]
        case .hls: [knock("GET", "/live/cam1.m3u8"), knock("GET", "/live/cam1.ts.m3u8"), knock("GET", "/live/cam1.hls/media.m3u8")]
        case .whep:
            [
                Knock(door: self, method: "POST", path: "/whep/live/cam1", body: Self.offer, headers: ["Content-Type: application/sdp"]),
                knock("DELETE", "/whep/resource/1-00112233445566778899aabbccddeeff"),
            ]
        case .whip:
            [
                Knock(
                    door: self, method: "POST", path: "/whip/live/cam1", body: Self.publishOffer, headers: ["Content-Type: application/sdp"]
                ),
                knock("DELETE", "/whip/resource/1-00112233445566778899aabbccddeeff"),
            ]
        case .listener: [knock("GET", "/talk/cam1/mix.mp4")]
        case .heartbeat: [knock("POST", "/push/live/cam1/heartbeat", #"{"status":"finished"}"#)]
        case .mesh: [knock("GET", "/mesh", isSocket: true), knock("GET", "/mesh/ice")]
        case .channel: [knock("GET", "/channel", isSocket: true)]
        case .board: [knock("GET", "/board/0123456789abcdef0123456789abcdef", isSocket: true)]
        case .ticket: [knock("POST", "/channel/ticket", #"{"token":"x"}"#)]
        case .classroom: [knock("POST", "/classroom/api/v1/room/join", #"{"roomId":"math","userName":"Eve"}"#)]
        case .machine:
            [knock("POST", "/dollsCatcher/tourist"), knock("POST", "/dollsCatcher/host/create", "accid=a&nickname=b&name=c")]
        case .cloud: [knock("GET", "/?Action=DescribeLiveStreamState")]
        case .appPage: [knock("GET", "/sdk/rong.js")]
        case .api: [knock("GET", "/api/v1/rooms"), knock("POST", "/api/v1/rooms", "{}"), knock("GET", "/metrics")]
        case .events: [knock("GET", "/events", isSocket: true)]
        case .console: [knock("POST", "/console/login", #"{"token":"x"}"#), knock("GET", "/console/session")]
        case .health: [knock("GET", "/healthz"), knock("GET", "/readyz/play")]
        }
    }

    /// Requests that name something in another spelling than Normalization Form C, with a credential where the door needs one to read names. Empty
    /// for doors that read none, and for the cloud's, whose names `NameDoorTests` try behind its signature.
    func misspelled(adminToken: String) -> [Knock] {
        let (name, inPath) = ("cafe\u{301}", "cafe%CC%81")
        func token(_ kind: String) -> String {
            let claims: JSONValue = [
                "aud": "channel", "sub": "ann", "room": "r", "kind": .string(kind), "name": .string(name), "exp": 4_000_000_000,
            ]
            return TestCredential.token(claims.text)
        }
        func knock(_ method: String, _ path: String, _ body: String = "", _ headers: [String] = [], isSocket: Bool = false) -> Knock {
            Knock(door: self, method: method, path: path, body: body, headers: headers, isSocket: isSocket)
        }
        let authorized = ["Authorization: Bearer \(adminToken)", "Content-Type: application/json"]
        return switch self {
        case .rtmpPublish, .rtmpPlay, .rtmpTalk, .cloud, .appPage, .console, .health: []
        case .player: [knock("GET", "/live/\(inPath).flv"), knock("GET", "/live/\(inPath).mp4", isSocket: true)]
        case .hls: [knock("GET", "/live/\(inPath).m3u8")]
        case .whep: [knock("POST", "/whep/live/\(inPath)")]
        case .whip: [knock("POST", "/whip/live/\(inPath)")]
        case .listener: [knock("GET", "/talk/\(inPath)/mix.mp4")]
        case .heartbeat: [knock("POST", "/push/live/\(inPath)/heartbeat", #"{"status":"pushing"}"#)]
        case .mesh:
            [
                knock("GET", "/mesh?token=\(token("mesh"))", isSocket: true), knock("GET", "/mesh/ice?token=\(token("mesh"))"),
            ]
        case .channel: [knock("GET", "/channel?token=\(token("classroom"))", isSocket: true)]
        case .board:
            [knock("GET", "/board/0123456789abcdef0123456789abcdef?authorization=\(token("classroom"))", isSocket: true)]
        case .ticket: [knock("POST", "/channel/ticket", #"{"token":"\#(token("classroom"))"}"#)]
        case .classroom: [knock("POST", "/classroom/api/v1/room/join", #"{"roomId":"math","userName":"\#(name)"}"#)]
        case .machine: [knock("POST", "/dollsCatcher/host/create", "accid=a&nickname=b&name=\(inPath)")]
        case .api:
            [
                knock("GET", "/api/v1/streams/live/\(inPath)", "", authorized),
                knock("POST", "/api/v1/rooms", #"{"title":"t","app":"\#(name)"}"#, authorized),
            ]
        case .events: [knock("GET", "/events?roomId=\(inPath)", "", authorized, isSocket: true)]
        }
    }
}

/// SECURITY.md's table of doors and questions, asked door by door. A door that is added does not compile here before it has its requests.
@Suite struct DoorTests {
    private static let http = Door.allCases.filter { $0.questions.bytes == .http }
    /// Doors that ask who comes.
    private static let guarded = Self.http.filter { $0.questions.page != .anyone }.flatMap(\.knocks)

    private static let overRTMP: [(TagClient.Role, String)] = [
        (.publish, "live/cam1"), (.play, "live/cam1"), (.publish, "talk/cam1/ann"), (.play, "talk/cam1/ann"),
    ]

    private static let junk: [(query: String, header: String?)] = [
        ("", nil), ("", "Authorization: x"), ("", "Authorization: Bearer x"), ("", "Authorization: Bearer eyJhbGciOiJub25lIn0.e30."),
        ("", "Authorization: Basic YTpi"), ("", "Cookie: earshot-console=x"), ("", "X-Csrf-Token: x"), ("token=x", nil), ("jwt=x", nil),
        ("txSecret=00&txTime=7FFFFFFF", nil), ("ticket=x", nil), ("authorization=x", nil), ("s=x", nil), ("user=ann", nil), ("x=y", nil),
        ("token=x&token=y", "Authorization: x"),
    ]

    /// SECURITY.md's table of doors and questions.
    private static var table: String {
        let rows = Door.allCases.map { door in
            let its = door.questions
            return "| \(door.rawValue) | \(its.page.rawValue) | \(its.caller.rawValue) | \(its.act.rawValue) | \(its.name.rawValue)"
                + " | \(its.limit.rawValue) | \(its.bytes.rawValue) |\n"
        }
        return "| door | page | caller | act | name | places | bytes |\n|---|---|---|---|---|---|---|\n" + rows.joined()
    }

    @Test func `the document has the doors' answers`() throws {
        let document = try String(contentsOfFile: "SECURITY.md", encoding: .utf8)
        #expect(document.contains(Self.table), "SECURITY.md, expected:\n\(Self.table)")
    }

    /// A page of another origin with credentials that are none: shown is not verified.
    @Test(arguments: guarded) func `junk opens nothing`(_ knock: Knock) async throws {
        try await PortlessServer.run({
            $0.credentials.key = TestCredential.keys.key
            // It sends nothing.
            $0.limits.firstMediaMs = 600_000
        }) { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            for (query, header) in Self.junk {
                for page in ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Host: evil.example"] {
                    let (status, head, body) = try await knock.answer(server, query: query, extra: [page] + (header.map { [$0] } ?? []))
                    // Answers of apps' vendors have status 200, and say in their body that they refuse.
                    let says = [
                        #""errCode":2"#, #""code":403"#, #""Code":"AuthFailure"#, #""Code":"MissingParameter"#,
                        #""Code":"InvalidParameter"#, #""Code":"RequestLimit"#,
                    ].contains { body.contains($0) }
                    #expect((400..<500).contains(status) || (status == 200 && says), "\(query) \(header ?? "") \(page): \(head) \(body)")
                }
            }
            #expect(!publisher.current.isClosed && !publisher.current.sawEOF, "the push goes on")
            await publisher.close()
        }
    }

    /// Whoever asks, the answer is the same, and no page of another origin may read more than that.
    @Test func `open doors tell everybody the same`() async throws {
        try await PortlessServer.run { server in
            for knock in Self.http.filter({ $0.questions.page == .anyone }).flatMap(\.knocks) {
                let plain = try await knock.answer(server)
                let extra = ["Origin: https://evil.example", "Authorization: Bearer \(server.token)"]
                let page = try await knock.answer(server, extra: extra)
                #expect(plain.status == 200 && page.status == 200 && plain.body == page.body, "\(knock.testDescription)")
                #expect(!page.head.lowercased().contains("access-control-allow-origin"), "\(page.head)")
            }
        }
    }

    @Test func `another spelling of a name is refused in words`() async throws {
        try await PortlessServer.run({
            ($0.credentials.key, $0.credentials.jwtKey) = (TestCredential.keys.key, TestCredential.keys.jwtKey)
        }) { server in
            for door in Door.allCases where door.questions.name != .none {
                for knock in door.misspelled(adminToken: server.token) {
                    let (status, _, body) = try await knock.answer(server)
                    // Ids are of ASCII alone, and their rule says so.
                    let says = ["Normalization Form C", "of A-Z a-z 0-9 _ -"].contains { body.contains($0) }
                    #expect((200..<500).contains(status) && says, "\(knock.testDescription): \(status) \(body)")
                }
            }
            for (role, path) in [
                (TagClient.Role.publish, "live/cafe\u{301}"), (.play, "live/cafe\u{301}"), (.publish, "talk/cam1/cafe\u{301}"),
            ] {
                let client = try await TagClient.connect(to: server, role, path)
                try await eventually("a refusal") { client.current.refusal != nil }
                #expect(client.current.refusal?.description.contains("Normalization Form C") == true, "\(path): \(client.current)")
                await client.close()
            }
        }
    }

    @Test func `an address that holds too much gets no more`() async throws {
        try await PortlessServer.run { server in
            let address = HostKey.of(try SocketAddress(ipAddress: "127.0.0.1", port: 1))
            let holding = HTTPHolding(server.server.http[0].shared.holdings.account(of: address))
            holding.add(server.parts.memory.ledger.limit / 2)
            for knock in Self.http.flatMap(\.knocks) {
                let (status, head, _) = try await knock.answer(server)
                #expect(knock.door == .health ? status == 200 : status == 503, "\(knock.testDescription): \(head)")
            }
            holding.set(server.parts.memory.ledger.limit + 1)
            for (role, path) in Self.overRTMP {
                let client = try await TagClient.connect(to: server, role, path)
                try await eventually("a refusal") { client.current.refusal != nil }
                #expect(client.current.refusal?.description.contains("memory") == true, "\(path): \(client.current)")
                await client.close()
            }
        }
    }

    @Test func `an address has its places for RTMP and no more`() async throws {
        try await PortlessServer.run({ $0.limits.connectionsPerAddress = 1 }) { server in
            let publisher = try await TagClient.publish(to: server, "live/held")
            for (role, path) in Self.overRTMP {
                let client = try await TagClient.connect(to: server, role, path)
                try await eventually("the end of \(path)") { client.current.isClosed || client.current.sawEOF }
                await client.close()
            }
            #expect(!publisher.current.isClosed && !publisher.current.sawEOF, "the push goes on")
            await publisher.close()
        }
    }

    @Test func `an address has its places and no more`() async throws {
        try await PortlessServer.run({ $0.limits.httpPerAddress = 1 }) { server in
            let publisher = try await TagClient.publish(to: server, "live/held")
            try await publisher.send(FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2)))
            // Its answer goes on, so it keeps its place.
            let other = try await SocketClient.open(server.addresses.http.port)
            try await other.send("GET /live/held.flv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            try await eventually("a player") { other.text.contains("200 OK") }
            for knock in Self.http.flatMap(\.knocks) {
                var answer: (status: Int, head: String, body: String)?
                while answer == nil {
                    do {
                        answer = try await knock.answer(server)
                    } catch ChannelError.ioOnClosedChannel {
                        // A refused connection is closed if its request does not come at once: this machine was too busy for that.
                    }
                }
                let (status, head, body) = try answer.orThrow()
                let isRefused = status == 503 && body.contains("limits.httpPerAddress")
                #expect(knock.door == .health ? status == 200 : isRefused, "\(knock.testDescription): \(head) \(body)")
            }
            await other.close()
            await publisher.close()
        }
    }
}
