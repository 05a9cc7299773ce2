import APITestSupport
import Foundation
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import EarshotServer

/// Webhooks on the command line, with a real receiver.
@Suite struct APIWebhookTests {
    private static func configure(_ config: inout ServerConfig) {
        config.webhooks.key = "the server's own key"
        config.webhooks.retryForMs = 0
        config.webhooks.retryIntervalMs = 100
        config.webhooks.timeoutMs = 5_000
        config.outbound.allowPrivate = CIDR.loopback
    }

    private func room(_ api: CheckedAPI, _ id: String) async throws {
        try await api.ok("POST", "rooms", #"{"roomId":"\#(id)"}"#, status: 201)
    }

    @Test func theCommandDoesAllThat() async throws {
        let receiver = try await WebhookReceiver.start()
        try await Fixture.withDirectory { directory in
            try await TestServer.run(Self.configure) { server in
                let cli = try await server.cli(in: directory)
                #expect(try await cli("webhooks").errors.contains("no webhooks"))
                let made = try await cli("webhooks", "add", "back-end", receiver.url, "--kind", "room.created", "--rooms", "r")
                #expect(made.status == 0 && made.lines.count == 1 && made.errors.contains("webhook 1"), "\(made.errors)")
                #expect(!made.errors.contains(made.lines[0]))
                let list = try await cli.text("webhooks", "list")
                #expect(list.contains("back-end") && list.contains("room.created of r") && list.contains("well"), "\(list)")
                let test = try await cli.text("webhooks", "test", "1")
                #expect(test.contains("200"), "\(test)")
                #expect(try await cli.text("webhooks", "pause", "1") == "webhook 1 is paused\n")
                let api = try await CheckedAPI(server)
                try await self.room(api, "r1")
                #expect(try await cli.text("webhooks", "resume", "1") == "webhook 1 is resumed; deliveries waiting: 1\n")
                #expect(try await cli.text("webhooks", "redeliver", "1") == "deliveries sent again: 0\n")
                try await eventually("the delivery") { receiver.deliveries.count == 2 }
                let changed = try await cli.text("webhooks", "change", "1", "--name", "shop", "--kind", "room.closed", "--all-rooms")
                #expect(changed.hasPrefix("webhook 1 shop is changed: room.closed, http://127.0.0.1:"), "\(changed)")
                #expect(try await cli.json("webhooks", "change", "1", "--all-kinds", "--rooms", "s")["kinds"].list.isEmpty)
                let kept = try await api.ok("GET", "webhooks/1")
                #expect(kept["name"].string == "shop" && kept["rooms"].list.compactMap(\.string) == ["s"])
                #expect(try await cli("webhooks", "change", "1").errors.contains("Say what to change"))
                #expect(try await cli("webhooks", "change", "1", "--kind", "room.closed", "--all-kinds").errors.contains("exclude"))
                #expect(try await cli("webhooks", "change", "1", "--rooms", "a", "--all-rooms").errors.contains("exclude"))
                #expect(try await cli("webhooks", "change", "2", "--name", "x").status == 3)
                #expect(try await cli.text("webhooks", "remove", "1") == "webhook 1 is removed; deliveries dropped: 0\n")
                #expect(try await cli("webhooks", "test", "1").status == 3)
            }
        }
        await receiver.stop()
    }
}
