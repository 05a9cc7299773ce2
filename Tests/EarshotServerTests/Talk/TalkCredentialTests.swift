import Foundation
import RTMP
import Rooms
import ServerConfiguration
import Support
import Talk
import Testing

@testable import Access
@testable import Delivery
@testable import EarshotServer
@testable import Talkback

/// The voice that each credential opens, and the role that it gives.
@Suite struct TalkCredentialTests {
    /// Access only with a credential.
    private static let closed: @Sendable (inout ServerConfig) -> Void = {
        $0.access.publishFrom = []
        $0.access.playFrom = []
        $0.credentials.key = "a key for tests"
    }

    private static func room(_ body: @escaping @Sendable (TalkRoom, _ query: String) async throws -> Void) async throws {
        try await TestServer.run(Self.closed) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId":"r1"}"#).status == 201)
            let key = try await server.call("POST", "rooms/r1/push-url", "{}").json()["data"]["streamKey"].string.orThrow()
            let query = String(key.dropFirst("r1?".count))
            // The credential is in the app, as stock clients with two fields send it: one for the server, one for the key.
            let camera = try await RawClient.connected(server.addresses.rtmp.port, app: "live?\(query)")
            try await camera.publish("r1", on: camera.createStream())
            camera.send(.video, SyntheticTag.videoHeader)
            camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            let room = TalkRoom(server: server, camera: camera)
            try await server.wait("rooms/r1") { $0["state"].string == "live" }
            try await body(room, query)
            await camera.close()
        }
    }

    /// The app's query applies to every name. The push's credential still admits its connection to the room's talk.
    @Test(.timeLimit(.minutes(5))) func aPushsCredentialInTheApp() async throws {
        try await Self.room { room, query in
            let camera = room.camera
            try await camera.play("talk/r1/mix-me", on: camera.createStream())
            try await camera.play("talk/r1/mix?lang=en", on: camera.createStream())
            let voice = try await camera.createStream()
            try await camera.publish("talk/r1/me?lang=en", on: voice)
            #expect(try await room.member("me")["role"].string == "host")
            // The same credential repeated in the name counts as the push's.
            try await camera.play("talk/r1/mix-me?\(query)", on: camera.createStream())
            // A credential in the name decides alone. The app's is valid for its own room only.
            let token = try await room.post("token", #"{"userId":"ann"}"#).json()["data"]["token"].string.orThrow()
            try await camera.publish("talk/r1/ann?token=\(token)", on: camera.createStream())
            #expect(try await room.member("ann")["role"].string == "guest")
            for name in ["talk/r1/ben?token=\(token)", "talk/r1/me?token=rubbish", "talk/r2/me"] {
                let before = camera.statuses.count { $0.description.contains("[credential_") }
                try await camera.createStreamAndTryToPublish(name)
                try await eventually("a refusal") { camera.statuses.count { $0.description.contains("[credential_") } == before + 1 }
            }
            #expect(!camera.isClosed)
        }
    }

    /// The push's credential gives the device one name: it cannot return under another, nor use somebody else's.
    @Test(.timeLimit(.minutes(5))) func aCameraHasOneName() async throws {
        try await Self.room { room, _ in
            let camera = room.camera
            let voice = try await camera.createStream()
            try await camera.publish("talk/r1/device", on: voice)
            #expect(try await room.post("members/device/kick", #"{"seconds":60}"#).status == 200)
            try await eventually("the voice to be gone") { try await room.talk()["members"].count == 0 }
            for (name, reason) in [("device2", "credential_wrong"), ("device", "forbidden"), ("bob", "credential_wrong")] {
                let before = camera.statuses.count
                try await camera.createStreamAndTryToPublish("talk/r1/\(name)")
                try await eventually("a refusal of \(name)") { camera.statuses.count > before }
                #expect(camera.statuses.last?.description.contains("[\(reason)]") == true, "\(name): \(camera.statuses)")
            }
            #expect(try await room.post("members/device/allow", "{}").status == 200)
            try await camera.publish("talk/r1/device", on: camera.createStream())
            #expect(!camera.isClosed)
        }
    }

    /// Claims besides `exp`, and whether they allow speaking as r1/ann.
    @Test(arguments: [
        (#""room":"r1","role":"guest","sub":"ann""#, true), (#""talk":"r1","role":"guest","sub":"ann""#, true),
        (#""room":"r1","role":"host","sub":"ann""#, true), (#""room":"r1","act":["publish"],"sub":"ann""#, true),
        (#""stream":"talk/r1/ann","act":["publish"]"#, true), (#""stream":"talk/r1/ann","act":["publish"],"sub":"eve@example.com""#, true),
        (#""room":"r1","role":"guest""#, false), (#""room":"r1","role":"guest","sub":"""#, false),
        (#""room":"r1","role":"guest","sub":"eve@example.com""#, false), (#""talk":"r1","role":"cohost""#, false),
        (#""room":"r1","role":"host""#, false), (#""room":"r1","act":["publish"]"#, false),
        (#""room":"r1","role":"guest","sub":"eve""#, false), (#""room":"r1","role":"guest","sub":"nn""#, false),
        (#""stream":"talk/r1/eve","act":["publish"]"#, false), (#""stream":"talk/r1/ann","act":["publish"],"sub":"eve""#, false),
    ])
    func tokensToSpeakWith(_ claims: String, _ allowed: Bool) throws {
        let query = "token=\(Doorkeeper.token("{\(claims),\"exp\":2000000000}"))"
        let answer = try Doorkeeper().ask(query, app: "talk", name: "r1/ann")
        #expect(answer.refusal == (allowed ? nil : .credentialWrong), "\(answer.message)")
        // Listening needs no name.
        guard !claims.contains("act"), !claims.contains("stream") else { return }
        #expect(try Doorkeeper().ask(query, app: "talk", name: "r1/mix", action: .play).pass != nil)
    }

    /// The owner's name gives the role of host if the credential is verified. A role in it, or another user, overrides that.
    @Test(arguments: [
        ("owner" as String?, nil as String?, true, TalkRole.host), (nil, nil, true, .host), ("owner", "guest", true, .guest),
        ("owner", "viewer", true, .guest), ("owner", "cohost", true, .coHost), ("eve", nil, true, .guest), ("eve", "host", true, .host),
        ("owner", nil, false, .guest), (nil, nil, false, .guest), ("eve", nil, false, .guest),
    ])
    func roles(_ user: String?, _ role: String?, _ isVerified: Bool, _ expected: TalkRole) {
        let pass = AdmissionPass(identity: "x", user: user, role: role, isVerified: isVerified, parameters: "")
        #expect(TalkRole(pass, id: "owner", owner: "owner") == expected)
        if expected == .host, role == nil { #expect(TalkRole(pass, id: "owner", owner: nil) == .guest) }
    }

    /// The part of a name's query that differs from the app's.
    @Test(arguments: [
        ("", "", "", false), ("a=b", "", "a=b", false), ("token=x", "", "token=x", true), ("token=x", "token=x", "", false),
        ("token=x&a=b", "token=x&c=d", "a=b", false), ("token=x&token=y", "token=x", "token=y", true),
        ("txSecret=1&txTime=2", "txSecret=1&txTime=2", "", false),
        ("txSecret=1&txTime=2&txSecret=3&txTime=2", "txSecret=1&txTime=2", "txSecret=3&txTime=2", true),
        ("txSecret=1&txTime=2&a=b&txSecret=1&txTime=2", "txSecret=1&txTime=2", "a=b", false),
        // The same time alone is not the same credential.
        ("txSecret=3&txTime=2", "txSecret=1&txTime=2", "txSecret=3&txTime=2", true), ("txTime=2", "txSecret=1&txTime=2", "txTime=2", true),
        ("jwt=x", "token=x", "jwt=x", true), ("tok%65n=x", "token=y", "tok%65n=x", true), ("user=eve", "token=x", "user=eve", false),
    ])
    func ownCredentials(_ query: String, _ other: String, _ rest: String, _ hasCredential: Bool) {
        let own = CredentialParameters.own(of: query, beside: other)
        #expect(own.query == rest && own.hasCredential == hasCredential)
    }

    /// An older signature does not take over. It changes neither the role nor a count that would lock out the member.
    @Test(.timeLimit(.minutes(5))) func aRefusedTakeoverHasNoEffect() async throws {
        try await Self.room { room, _ in
            func signed(_ seconds: Int64) -> String {
                let time = TxSecret.text(ofSeconds: WallClock.seconds + seconds)
                return "r1/ann?\(Doorkeeper.signed("r1/ann", txTime: time, key: "a key for tests"))"
            }
            let ann = try await room.client()
            try await ann.publish(signed(600), on: ann.createStream())
            for _ in 0..<5 {
                let old = try await room.client()
                try await old.createStreamAndTryToPublish(signed(300))
                try await old.waitUntilClosed()
                #expect(old.statuses.last?.description.contains("[name_taken]") == true, "\(old.statuses)")
            }
            let again = try await room.client()
            try await again.publish(signed(900), on: again.createStream())
            try await ann.waitUntilClosed()
            #expect(try await room.talk()["holders"].list.map(\.string) == ["ann"])
            await again.close()
        }
    }
}
