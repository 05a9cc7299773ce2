import APITestSupport
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer

/// Admission to a talk channel, and the handling of members who misbehave.
@Suite struct TalkAdmissionTests {
    /// The room's state decides: no room, no live room, the room's end.
    @Test(.timeLimit(.minutes(5))) func theRoomRules() async throws {
        try await MemoryRoom.run { room in
            #expect(try await room.server.call("POST", "rooms", #"{"roomId":"early"}"#).status == 201)
            for (name, reason) in [("nowhere/ann", "no_room"), ("early/ann", "room_closed"), ("r1/mix", "bad_name"), ("r1", "bad_name")] {
                let client = try await room.client()
                try await client.createStreamAndTryToPublish(name)
                try await client.waitUntilClosed()
                #expect(client.statuses.last?.description.contains("[\(reason)]") == true, "\(name): \(client.statuses)")
            }
            let ann = try await room.talker("ann")
            let ear = try await room.listener("mix")
            let raw = try await room.listener("ann")
            #expect(try await room.server.call("POST", "rooms/r1/close").status == 200)
            try await ann.waitUntilClosed()
            try await ear.waitUntilClosed()
            try await raw.waitUntilClosed()
            #expect(ear.statusCodes.contains("NetStream.Play.UnpublishNotify"))
            #expect(try await room.talk()["members"].count == 0)
            try await eventually("a self-check that is right") { try await room.server.api("selfcheck")["ok"].bool == true }
        }
    }

