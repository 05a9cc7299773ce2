import Crypto
import EarshotServer
import Foundation
import RTMP
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Listening
@testable import Streaming

/// Webhooks of real room changes. The receiver is real too, and down, slow or failing at times.
@Suite struct WebhookDeliveryTests {
    private static let loopback: [CIDR] = CIDR.loopback

    private static func configure(
        _ config: inout ServerConfig, urls: [String] = [], tencent: [String] = [], retryForMs: Int64 = 3_600_000,
        intervalMs: Int64 = 200, timeoutMs: Int64 = 5_000
    ) {
        config.webhooks.urls = urls
        config.webhooks.tencentURLs = tencent
        config.webhooks.key = "webhook-key-1"
        config.webhooks.retryForMs = retryForMs
        // At even times, so that no test waits for long.
        (config.webhooks.retryIntervalMs, config.webhooks.maxRetryIntervalMs) = (intervalMs, intervalMs)
        (config.webhooks.tencentRetryIntervalMs, config.webhooks.tencentRetries) = (intervalMs, 1_000)
        config.webhooks.timeoutMs = timeoutMs
        config.outbound.allowPrivate = self.loopback
    }

    /// A push that begins and ends, as the registry sees it.
    private static func push(_ rooms: RoomRegistry, _ name: String, session: UInt64) async throws -> Int64 {
        let request = PushRequest(
            path: StreamPath(app: "live", name: name), clientAddress: "192.0.2.7:5000", session: session, parameters: "sign=***",
            query: "sign=ours", mayCreateRoom: true)
        let grant = try await rooms.admitPush(request).get()
        var media = MediaSummary()
        media.width = 1_280
        media.height = 720
        rooms.mediaArrived(grant.sequence, media)
        rooms.pushEnded(grant.sequence, .connectionLost)
        return grant.sequence.rawValue
    }

    /// The event numbers of each room, in the order of acceptance.
    private static func numbers(_ deliveries: [WebhookReceiver.Delivery]) -> [String: [Int]] {
        deliveries.reduce(into: [:]) { all, delivery in
            all[delivery.json["roomId"].string ?? "", default: []].append(delivery.json["number"].int ?? -1)
        }
    }

    /// Events of rooms that the server's shutdown causes are delivered before the process ends. The minute that a target may take to answer does not
    /// delay the end.
    @Test func theServerEnds() async throws {
        let (good, silent) = (try await WebhookReceiver.start(), try await WebhookReceiver.start())
        silent.answer { _, _ in .never }
        let told = try await TestServer.run({ Self.configure(&$0, urls: [good.url, silent.url], timeoutMs: 60_000) }) { server in
            let camera = try await RawClient.connected(server.port)
            try await camera.publish("cam1")
            for number in 0..<30 {
                camera.send(.video, SyntheticTag.video(number, isKeyframe: number == 0, bytes: 500), timestamp: UInt32(number * 40))
            }
            try await eventually("the room to be live") { good.deliveries.contains { $0.json["kind"].string == "room.live" } }
            return StallMeter.pool.start()
        }
        #expect(await StallMeter.pool.passed(since: told) < .seconds(40))
        let kinds = good.deliveries.map { $0.json["kind"].string ?? "" }
        #expect(kinds.contains("room.interrupted"), "\(kinds)")
    }

