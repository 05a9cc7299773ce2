import APITestSupport
import Logging
import Relay
import ServerTestSupport
import Streaming
import TestSupport
import Testing

@testable import EarshotServer
@testable import Listening
@testable import Notifications
@testable import RoomRegistry
@testable import Rooms

/// Deliveries that wait for a dead target: a bound, counts and a line in the log.
@Suite struct WebhookBacklogTests {
    @Test func theOldestPastTheLimitAreGivenUp() async throws {
        try await UnboundServer.run { server in
            let parts = server.server.parts
            // Nothing goes to a paused target, so that all of it waits.
            let target = try await parts.rooms.create(
                StoredWebhook(
                    id: 0, name: "x", url: "http://a.example/secret", format: .earshot, kinds: [], rooms: [], isPaused: true, secret: "s",
                    createdAt: 0)
            ).target
            let api = try await CheckedAPI(server)
            for number in 1...5 { try await api.ok("POST", "rooms", #"{"roomId":"r\#(number)"}"#, status: 201) }
            let (lines, counters) = (LogLines(), ServerCounters())
            let log = WebhookLog(Logger(label: "earshot", factory: { _ in CollectingLogHandler(lines: lines) }))
            let loop = try parts.streams.allLoops.first.orThrow().relay.eventLoop
            let dispatcher = WebhookDispatcher(
                parts.live, rooms: parts.rooms,
                sender: { WebhookSender(config: parts.config, addresses: parts.connections.addresses, keys: parts.keys) },
                outbound: parts.outbound, counters: counters, log: log, eventLoop: loop)
            try await dispatcher.giveUpSurplus(past: 3)
            let failed = try await parts.rooms.deliveries(state: .failed, room: nil, before: nil, limit: 10)
            #expect(failed.map { $0.event.roomID?.rawValue } == ["r2", "r1"])
            #expect(try await parts.rooms.pendingDeliveries(of: target) == 3)
            #expect(counters.current.webhooksGivenUp == 2)
            #expect(lines.all.count == 1 && lines.contains("Too many deliveries wait", "givenUp=2 ", "limit=3", target.id), "\(lines.all)")
            #expect(!lines.contains("/secret"))
            #expect(log.waiting.map(\.count) == [5], "as it was counted")
            // Counted again only after a while.
            try await dispatcher.giveUpSurplus(past: 0)
            #expect(try await parts.rooms.pendingDeliveries(of: target) == 3)
        }
    }
}
