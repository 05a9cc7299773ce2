import Crypto
import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Hooks and webhooks that a reload sets. The former times are so long that no test would wait for them.
@Suite struct ReloadHookTests {
    private static let loopback = "[127.0.0.0/8]"

    @Test func hooks() async throws {
        try await ReloadingServer.run(["outbound.allowPrivate": Self.loopback, "hooks.timeout": "1m"]) { server in
            try await ScriptedServer.run { request in
                switch request.json["action"].string {
                case "on_play": .status(403, #"{"code":403,"message":"not tonight"}"#)
                case "on_publish": .silence
                default: .status(200, #"{"code":0}"#)
                }
            } _: { hook in
                func actions() -> [String] { hook.requests.compactMap { $0.json["action"].string } }
                let url = "http://127.0.0.1:\(hook.port)/"
                #expect(try await server.refusal(.publish, "cam1") == nil)
                #expect(try await server.refusal(.play, "cam1") == nil)
                #expect(actions().isEmpty)
                try await server.apply([
                    "outbound.allowPrivate": Self.loopback, "hooks.timeout": "1m", "hooks.onUnpublish": url, "hooks.onStop": url,
                ])
                #expect(try await server.refusal(.publish, "cam1") == nil)
                try await eventually("the push's end") { actions() == ["on_unpublish"] }
                #expect(try await server.refusal(.play, "cam1") == nil)
                try await eventually("the play's end") { actions() == ["on_unpublish", "on_stop"] }
                try await server.apply([
                    "outbound.allowPrivate": Self.loopback, "hooks.timeout": "1m", "hooks.onPlay": url,
                ])
                #expect(try await server.refusal(.play, "cam1")?.contains("not tonight") == true)
                try await server.apply([
                    "outbound.allowPrivate": Self.loopback, "hooks.timeout": "300ms", "hooks.onPublish": url,
                ])
                let begin = StallMeter.pool.start()
                #expect(try await server.refusal(.publish, "cam1")?.contains("hook_unavailable") == true)
                #expect(await StallMeter.pool.passed(since: begin) < .seconds(55))
                #expect(actions() == ["on_unpublish", "on_stop", "on_play", "on_publish"])
            }
        }
    }

    /// The first target does not answer, the second one says no.
    @Test func webhookTries() async throws {
        try await ReloadingServer.run(["outbound.allowPrivate": Self.loopback]) { server in
            try await ScriptedServer.run { _ in
                .silence
            } _: { silent in
                try await server.apply([
                    "outbound.allowPrivate": Self.loopback, "webhooks.urls": "[\"http://127.0.0.1:\(silent.port)/\"]",
                    "webhooks.timeout": "100ms", "webhooks.retryInterval": "100ms",
                ])
                try await server.makeRoom("r1")
                try await eventually("another try") { silent.requests.count >= 2 }
            }
            let failing = try await WebhookReceiver.start { _, _ in WebhookReceiver.Answer(status: 500) }
            try await server.apply([
                "outbound.allowPrivate": Self.loopback, "webhooks.urls": "[\"\(failing.url)\"]", "webhooks.key": "a-key-of-its-own",
                "webhooks.retryFor": "10s", "webhooks.retryInterval": "100ms", "webhooks.maxRetryInterval": "100ms",
            ])
            try await server.makeRoom("r2")
            func tries() -> [WebhookReceiver.Delivery] { failing.deliveries.filter { $0.json["roomId"].string == "r2" } }
            try await server.wait("webhooks/deliveries?state=failed") { $0["list"].list.contains { $0["event"]["roomId"].string == "r2" } }
            // Waits that double would leave time for eight.
            #expect(tries().count > 8 && tries().map { $0.json["attempt"].int } == Array(1...tries().count))
            for delivery in tries() {
                let time = delivery.headers["x-earshot-timestamp"] ?? ""
                let code = HMAC<SHA256>.authenticationCode(
                    for: Array("\(time).".utf8) + delivery.body, using: SymmetricKey(data: Array("a-key-of-its-own".utf8)))
                #expect(delivery.headers["x-earshot-signature"] == "sha256=" + code.map { String(format: "%02x", $0) }.joined())
            }
            await failing.stop()
        }
    }

    /// Targets that get events as Tencent's callbacks are.
    @Test func tencentTargets() async throws {
        let receiver = try await WebhookReceiver.start()
        try await ReloadingServer.run(["outbound.allowPrivate": Self.loopback]) { server in
            try await server.apply(["outbound.allowPrivate": Self.loopback, "webhooks.tencentUrls": "[\"\(receiver.url)\"]"])
            let publisher = try await server.livePublisher("cam1")
            try await eventually("the call about the push") {
                receiver.accepted.contains { $0.json["event_type"].int == 1 && $0.json["stream_id"].string == "cam1" }
            }
            await publisher.close()
        }
        await receiver.stop()
    }
}
