import APITestSupport
import Access
import Foundation
import Logging
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Notifications
@testable import RoomRegistry
@testable import Rooms
@testable import Streaming

/// Targets of webhooks: what counts as delivered, and what Tencent's shape says.
@Suite struct WebhookTargetTests {
    private static func configure(_ config: inout ServerConfig, urls: [String] = [], tencent: [String] = []) {
        config.webhooks.urls = urls
        config.webhooks.tencentURLs = tencent
        config.webhooks.key = "webhook-key-1"
        config.webhooks.retryIntervalMs = 100
        config.webhooks.timeoutMs = 5_000
        config.outbound.allowPrivate = CIDR.loopback
    }

    @Test(arguments: [201, 202, 204, 206]) func anySuccessIsDelivered(_ status: Int) async throws {
        let receiver = try await WebhookReceiver.start { _, _ in WebhookReceiver.Answer(status: status) }
        try await UnboundServer.run({ Self.configure(&$0, urls: [receiver.url]) }) { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            try await eventually("it to be delivered") {
                try await api.ok("GET", "webhooks/deliveries?state=delivered")["list"].count == 1
            }
            let delivery = try await api.ok("GET", "webhooks/deliveries")["list"][0]
            #expect(delivery["attempts"].int == 1 && delivery["lastStatus"].int == status && !delivery["deliveredAt"].isNull)
            #expect(receiver.deliveries.count == 1)
            #expect(!server.lines.contains("A webhook fails"))
        }
        await receiver.stop()
    }

    // MARK: - Tencent's shape

    @Test func aForbiddenPushEndsWithTencentsCode() async throws {
        let receiver = try await WebhookReceiver.start()
        try await UnboundServer.run({ Self.configure(&$0, tencent: [receiver.url]) }) { server in
            let rooms = server.server.parts.rooms
            var told = 0
            for (end, code, word) in [
                ("forbid", 21, "101: "), ("drop", 21, "100: "), ("close", 21, "100: "), ("lost", 12, "the connection"),
            ] {
                let request = PushRequest(
                    path: StreamPath(app: "live", name: end), clientAddress: "192.0.2.7:5000", session: 1, parameters: "",
                    mayCreateRoom: true)
                let grant = try await rooms.admitPush(request).get()
                rooms.mediaArrived(grant.sequence, MediaSummary())
                switch end {
                case "forbid":
                    _ = try await rooms.forbid(grant.path, untilMs: rooms.now + 60_000, reason: "", by: Actor("t"))
                case "drop": rooms.pushEnded(grant.sequence, .dropped)
                case "close": _ = try await rooms.apply(.close, to: end, action: "close", by: Actor("t"))
                default: rooms.pushEnded(grant.sequence, .connectionLost)
                }
                told += 2
                try await eventually("begin and end of \(end)") { [told] in receiver.accepted.count == told }
                let last = try receiver.accepted.last.orThrow().json
                #expect(last["event_type"].int == 0 && last["errcode"].int == code, "\(end)")
                #expect(last["errmsg"].string?.hasPrefix(word) == true, "\(last["errmsg"].string ?? "")")
            }
        }
        await receiver.stop()
    }

    /// Also without urls.http and urls.rtmp.
    @Test func addressesAreWholeOnes() async throws {
        try await UnboundServer.run { server in
            let sender = WebhookSender(
                config: server.server.parts.config, addresses: server.server.parts.connections.addresses,
                keys: server.server.parts.keys)
            #expect(sender.http == server.http && sender.rtmp == server.rtmp)
            func body(_ kind: RoomEvent.Kind, _ data: String) throws -> JSON {
                let event = RoomEvent(id: 1, number: 1, kind: kind, roomID: nil, instance: 0, at: 0, data: data)
                let entry = WebhookDelivery(
                    id: 1, event: event, target: WebhookTarget(url: "http://b.example/", format: .tencent), state: .pending, attempts: 0,
                    dueAt: 0, lastStatus: nil, lastError: nil, lastAttemptAt: nil, durationMs: nil, deliveredAt: nil)
                let request = try WebhookRequest(entry, sender: sender, atSeconds: 0)
                return JSON(try JSONSerialization.jsonObject(with: Data(request.body.utf8)))
            }
            let picture = try body(
                .snapshotTaken, #"{"app":"live","name":"c","slot":1,"snapshotId":"s1","takenMs":1,"bytes":2,"width":3,"height":4}"#)
            #expect(picture["pic_full_url"].string?.hasPrefix("\(server.http)/api/v1/snapshots/s1/file?expires=86400&signature=") == true)
            let file = try body(
                .recordFinished,
                #"{"app":"live","name":"c","slot":1,"taskId":"t","recordingId":"r1","startedMs":1,"endedMs":2,"durationMs":1,"bytes":9}"#)
            #expect(file["video_url"].string?.hasPrefix("\(server.http)/api/v1/recordings/r1/file?expires=86400&signature=") == true)
            let relay = try body(
                .linkStarted, #"{"app":"live","name":"c","linkId":7,"direction":"push","target":"rtmp://cdn.example/x"}"#)
            #expect(relay["source_urls"].string == "\(server.rtmp)/live/c")
        }
        var config = ServerConfig()
        config.urls.http = "https://live.example.com/"
        config.urls.rtmp = "rtmp://live.example.com"
        let address = PublicAddress(
            config: config, addresses: .init(rtmp: config.rtmp.listen, rtmps: nil, http: config.http.listen, https: nil), requestHost: nil)
        #expect(address.http == "https://live.example.com" && address.rtmp == "rtmp://live.example.com")
    }
}