    /// Thirty talkers arrive at once: eight are admitted, the others get the reason. The number of listeners is limited too.
    @Test(.timeLimit(.minutes(5))) func limits() async throws {
        try await MemoryRoom.run({ $0.talk.settings.listeners = 3 }) { room in
            let clients = try await withThrowingTaskGroup(of: RawClient.self) { group in
                for index in 0..<30 {
                    group.addTask {
                        let client = try await room.client()
                        try await client.createStreamAndTryToPublish("r1/p\(index)")
                        return client
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            try await eventually("eight talkers, and the rest closed") {
                clients.count { $0.isClosed } == 22 && clients.count { $0.statusCodes.contains("NetStream.Publish.Start") } == 8
            }
            for client in clients where client.isClosed {
                let why = client.statuses.last?.description ?? ""
                #expect(why.contains("[too_many_publishers]") && why.contains("all 8 talker places"), "\(client.statuses)")
            }
            var ears: [RawClient] = []
            for _ in 0..<3 { ears.append(try await room.listener("mix")) }
            let fourth = try await room.client()
            try await fourth.createStreamAndTryToPlay("r1/mix")
            try await fourth.waitUntilClosed()
            #expect(fourth.statuses.last?.description.contains("[too_many_viewers]") == true, "\(fourth.statuses)")
            #expect(room.server.hits(.talkers) == 22 && room.server.hits(.listeners) == 1)
            #expect(room.server.hits(.publishersTotal) == 0 && room.server.hits(.viewersPerStream) == 0)
            for client in clients + ears { await client.close() }
            try await eventually("all to be gone") { try await room.talk()["members"].count == 0 }
        }
    }

    /// The same credential takes over its place; another is refused. Tokens are for one name in one room.
    @Test(.timeLimit(.minutes(5))) func credentials() async throws {
        try await MemoryRoom.run(
            {
                $0.access.publishFrom = []
                $0.access.playFrom = []
                $0.credentials.key = "a key for tests"
            }, camera: { server in try await Self.pushURL(server) }
        ) { room in
            func token(_ user: String, _ role: String) async throws -> (publish: String?, play: String, token: String) {
                let made = try await room.post("token", #"{"userId":"\#(user)","role":"\#(role)"}"#).json()["data"]
                return (made["publish"].string, try made["play"].string.orThrow(), try made["token"].string.orThrow())
            }
            let ann = try await token("ann", "guest")
            #expect(ann.publish?.contains("/talk/r1/ann?token=") == true && ann.play.contains("/talk/r1/mix-ann?token="))
            let listener = try await token("lis", "listener")
            #expect(listener.publish == nil)
            let first = try await room.client()
            try await first.publish("r1/ann?token=\(ann.token)", on: first.createStream())
            #expect(try await room.member("ann")["role"].string == "guest")
            let second = try await room.client()
            try await second.publish("r1/ann?token=\(ann.token)", on: second.createStream())
            try await first.waitUntilClosed()
            let ear = try await room.client()
            try await ear.play("r1/mix-lis?token=\(listener.token)", on: ear.createStream())
            // Her token does not open another name, another room or the camera. A listener's token opens no voice, and neither does none.
            let wrong = [
                ("talk", "r1/ben?token=\(ann.token)"), ("talk", "r2/ann?token=\(ann.token)"), ("live", "r1?token=\(ann.token)"),
                ("talk", "r1/lis?token=\(listener.token)"), ("talk", "r1/ann"),
            ]
            for (app, name) in wrong {
                let client = try await RawClient.connected(room.port, app: app)
                try await client.createStreamAndTryToPublish(name)
                try await client.waitUntilClosed()
                #expect(client.statuses.last?.description.contains("[credential_") == true, "\(name.prefix(8)): \(client.statuses)")
            }
            #expect(try await room.member("ann")["role"].string == "guest")
            for client in [second, ear] { await client.close() }
        }
    }

    /// A camera's credential also admits its connection to the room's talk. A talker's credential admits one participant only.
    @Test(.timeLimit(.minutes(5))) func aVoiceIsNoPassForAnother() async throws {
        let closed: (inout ServerConfig) -> Void = {
            $0.access.publishFrom = []
            $0.access.playFrom = []
            $0.credentials.key = "a key for tests"
        }
        try await MemoryRoom.run(closed, camera: { server in try await Self.pushURL(server) }) { room in
            let token = try await room.post("token", #"{"userId":"ann"}"#).json()["data"]["token"].string.orThrow()
            let ann = try await room.client()
            try await ann.publish("r1/ann?token=\(token)", on: ann.createStream())
            for name in ["r1/ben", "r1/ann"] { try await ann.createStreamAndTryToPublish(name) }
            try await ann.createStreamAndTryToPlay("r1/mix")
            try await eventually("three refusals") {
                ann.statuses.count { $0.description.contains("[credential_") } == 3 || ann.isClosed
            }
            #expect(try await room.talk()["members"].list.map { $0["userId"].string } == ["ann"])
            #expect(try await room.member("ann")["role"].string == "guest")
            // The camera's credential does.
            try await room.camera.publish("talk/r1/device", on: room.camera.createStream())
            try await room.camera.play("talk/r1/mix-device", on: room.camera.createStream())
            #expect(try await room.member("device")["role"].string == "host")
            await ann.close()
            // A signature is for one name, to speak or to listen.
            let time = TxSecret.text(ofSeconds: WallClock.seconds + 60)
            func signed(_ name: String) -> String {
                "\(name)?\(TestCredential.signed(name, txTime: time, key: "a key for tests"))"
            }
            let ben = try await room.client()
            try await ben.publish(signed("r1/ben"), on: ben.createStream())
            try await ben.play(signed("r1/mix-ben"), on: ben.createStream())
            try await ben.createStreamAndTryToPublish("r1/cat?\(TestCredential.signed("r1/ben", txTime: time, key: "a key for tests"))")
            try await eventually("a refusal") { ben.statuses.contains { $0.description.contains("[credential_wrong]") } }
            #expect(try await room.member("ben")["role"].string == "guest")
            #expect(try await room.member("cat").names.isEmpty)
            await ben.close()
        }
    }

    private static func pushURL(_ server: UnboundServer) async throws -> String {
        #expect(try await server.call("POST", "rooms", #"{"roomId":"r1"}"#).status == 201)
        let url = try await server.call("POST", "rooms/r1/push-url", "{}").json()["data"]
        return try url["streamKey"].string.orThrow()
    }
}