    /// An outage of three minutes, shortened. Nothing is lost, repeated or out of order, and no other target waits.
    @Test func aTargetThatIsDownForAWhile() async throws {
        let down = try WebhookReceiver.make()
        let tencent = try WebhookReceiver.make()
        let up = try await WebhookReceiver.start()
        try await TestServer.run({ Self.configure(&$0, urls: [down.url, up.url], tencent: [tencent.url]) }) { server in
            let rooms = server.server.parts.rooms
            var sequences: [Int64] = []
            for round in 0..<3 {
                for room in 0..<6 {
                    sequences.append(try await Self.push(rooms, "cam\(room)", session: UInt64(round * 6 + room)))
                }
            }
            // Facts are stored in order: once this one is, those before it are too.
            _ = try await rooms.newRoom("last")
            let stored = try await rooms.events(after: 0, room: nil, limit: 1_000)
            // Created, live or resumed, begin, end, interrupted …
            #expect(stored.count > 60)
            try await eventually("the target that is up to have all") { up.accepted.count >= stored.count }
            #expect(down.deliveries.isEmpty)
            // A few more attempts for the waiting ones.
            try await eventually("tries") {
                try await rooms.deliveries(state: .pending, room: "cam3", before: nil, limit: 100).contains {
                    $0.attempts >= 5 && $0.target.url == down.url
                }
            }
            try await down.start()
            try await tencent.start()
            try await eventually("the other to have all") { down.accepted.count >= stored.count }
            try await eventually("the third to have all") { tencent.accepted.count >= 2 * sequences.count }
            try await eventually("no pending delivery") {
                try await rooms.deliveries(state: .pending, room: nil, before: nil, limit: 1).isEmpty
            }
            for receiver in [down, up] {
                #expect(receiver.deliveries.count == stored.count)
                #expect(Set(receiver.deliveries.map(\.key)).count == stored.count)
                for (room, numbers) in Self.numbers(receiver.accepted) {
                    #expect(numbers == Array(1...numbers.count), "\(room)")
                }
            }
            #expect((down.accepted.compactMap { $0.json["attempt"].int }.max() ?? 0) > 5)
            // Begin before end, each pair with its own sequence.
            let pushes = Dictionary(grouping: tencent.accepted) { $0.json["sequence"].string ?? "" }
            #expect(Set(pushes.keys) == Set(sequences.map(String.init)))
            for (sequence, pair) in pushes {
                #expect(pair.map { $0.json["event_type"].int } == [1, 0], "\(sequence)")
                #expect(pair.last?.json["errcode"].int == 12)
                #expect(pair.first?.json["width"].int == 1_280)
                #expect(pair.first?.json["stream_param"].string == "sign=ours")
            }
            let byStream = Dictionary(grouping: tencent.accepted) { $0.json["stream_id"].string ?? "" }
            for (stream, deliveries) in byStream {
                let order = deliveries.compactMap { $0.json["sequence"].string.flatMap { Int64($0) } }
                #expect(order == order.sorted(), "\(stream)")
                #expect(deliveries.count == 6)
            }
            #expect(server.lines.all.filter { $0.contains("A webhook fails") }.count == 2)
            try await eventually("their lines") {
                server.lines.all.filter { $0.contains("A webhook works again") }.count == 2
            }
        }
        for receiver in [down, up, tencent] { await receiver.stop() }
    }

    private static let outageSeconds = ProcessInfo.processInfo.environment["EARSHOT_OUTAGE_SECONDS"].flatMap(Int.init)

