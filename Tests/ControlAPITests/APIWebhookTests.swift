import APITestSupport
import Crypto
import Foundation
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// Webhooks made by calls, with a real receiver.
@Suite struct APIWebhookTests {
    private static func configure(_ config: inout ServerConfig) {
        config.webhooks.key = "the server's own key"
        config.webhooks.retryForMs = 0
        config.webhooks.retryIntervalMs = 100
        config.webhooks.timeoutMs = 5_000
        config.outbound.allowPrivate = CIDR.loopback
    }

    private func add(_ api: CheckedAPI, _ receiver: WebhookReceiver, _ more: String = "") async throws -> (id: Int, secret: String) {
        let made = try await api.ok("POST", "webhooks", #"{"name":"back end","url":"\#(receiver.url)"\#(more)}"#, status: 201)
        return (try made["webhookId"].int.orThrow(), try made["secret"].string.orThrow())
    }

    private func room(_ api: CheckedAPI, _ id: String) async throws {
        try await api.ok("POST", "rooms", #"{"roomId":"\#(id)"}"#, status: 201)
    }

    private func isSigned(_ delivery: WebhookReceiver.Delivery, _ secret: String) throws -> Bool {
        let time = try delivery.headers["x-earshot-timestamp"].orThrow()
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("\(time).".utf8) + delivery.body, using: SymmetricKey(data: Array(secret.utf8)))
        return delivery.headers["x-earshot-signature"] == "sha256=\(SecretText.hex(code))"
    }

    /// Events that fit the filter arrive in order, signed with the target's own secret, which is shown once.
    @Test func aTargetGetsItsEvents() async throws {
        let receiver = try await WebhookReceiver.start()
        try await UnboundServer.run(Self.configure) { server in
            let api = try await CheckedAPI(server)
            let (id, secret) = try await self.add(api, receiver, #","kinds":["room.created","room.closed"],"rooms":["acme-"]"#)
            for room in ["acme-1", "zulu"] {
                try await self.room(api, room)
                try await api.ok("PATCH", "rooms/\(room)", #"{"title":"x"}"#)
                try await api.ok("POST", "rooms/\(room)/close")
            }
            try await eventually("two deliveries") { receiver.deliveries.count == 2 }
            #expect(receiver.deliveries.map { $0.json["kind"].string } == ["room.created", "room.closed"])
            #expect(receiver.deliveries.allSatisfy { $0.json["roomId"].string == "acme-1" })
            #expect(try receiver.deliveries.allSatisfy { try self.isSigned($0, secret) })
            let shown = try await api("GET", "webhooks/\(id)")
            #expect(!shown.text.contains(secret))
            #expect(try shown.json()["data"]["url"].string == "http://127.0.0.1:\(receiver.port)")
            let log = try await api.ok("GET", "webhooks/deliveries?targetId=webhook-\(id)")["list"]
            #expect(log.count == 2 && log[0]["targetId"].string == "webhook-\(id)")
            #expect(try await api.ok("GET", "webhooks/targets")["list"][0]["targetId"].string == "webhook-\(id)")
            let trail = try await api("GET", "audit?operation=createWebhook").text
            #expect(trail.contains("webhook/\(id)") && !trail.contains(secret))
            #expect(!server.lines.all.contains { $0.contains(secret) })
        }
        await receiver.stop()
    }

    /// A repeated creation does not show the secret again.
    @Test func theSecretIsShownOnce() async throws {
        let receiver = try await WebhookReceiver.start()
        try await UnboundServer.run(Self.configure) { server in
            let api = try await CheckedAPI(server)
            let (body, key) = (#"{"name":"x","url":"\#(receiver.url)"}"#, ["Idempotency-Key": "k"])
            let first = try await api.ok("POST", "webhooks", body, status: 201, headers: key)
            let again = try await api.ok("POST", "webhooks", body, status: 201, headers: key)
            #expect(first["secret"].string != nil && again["secret"].isNull && again["webhookId"].int == first["webhookId"].int)
            #expect(try await api.ok("GET", "webhooks")["total"].int == 1)
        }
        await receiver.stop()
    }

    /// Deliveries of a paused target wait and then arrive in their order; a changed URL holds for those that wait.
    @Test func pausedDeliveriesWait() async throws {
        let (first, second) = (try await WebhookReceiver.start(), try await WebhookReceiver.start())
        try await UnboundServer.run(Self.configure) { server in
            let api = try await CheckedAPI(server)
            let (id, secret) = try await self.add(api, first, #","rooms":["r"]"#)
            try await self.room(api, "r1")
            try await eventually("the first") { first.deliveries.count == 1 }
            #expect(try await api.ok("POST", "webhooks/\(id)/pause")["isPaused"].bool == true)
            try await api.ok("POST", "rooms/r1/close")
            try await api.ok("DELETE", "rooms/r1")
            // A target beside it gets its own meanwhile, so the dispatcher has looked.
            let (other, _) = try await self.add(api, first, #","rooms":["x"]"#)
            try await self.room(api, "x1")
            try await eventually("the other's") { first.deliveries.contains { $0.json["roomId"].string == "x1" } }
            #expect(try await api.ok("GET", "webhooks/\(id)")["pending"].int == 2)
            #expect(first.deliveries.count == 2)
            let moved = try await api.ok("PATCH", "webhooks/\(id)", #"{"url":"\#(second.url)/new","name":"moved"}"#)
            #expect(moved["name"].string == "moved" && moved["isPaused"].bool == true)
            try await api.ok("POST", "webhooks/\(id)/resume")
            try await eventually("what waited") { second.deliveries.count == 2 }
            #expect(second.deliveries.map { $0.json["kind"].string } == ["room.closed", "room.deleted"])
            #expect(try second.deliveries.allSatisfy { try self.isSigned($0, secret) })
            _ = other
        }
        await first.stop()
        await second.stop()
    }

    @Test func aTestCallTellsWhatCameBack() async throws {
        let receiver = try await WebhookReceiver.start { _, count in WebhookReceiver.Answer(status: count > 0 ? 418 : 200) }
        try await UnboundServer.run(Self.configure) { server in
            let api = try await CheckedAPI(server)
            let (id, secret) = try await self.add(api, receiver)
            let good = try await api.ok("POST", "webhooks/\(id)/test")
            #expect(good["isDelivered"].bool == true && good["status"].int == 200 && good["error"].isNull)
            let delivery = try receiver.deliveries.first.orThrow()
            #expect(delivery.headers["x-earshot-event"] == "webhook.test" && delivery.json["roomId"].isNull)
            #expect(try self.isSigned(delivery, secret))
            let bad = try await api.ok("POST", "webhooks/\(id)/test")
            #expect(bad["isDelivered"].bool == false && bad["status"].int == 418 && bad["error"].string?.contains("418") == true)
            // One that nobody has a connection to: whether the end of one is known already is chance.
            let gone = try await WebhookReceiver.start()
            let (other, _) = try await self.add(api, gone)
            await gone.stop()
            let none = try await api.ok("POST", "webhooks/\(other)/test")
            #expect(none["status"].isNull && none["error"].string?.contains("no connection") == true, "\(none)")
            // Nothing of it is in the delivery log.
            #expect(try await api.ok("GET", "webhooks/deliveries")["list"].list.isEmpty)
        }
        await receiver.stop()
    }

    /// Failed deliveries are sent again by kind, each once only, and in their order.
    @Test func failedOnesAreSentAgain() async throws {
        let receiver = try await WebhookReceiver.start { _, count in WebhookReceiver.Answer(status: count > 3 ? 200 : 500) }
        try await UnboundServer.run(Self.configure) { server in
            let api = try await CheckedAPI(server)
            let (id, _) = try await self.add(api, receiver)
            for room in ["r1", "r2"] {
                try await self.room(api, room)
                try await api.ok("POST", "rooms/\(room)/close")
            }
            try await eventually("four failures") { try await api.ok("GET", "webhooks/deliveries?state=failed")["list"].count == 4 }
            let path = "webhooks/deliveries/redeliver"
            let none = try await api.ok("POST", path, #"{"targetId":"webhook-\#(id)","to":"2020-01-01T00:00:00Z"}"#)
            #expect(none["queued"].int == 0)
            let one = try await api.ok("POST", path, #"{"targetId":"webhook-\#(id)","kinds":["room.closed"],"limit":1}"#)
            #expect(one["queued"].int == 1 && one["isComplete"].bool == false)
            // Without a target those of all.
            let rest = try await api.ok("POST", path)
            #expect(rest["queued"].int == 3 && rest["isComplete"].bool == true)
            #expect(try await api.ok("POST", path)["queued"].int == 0)
            try await api.refused(400, "POST", path, #"{"targetId":"webhook-99"}"#)
            #expect(try await api("GET", "audit?operation=redeliverDeliveries").text.contains("webhook/\(id)"))
            try await eventually("all four") { try await api.ok("GET", "webhooks/deliveries?state=delivered")["list"].count == 4 }
            #expect(Set(receiver.deliveries.suffix(4).map(\.key)) == Set(receiver.deliveries.prefix(4).map(\.key)))
        }
        await receiver.stop()
    }

    /// A deleted target's deliveries are dropped, and counted.
    @Test func deletionDropsWhatWaits() async throws {
        let receiver = try await WebhookReceiver.start()
        try await UnboundServer.run(Self.configure) { server in
            let api = try await CheckedAPI(server)
            let (id, _) = try await self.add(api, receiver, #","isPaused":true"#)
            for index in 0..<300 { try await self.room(api, "r\(index)") }
            #expect(try await api.ok("GET", "webhooks/\(id)")["pending"].int == 300)
            #expect(try await api.ok("DELETE", "webhooks/\(id)")["dropped"].int == 300)
            #expect(try await api.ok("GET", "webhooks/deliveries")["list"].list.isEmpty)
            for (method, path) in [
                ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/pause"),
            ] {
                try await api.refused(404, method, "webhooks/\(id)\(path)", method == "PATCH" ? "{}" : nil)
            }
            try await self.room(api, "later")
            #expect(receiver.deliveries.isEmpty)
        }
        await receiver.stop()
    }

    @Test(arguments: [
        (#"{"name":"x","url":"ftp://example.com/"}"#, "url"), (#"{"name":"x","url":"http://u:p@example.com/secret-path"}"#, "url"),
        (#"{"name":"x","url":"http://169.254.169.254/secret-path"}"#, "url"), (#"{"name":"x","url":"http://[::ffff:10.0.0.1]/"}"#, "url"),
        (#"{"name":"","url":"https://example.com/"}"#, "name"),
        (#"{"name":"x","url":"https://example.com/","kinds":["room.lives"]}"#, "kinds"),
        (#"{"name":"x","url":"https://example.com/","rooms":["a b"]}"#, "rooms"), (#"{"name":"x"}"#, "url"),
    ]) func badTargetsAreRefused(_ body: String, _ field: String) async throws {
        try await UnboundServer.run({ $0.webhooks.key = "0123456789" }) { server in
            let api = try await CheckedAPI(server)
            let answer = try await api("POST", "webhooks", body)
            #expect(answer.status == 400 && !answer.text.contains("secret-path"), "\(answer.text)")
            #expect(try answer.json()["error"]["field"].string == field)
            #expect(try await api.ok("GET", "webhooks")["total"].int == 0)
        }
    }

    @Test func soManyAreAllowed() async throws {
        try await UnboundServer.run(Self.configure) { server in
            let api = try await CheckedAPI(server)
            let body = #"{"name":"x","url":"https://example.com/"}"#
            for _ in 0..<RoomLimits.webhooks { try await api.ok("POST", "webhooks", body, status: 201) }
            try await api.refused(409, "POST", "webhooks", body)
        }
    }

    /// Targets and what waits for them outlive a restart.
    @Test func targetsOutliveARestart() async throws {
        let receiver = try await WebhookReceiver.start()
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let (id, secret) = try await UnboundServer.run(data: data, Self.configure) { server in
                let api = try await CheckedAPI(server)
                let made = try await self.add(api, receiver, #","isPaused":true"#)
                try await self.room(api, "r1")
                return made
            }
            try await UnboundServer.run(data: data, Self.configure) { server in
                let api = try await CheckedAPI(server)
                try await api.ok("POST", "webhooks/\(id)/resume")
                try await eventually("the delivery") { receiver.deliveries.count == 1 }
                #expect(try self.isSigned(try receiver.deliveries.first.orThrow(), secret))
            }
        }
        await receiver.stop()
    }
}
