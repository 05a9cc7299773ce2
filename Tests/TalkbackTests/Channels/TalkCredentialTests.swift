import APITestSupport
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import Talk
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer
@testable import Streaming
@testable import Talkback

/// The voice that each credential opens, and the role that it gives.
@Suite struct TalkCredentialTests {
    /// Access only with a credential.
    private static let closed: @Sendable (inout ServerConfig) -> Void = {
        $0.access.publishFrom = []
        $0.access.playFrom = []
        $0.credentials.key = "a key for tests"
    }

    private static func room(_ body: @escaping @Sendable (MemoryRoom, _ query: String) async throws -> Void) async throws {
        try await UnboundServer.run(Self.closed) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId":"r1"}"#).status == 201)
            let key = try await server.call("POST", "rooms/r1/push-url", "{}").json()["data"]["streamKey"].string.orThrow()
            let query = String(key.dropFirst("r1?".count))
            // The credential is in the app, as stock clients with two fields send it: one for the server, one for the key.
            let camera = try await RawClient.connected(server.port, app: "live?\(query)")
            try await camera.publish("r1", on: camera.createStream())
            camera.send(.video, SyntheticTag.videoHeader)
            camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            let room = MemoryRoom(server: server, camera: camera)
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
            try await eventually("the camera to be told") { camera.statuses.last?.description.contains("[kicked]") == true }
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

    /// A device's name stands for its room's talk, and its push's credential admits it there, but to no other device's room.
    @Test(.timeLimit(.minutes(5))) func aDevicesNameIsItsRoomsTalk() async throws {
        try await UnboundServer.run(Self.closed) { server in
            for (room, device) in [("r1", "dev"), ("r2", "other")] {
                #expect(try await server.call("POST", "rooms", "{\"roomId\":\"\(room)\",\"deviceUid\":\"\(device)\"}").status == 201)
            }
            let time = TxSecret.text(ofSeconds: WallClock.seconds + 600)
            let camera = try await RawClient.connected(server.port, app: "live")
            let key = "dev?\(TestCredential.signed("dev", txTime: time, key: "a key for tests"))"
            try await camera.publish(key, on: camera.createStream())
            camera.send(.video, SyntheticTag.videoHeader)
            camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            let room = MemoryRoom(server: server, camera: camera)
            try await server.wait("rooms/r1") { $0["state"].string == "live" }
            try await camera.play("talk/dev/mix-me", on: camera.createStream())
            try await camera.publish("talk/dev/me", on: camera.createStream())
            #expect(try await room.member("me")["role"].string == "host")
            let talk = try await server.call("GET", "rooms/dev/talk").json()["data"]
            #expect(talk["roomId"].string == "r1" && talk["members"].list.count == 1, "\(talk)")
            let before = camera.statuses.count { $0.description.contains("[credential_") }
            try await camera.createStreamAndTryToPublish("talk/other/me")
            try await eventually("a refusal") { camera.statuses.count { $0.description.contains("[credential_") } == before + 1 }
            #expect(!camera.isClosed)
            await camera.close()
        }
    }

    /// An older signature does not take over. It changes neither the role nor a count that would lock out the member.
    @Test(.timeLimit(.minutes(5))) func aRefusedTakeoverHasNoEffect() async throws {
        try await Self.room { room, _ in
            func signed(_ seconds: Int64) -> String {
                let time = TxSecret.text(ofSeconds: WallClock.seconds + seconds)
                return "r1/ann?\(TestCredential.signed("r1/ann", txTime: time, key: "a key for tests"))"
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
