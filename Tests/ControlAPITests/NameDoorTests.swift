import APITestSupport
import Playback
import RTMP
import Rooms
import ServerTestSupport
import Support
import Talk
import TestSupport
import Testing

@testable import Access
@testable import Apps
@testable import ControlAPI
@testable import HTTPAPI
@testable import ServerConfiguration

/// Every door that takes names takes one spelling of each. Swift's strings are equal where signatures, the store and URLs see two names.
@Suite struct NameDoorTests {
    private struct Door: Sendable {
        let name: String
        /// Letters and marks of any language; otherwise ids of ASCII.
        let isOpen: Bool
        let accepts: @Sendable (String) -> Bool
    }

    private static func door(_ name: String, isOpen: Bool = true, _ check: @escaping @Sendable (String) throws -> Void) -> Door {
        Door(name: name, isOpen: isOpen) { text in
            do {
                try check(text)
                return true
            } catch {
                return false
            }
        }
    }

    private static func token(_ claims: [(String, JSONValue)]) -> String {
        let members = claims + [("exp", 2_000_000_000), ("act", ["play"])]
        return TestCredential.token(JSONValue.object(members.map { .init(name: $0.0, value: $0.1) }).text)
    }

    private static let doors: [Door] = [
        door("RTMP, app") { _ = try StreamAddress(app: $0, name: "cam") },
        door("RTMP, name") { _ = try StreamAddress(app: "live", name: $0) },
        door("RTMP, part of a name") { _ = try StreamAddress(app: "live/\($0)", name: "cam") },
        door("HTTP play path") { text in
            _ = try LivePath("/live/\(StreamURLs.encode(text)).flv", query: nil, .flv, limits: RTMP.Limits())
        },
        door("HTTP play path, app") { text in
            _ = try LivePath("/\(StreamURLs.encode(text))/cam.flv", query: nil, .flv, limits: RTMP.Limits())
        },
        door("API, app") { _ = try InputType<String>.streamApp.read(.string($0)) },
        door("API, name") { _ = try InputType<String>.streamName.read(.string($0)) },
        door("API, sought name") { _ = try InputType<String>.soughtName(length: 1...1_000).read(.string($0)) },
        door("API, paths") { _ = try InputType<[StreamPath]>.streamPaths(atMost: 1).read([.string("live/\($0)")]) },
        door("API, id", isOpen: false) { _ = try InputType<String>.id.read(.string($0)) },
        door("token or key") { try RoomLimits.checkName($0, "name", longest: 1_000) },
        door("room", isOpen: false) { _ = try RoomID(checking: $0) },
        door("token's scope", isOpen: false) { try TokenScope(apps: [$0], rooms: []).check() },
        door("participant", isOpen: false) { _ = try ParticipantID($0) },
        door("JWT, sub") { text in
            _ = try AccessToken(signed: Self.token([("sub", .string(text)), ("room", "r")]), keys: TestCredential.keys)
        },
        door("JWT, stream") { text in
            _ = try AccessToken(signed: Self.token([("stream", .string("live/\(text)"))]), keys: TestCredential.keys)
        },
        door("channel token") { text in
            let token = Self.token([("aud", "channel"), ("sub", "ann"), ("room", .string(text)), ("name", .string(text))])
            _ = try ChannelToken(verifying: token, keys: TestCredential.keys, nowSeconds: 1_795_255_200)
        },
        door("mesh room") { _ = try MeshFrame.read(Self.frame("__join", "room", $0)) },
        door("channel, receiver") { text in
            let frame: JSONValue = ["type": "send", "to": .string(text), "content": 1]
            _ = try ChannelFrame.read(frame.text)
        },
        door("member's name") { text in
            if let problem = GatheringLimits.problem(ofName: text) { throw FieldError("name", text, problem) }
        },
        door("machine's account", isOpen: false) { text in
            guard DollsCatcherAccount.isAccid(text) else { throw FieldError("accid", text, "") }
        },
        door("cloud's API") { text in
            let fields: [JSONValue.Member] = [
                .init(name: "AppName", value: "live"), .init(name: "DomainName", value: "d"),
                .init(name: "StreamName", value: .string(text)),
            ]
            _ = try TencentAction("DropLiveStream", TencentFields(fields), domains: [])
        },
        door("settings, by app") { text in
            _ = try ConfigValueKind<NameTable<Int64>>.byApp(.duration(0...1_000), example: "live=1s").read(["\(text)=1s"])
        },
        door("settings, recorded apps") { _ = try ConfigValueKind<[String]>.apps.read([$0]) },
    ]

    private static func frame(_ event: String, _ member: String, _ text: String) -> String {
        let frame: JSONValue = ["eventName": .string(event), "data": .object([.init(name: member, value: .string(text))])]
        return frame.text
    }

    @Test(.seeded, arguments: doors.indices) func `a door takes one spelling of a name at most`(_ index: Int) {
        let door = Self.doors[index]
        var random = Spellings(index)
        var taken = 0
        for _ in 0..<400 {
            let text = random.text()
            let all = Set(random.spellings(of: text).map(\.exact))
            let accepted = all.filter { door.accepts($0.wrappedValue) }
            taken += accepted.count
            #expect(accepted.count <= 1, "\(door.name): \(accepted.map { Array($0.wrappedValue.unicodeScalars) })")
        }
        #expect(taken > 0 || !door.isOpen, "\(door.name) takes none")
    }

    /// Known pairs, of which one is ASCII: no other spelling of an id passes for it.
    @Test(arguments: doors.indices) func `of two spellings the composed one is the name`(_ index: Int) {
        let door = Self.doors[index]
        for (refused, name) in [("cafe\u{301}", "caf\u{E9}"), ("\u{1112}\u{1161}\u{11AB}", "\u{D55C}"), ("\u{2126}", "\u{3A9}")] {
            #expect(!door.accepts(refused) && door.accepts(name) == door.isOpen, "\(door.name): \(name)")
        }
        #expect(door.accepts("Kamera") && !door.accepts("\u{212A}amera"), "\(door.name)")
    }

    /// The refusal says what is wrong and what to write, in the answer to a call.
    @Test func `calls say what to write`() async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            let soon = Instant.text(WallClock.ms + 3_600_000)
            let rule = "is not in Unicode Normalization Form C: write \"é\" as U+00E9, not as U+0065 U+0301"
            try await api.ok("POST", "streams/live/caf%C3%A9/forbid", #"{"forbiddenUntil":"\#(soon)"}"#)
            let calls: [(String, String, String?, String)] = [
                ("POST", "streams/live/cafe%CC%81/forbid", #"{"forbiddenUntil":"\#(soon)"}"#, "name"),
                ("POST", "streams/live/cafe%CC%81/resume", nil, "name"), ("GET", "streams/cafe%CC%81/cam", nil, "app"),
                ("GET", "streams?streams=live/cafe%CC%81", nil, "streams"), ("GET", "sessions?stream=live/cafe%CC%81", nil, "stream"),
                ("POST", "tokens", #"{"name":"cafe\#u{301}","role":"backend"}"#, "name"),
                (
                    "POST", "links", #"{"direction":"pull","app":"live","name":"cafe\#u{301}","url":"rtmp://example.com/live/x"}"#,
                    "name"
                ),
            ]
            for (method, path, body, field) in calls {
                let error = try await api.refused(400, method, path, body)
                #expect(error["field"].string == field && error["rule"].string?.contains(rule) == true, "\(path): \(error)")
            }
            // The ban of the name stands.
            #expect(try await api.ok("GET", "streams/live/caf%C3%A9")["forbid"]["forbiddenUntil"].string == soon)
        }
    }
}
