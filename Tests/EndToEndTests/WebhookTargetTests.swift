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

/// The names of webhooks in the log, in calls and on the command line.
@Suite struct WebhookTargetTests {
    private static func configure(_ config: inout ServerConfig, urls: [String]) {
        config.webhooks.urls = urls
        config.webhooks.key = "webhook-key-1"
        config.webhooks.retryIntervalMs = 100
        config.webhooks.retryForMs = 3_000
        config.webhooks.timeoutMs = 5_000
        config.outbound.allowPrivate = CIDR.loopback
    }

    @Test func logAndDeliveriesNameTheTarget() async throws {
        let good = try await WebhookReceiver.start()
        let bad = try await WebhookReceiver.start { _, _ in WebhookReceiver.Answer(status: 503) }
        let (one, other) = (WebhookTarget(url: good.url, format: .earshot), WebhookTarget(url: bad.url, format: .earshot))
        try await TestServer.run({ Self.configure(&$0, urls: [good.url, bad.url]) }) { server in
            let api = try await CheckedAPI(server)
            let before = try await api.ok("GET", "webhooks/targets")["list"].list
            #expect(before.map(\.["targetId"].string) == [one.id, other.id])
            #expect(before.allSatisfy { $0["isFailing"].bool == false && $0["failingSince"].isNull && $0["deliveredAt"].isNull })
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            try await eventually("it to be given up") { try await api.ok("GET", "webhooks/deliveries?state=failed")["list"].count == 1 }
            let failed = try await api.ok("GET", "webhooks/deliveries?targetId=\(other.id)")["list"]
            #expect(failed.count == 1 && failed[0]["targetId"].string == other.id && failed[0]["state"].string == "failed")
            #expect(try await api.ok("GET", "webhooks/deliveries?targetId=\(one.id)&state=failed")["list"].count == 0)
            let unknown = try await api.refused(400, "GET", "webhooks/deliveries?targetId=earshot-0")
            #expect(unknown["field"].string == "targetId" && unknown["rule"].string?.contains(one.id) == true)
            for line in ["A webhook fails", "A delivery was given up"] {
                try await eventually(line) { server.lines.contains(line, "target=\(other.id)") }
                #expect(!server.lines.contains(line, one.id))
            }
            try await eventually("the delivery") { try await !api.ok("GET", "webhooks/targets")["list"][0]["deliveredAt"].isNull }
            let after = try await api.ok("GET", "webhooks/targets")["list"][1]
            #expect(after["deliveredAt"].isNull)
            #expect(after["isFailing"].bool == true && after["givenUp"].int == 1, "\(after)")
            // At 0.1, 0.3, 0.7 and 1.5 s, and by chance once more; a machine that stands still meanwhile leaves time for two.
            #expect((2...6).contains(after["failedAttempts"].int ?? 0), "\(after)")
            #expect(after["lastError"].string?.contains("503") == true && after["url"].string == "http://127.0.0.1:\(bad.port)")
            try await Fixture.withDirectory { directory in
                let cli = try await server.cli(in: directory)
                let table = try await cli.text("webhooks", "targets")
                #expect(table.contains(one.id) && table.contains("failing") && table.contains("well"), "\(table)")
                #expect(try await cli.text("webhooks", "deliveries", "--target-id", other.id).contains(other.id))
            }
        }
        for receiver in [good, bad] { await receiver.stop() }
    }
}