    /// Rooms change all the while. `EARSHOT_OUTAGE_SECONDS=180` runs it at its true length, with the default settings.
    @Test(.timeLimit(.minutes(15))) func aTargetThatIsDownForMinutes() async throws {
        let seconds = Self.outageSeconds ?? 5
        let down = try WebhookReceiver.make()
        let up = try await WebhookReceiver.start()
        var usual = ServerConfig().webhooks
        // The default waits would be longer than the short form.
        if Self.outageSeconds == nil { (usual.retryIntervalMs, usual.maxRetryIntervalMs) = (1_000, 1_000) }
        let settings = usual
        try await TestServer.run({
            Self.configure(&$0, urls: [down.url, up.url], timeoutMs: settings.timeoutMs)
            ($0.webhooks.retryIntervalMs, $0.webhooks.maxRetryIntervalMs) = (settings.retryIntervalMs, settings.maxRetryIntervalMs)
            // Rooms that expire meanwhile would add events of their own.
            $0.rooms.policy.graceMs = 3_600_000
        }) { server in
            let rooms = server.server.parts.rooms
            for second in 0..<seconds {
                _ = try await rooms.newRoom("room\(second)")
                _ = try await Self.push(rooms, "cam\(second % 6)", session: UInt64(second))
                try await Task.sleep(for: .seconds(1))
            }
            let stored = try await rooms.events(after: 0, room: nil, limit: 10_000)
            try await eventually("the target that is up to have all") { up.accepted.count >= stored.count }
            #expect(down.deliveries.isEmpty)
            try await down.start()
            // The last one to fail is retried the longest interval later, and the rest follow.
            try await eventually("the other to have all", within: Double(settings.maxRetryIntervalMs) / 1_000 + 60) {
                down.accepted.count >= stored.count
            }
            for receiver in [down, up] {
                #expect(Set(receiver.deliveries.map(\.key)).count == stored.count)
                for (room, numbers) in Self.numbers(receiver.accepted) { #expect(numbers == Array(1...numbers.count), "\(room)") }
            }
            #expect(try await rooms.deliveries(state: .failed, room: nil, before: nil, limit: 1).isEmpty)
        }
        for receiver in [down, up] { await receiver.stop() }
    }

    @Test func anEndpointThatAnswers500() async throws {
        let receiver = try await WebhookReceiver.start { body, _ in
            WebhookReceiver.Answer(status: (body["attempt"].int ?? 0) < 3 ? 500 : 200)
        }
        try await TestServer.run({ Self.configure(&$0, urls: ["\(receiver.url)?key=secret"], intervalMs: 100) }) { server in
            let rooms = server.server.parts.rooms
            _ = try await rooms.newRoom("cam1")
            _ = try await rooms.apply(.close, to: "cam1", action: "close", by: Actor("test"))
            try await eventually("both") { receiver.accepted.count == 2 }
            #expect(receiver.deliveries.map { $0.json["number"].int } == [1, 1, 1, 2, 2, 2])
            #expect(receiver.deliveries.map { $0.json["attempt"].int } == [1, 2, 3, 1, 2, 3])
            #expect(receiver.deliveries.map(\.status) == [500, 500, 200, 500, 500, 200])
            #expect(Set(receiver.deliveries.prefix(3).map(\.key)).count == 1)
            #expect(Set(receiver.deliveries.map(\.key)).count == 2)
            #expect(Set(receiver.deliveries.prefix(3).compactMap { $0.headers["x-earshot-signature"] }).count == 3)
            for delivery in receiver.deliveries {
                #expect(delivery.method == "POST")
                #expect(delivery.path == "/hook?key=secret")
                #expect(delivery.json["idempotencyKey"].string == delivery.key)
                #expect(delivery.headers["x-earshot-event"] == delivery.json["kind"].string)
                let timestamp = delivery.headers["x-earshot-timestamp"] ?? ""
                let code = HMAC<SHA256>.authenticationCode(
                    for: Array("\(timestamp).".utf8) + delivery.body, using: SymmetricKey(data: Array("webhook-key-1".utf8)))
                #expect(delivery.headers["x-earshot-signature"] == "sha256=" + code.map { String(format: "%02x", $0) }.joined())
            }
            // Separated by the interval in the settings.
            let gap = receiver.deliveries[1].at - receiver.deliveries[0].at
            #expect(gap >= .milliseconds(95))
            var log: [WebhookDelivery] = []
            try await eventually("both in the log") {
                log = try await rooms.deliveries(state: .delivered, room: "cam1", before: nil, limit: 10)
                return log.count == 2
            }
            #expect(log.map(\.attempts) == [3, 3])
            #expect(log.map(\.lastStatus) == [200, 200])
            #expect(!server.lines.all.contains { $0.contains("secret") })
            // One line for the target; none for its attempts, nor for its next failure right after.
            #expect(server.lines.all.filter { $0.contains("A webhook fails") }.count == 1)
        }
        await receiver.stop()
    }

    @Test func givingUp() async throws {
        let receiver = try await WebhookReceiver.start { body, _ in
            WebhookReceiver.Answer(status: body["number"].int == 1 ? 404 : 200)
        }
        try await TestServer.run({ Self.configure(&$0, urls: [receiver.url], retryForMs: 3_000, intervalMs: 100) }) { server in
            let rooms = server.server.parts.rooms
            _ = try await rooms.newRoom("cam1")
            _ = try await rooms.apply(.close, to: "cam1", action: "close", by: Actor("test"))
            try await eventually("the second event") { receiver.accepted.count == 1 }
            let tries = receiver.deliveries.count - 1
            #expect(tries >= 2 && receiver.deliveries.map { $0.json["number"].int } == Array(repeating: 1, count: tries) + [2])
            let failed = try await rooms.deliveries(state: .failed, room: nil, before: nil, limit: 10)
            #expect(failed.count == 1)
            #expect(failed.first?.attempts == tries)
            #expect(failed.first?.lastStatus == 404)
            #expect(failed.first?.lastError?.contains("404") == true)
            #expect(await server.lines.comes("A delivery was given up", "room=cam1", "attempts=\(tries)"))
            #expect(server.lines.all.filter { $0.contains("A delivery was given up") }.count == 1)
            try await eventually("the counters") {
                let counters = server.server.parts.connections.counters.current
                return counters.webhooksGivenUp == 1 && counters.webhookAttemptsFailed == tries && counters.webhooksDelivered == 1
            }
            // Redelivered on request, under the same key.
            receiver.answer { _, _ in .ok }
            _ = try await rooms.redeliver(try failed.first.orThrow().id)
            try await eventually("it") { receiver.accepted.count == 2 }
            #expect(receiver.deliveries.last?.key == receiver.deliveries.first?.key)
        }
        await receiver.stop()
    }

    /// A target that accepts connections and never answers delays no other, and uses only its own places.
    @Test func anEndpointThatNeverAnswers() async throws {
        let dead = try await WebhookReceiver.start { _, _ in .never }
        let slow = try await WebhookReceiver.start { _, _ in WebhookReceiver.Answer(status: 200, delayMs: 50) }
        let good = try await WebhookReceiver.start()
        try await TestServer.run({ Self.configure(&$0, urls: [dead.url, slow.url, good.url], timeoutMs: 60_000) }) { server in
            let rooms = server.server.parts.rooms
            for room in 0..<40 { _ = try await rooms.newRoom("cam\(room)") }
            let begin = StallMeter.pool.start()
            try await eventually("the good one to have all") { good.accepted.count == 40 }
            try await eventually("the slow one to have all") { slow.accepted.count == 40 }
            // Nobody waited for the dead target's minute.
            #expect(await StallMeter.pool.passed(since: begin) < .seconds(40))
            // Rooms in parallel, but no more than there are places.
            #expect((2...8).contains(slow.mostInFlight), "\(slow.mostInFlight)")
            #expect(dead.mostInFlight == 8)
            #expect(dead.deliveries.isEmpty)
            // It does not delay the server's end either: see below.
        }
        for receiver in [dead, slow, good] { await receiver.stop() }
    }

    @Test func anAnswerThatComesTooLate() async throws {
        let receiver = try await WebhookReceiver.start { body, _ in
            WebhookReceiver.Answer(status: 200, delayMs: body["attempt"].int == 1 ? 60_000 : 0)
        }
        try await TestServer.run({ Self.configure(&$0, urls: [receiver.url], intervalMs: 100, timeoutMs: 1_000) }) { server in
            _ = try await server.server.parts.rooms.newRoom("cam1")
            try await eventually("the second try") { receiver.accepted.count == 1 }
            // When the machine stalls for a second, the second attempt is too late as well.
            let attempts = receiver.accepted.first?.json["attempt"].int ?? 0
            #expect(attempts >= 2)
            #expect(await server.lines.comes("A webhook fails", "http://127.0.0.1:\(receiver.port)"))
            try await eventually("the tries in the log") {
                let tries = try await server.server.parts.rooms.deliveries(state: .delivered, room: "cam1", before: nil, limit: 1)
                return tries.first?.attempts ?? 0 >= attempts
            }
        }
        await receiver.stop()
    }

    /// The next server sends deliveries that were in flight at the end, as if never tried.
    @Test func acrossARestart() async throws {
        let receiver = try await WebhookReceiver.start { _, _ in .never }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-hooks-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let configure: @Sendable (inout ServerConfig) -> Void = {
            Self.configure(&$0, urls: [receiver.url], timeoutMs: 60_000)
        }
        let end = try await TestServer.run(data: folder.path, configure) { server in
            _ = try await server.server.parts.rooms.newRoom("cam1")
            _ = try await server.server.parts.rooms.newRoom("cam2")
            try await eventually("both on their way") { receiver.mostInFlight == 2 }
            return StallMeter.pool.start()
        }
        #expect(await StallMeter.pool.passed(since: end) < .seconds(40), "attempts on their way, of a minute each, hold up the end")
        receiver.answer { _, _ in .ok }
        try await TestServer.run(data: folder.path, configure) { server in
            try await eventually("both") { receiver.accepted.count == 2 }
            #expect(receiver.accepted.map { $0.json["attempt"].int } == [1, 1])
            #expect(Set(receiver.accepted.compactMap { $0.json["roomId"].string }) == ["cam1", "cam2"])
        }
        await receiver.stop()
    }

    @Test func targetsThatAreNotAllowedOrNotThereAnyMore() async throws {
        let receiver = try await WebhookReceiver.start()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-hooks-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await TestServer.run(
            data: folder.path,
            {
                Self.configure(&$0, urls: [receiver.url])
                $0.outbound.allowPrivate = []
            }
        ) { server in
            _ = try await server.server.parts.rooms.newRoom("cam1")
            #expect(await server.lines.comes("A webhook fails", "outbound.allowPrivate"))
        }
        // The target is removed from the settings.
        try await TestServer.run(
            data: folder.path,
            {
                Self.configure(&$0, urls: [])
            }
        ) { server in
            let rooms = server.server.parts.rooms
            try await eventually("it to be given up") {
                try await rooms.deliveries(state: .failed, room: "cam1", before: nil, limit: 10).count == 1
            }
            #expect(await server.lines.comes("A delivery was given up", "no longer in the settings"))
        }
        #expect(receiver.deliveries.isEmpty)
        await receiver.stop()
    }
}
