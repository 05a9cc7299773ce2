import Access
import Foundation
import ServerConfiguration
import Testing

@testable import Notifications
@testable import Rooms

/// Content and timing of webhooks: the pure parts.
@Suite struct WebhookFormTests {
    static let keys = KeyRing(key: "url-key-1", backupKey: nil, jwtKey: "jwt-key-1", webhookKey: "webhook-key-1")
    static let sender = WebhookSender(
        key: "webhook-key-1", domain: "live.example.com", node: "192.0.2.1", rtmp: "rtmp://live.example.com",
        http: "http://live.example.com:8080", links: FileLinks(keys))
    static let earshot = WebhookTarget(url: "http://a.example/hook?secret=1", format: .earshot)
    static let tencent = WebhookTarget(url: "http://b.example/", format: .tencent)

    static func entry(
        _ id: Int64 = 1, _ kind: RoomEvent.Kind = .roomLive, target: WebhookTarget = earshot, attempts: Int = 0, queuedAt: Int64? = nil,
        data: String = #"{"state":"live"}"#,
        query: String? = nil
    ) -> WebhookDelivery {
        var entry = WebhookDelivery(
            id: id,
            event: RoomEvent(
                id: 7, number: 3, kind: kind, roomID: RoomID(stored: "cam1"), instance: 1, at: 1_795_255_200_000, data: data),
            target: target, state: .pending, attempts: attempts, dueAt: 0, lastStatus: nil, lastError: nil, lastAttemptAt: nil,
            durationMs: nil, deliveredAt: nil, queuedAt: queuedAt)
        entry.query = query
        return entry
    }

    private static func header(_ request: WebhookRequest, _ name: String) -> String? { request.headers.first { $0.name == name }?.value }

    @Test func theBodyAndItsSignature() throws {
        let request = try WebhookRequest(Self.entry(), sender: Self.sender, atSeconds: 1_795_255_200)
        #expect(
            request.body
                == #"{"idempotencyKey":"e7-1795255200000","id":7,"number":3,"kind":"room.live","roomId":"cam1","instance":1,"#
                + #""at":"2026-11-21T10:00:00.000Z","data":{"state":"live"},"attempt":1}"#)
        #expect(Self.header(request, "X-Earshot-Event") == "room.live")
        #expect(Self.header(request, "X-Earshot-Delivery") == "e7-1795255200000")
        #expect(Self.header(request, "X-Earshot-Timestamp") == "1795255200")
        // Python: hmac.new(b"webhook-key-1", b"1795255200." + body, hashlib.sha256).hexdigest()
        #expect(
            Self.header(request, "X-Earshot-Signature") == "sha256=9145763856828e45fe5b7b97b6f3512a5f0815ec617e0261e7e199775a696ecf")
        #expect(Self.header(request, "Content-Type")?.hasPrefix("application/json") == true)
    }

    @Test func aRetrySaysSoUnderTheSameKey() throws {
        let first = try WebhookRequest(Self.entry(), sender: Self.sender, atSeconds: 1_795_255_200)
        let second = try WebhookRequest(Self.entry(attempts: 1), sender: Self.sender, atSeconds: 1_795_255_260)
        #expect(second.body.hasSuffix(#""attempt":2}"#))
        #expect(Self.header(second, "X-Earshot-Delivery") == Self.header(first, "X-Earshot-Delivery"))
        #expect(Self.header(second, "X-Earshot-Signature") != Self.header(first, "X-Earshot-Signature"))
    }

    static let begin = #"""
        {"state":"live","app":"live","name":"cam1","slot":1,"sequence":42,"clientAddress":"198.51.100.7:50123",\#
        "parameters":"a=1&b=\"2\"","width":1280,"height":720}
        """#
    static let end = #"""
        {"app":"live","name":"cam1","slot":1,"sequence":42,"clientAddress":"[2001:db8::1]:50123","parameters":"","durationMs":61500,\#
        "end":"connectionLost","code":12}
        """#

    private static func tencentBody(_ kind: RoomEvent.Kind, _ data: String, query: String? = nil) throws -> [String: Any] {
        let request = try WebhookRequest(
            Self.entry(kind == .streamBegin ? 1 : 2, kind, target: Self.tencent, data: data, query: query), sender: Self.sender,
            atSeconds: 1_795_255_200)
        return try #require(try JSONSerialization.jsonObject(with: Data(request.body.utf8)) as? [String: Any])
    }

    @Test func streamBeginAsTencentTellsIt() throws {
        let body = try Self.tencentBody(.streamBegin, Self.begin)
        #expect(
            Set(body.keys) == [
                "event_type", "appid", "app", "appname", "stream_id", "channel_id", "event_time", "sequence", "node", "user_ip",
                "stream_param", "errcode", "errmsg", "set_id", "width", "height", "t", "sign",
            ])
        #expect(body["event_type"] as? Int == 1)
        #expect(body["app"] as? String == "live.example.com")
        #expect(body["appname"] as? String == "live")
        #expect(body["stream_id"] as? String == "cam1")
        #expect(body["channel_id"] as? String == "cam1")
        #expect(body["event_time"] as? Int == 1_795_255_200)
        #expect(body["sequence"] as? String == "42")
        #expect(body["user_ip"] as? String == "198.51.100.7")
        #expect(body["stream_param"] as? String == #"a=1&b="2""#)
        let whole = try Self.tencentBody(.streamBegin, Self.begin, query: "sign=ours")
        #expect(whole["stream_param"] as? String == "sign=ours")
        #expect(body["errcode"] as? Int == 0)
        #expect(body["width"] as? Int == 1_280)
        #expect(body["height"] as? Int == 720)
        #expect(body["t"] as? Int == 1_795_255_800)
        // printf %s webhook-key-11795255800 | md5sum
        #expect(body["sign"] as? String == "bcd36c7c4c4e0d671a8634e7a6481afc")
    }

    @Test func streamEndAsTencentTellsIt() throws {
        let body = try Self.tencentBody(.streamEnd, Self.end)
        #expect(body["event_type"] as? Int == 0)
        #expect(body["sequence"] as? String == "42")
        #expect(body["push_duration"] as? String == "61500")
        #expect(body["errcode"] as? Int == 12)
        #expect(body["errmsg"] as? String == "the connection broke")
        #expect(body["user_ip"] as? String == "2001:db8::1")
        #expect(body["width"] as? Int == 0)
    }

    @Test func whatTencentDoesNotKnow() {
        #expect(throws: WebhookBodyError.self) {
            try WebhookRequest(Self.entry(1, .roomLive, target: Self.tencent), sender: Self.sender, atSeconds: 0)
        }
        #expect(throws: WebhookBodyError.self) {
            try WebhookRequest(Self.entry(1, .streamBegin, target: Self.tencent, data: "{}"), sender: Self.sender, atSeconds: 0)
        }
    }

    /// A delivery that another version has queued in a format that only it knows.
    @Test func aFormatOfAnotherVersionIsNamedAsTheProblem() throws {
        let target = WebhookTarget(url: "http://c.example/", format: WebhookTarget.Format(rawValue: "zeppelin"))
        let problem = WebhookBodyError(description: "this version does not know the format \"zeppelin\" of the target")
        #expect(target.accepts(.roomLive))
        #expect(throws: problem) { try WebhookRequest(Self.entry(target: target), sender: Self.sender, atSeconds: 0) }
        let hook = StoredWebhook(
            id: 1, name: "c", url: target.url, format: target.format, kinds: [], rooms: [], isPaused: false, secret: "s", createdAt: 0)
        #expect(throws: problem) { try WebhookRequest(testing: hook, sender: Self.sender, atMs: 0) }
        #expect(WebhookTarget.Format.known.map(\.rawValue) == ["earshot", "tencent"])
    }

    // MARK: When

    @Test func placesAreEachTargetsOwn() {
        var schedule = WebhookSchedule()
        schedule.listAsked()
        let due =
            (1...20).map { Self.entry($0, target: Self.earshot) } + (21...22).map { Self.entry($0, target: Self.tencent) }
        let begun = schedule.listArrived(due)
        #expect(begun.map(\.id) == Array(1...Int64(WebhookSchedule.perTarget)) + [21, 22])
        // Full: nothing until one ends; the other target does not wait.
        schedule.listAsked()
        #expect(schedule.listArrived(due + [Self.entry(23, target: Self.tencent)]).map(\.id) == [23])
        schedule.ended(3)
        schedule.listAsked()
        #expect(schedule.listArrived(due.filter { $0.id != 3 }).map(\.id) == [9])
        #expect(schedule.count == WebhookSchedule.perTarget + 3)
    }

    /// A list that was read before the attempt ended still shows it.
    @Test func noneIsSentAgainFromAnOldList() {
        var schedule = WebhookSchedule()
        schedule.listAsked()
        #expect(schedule.listArrived([Self.entry(1)]).count == 1)
        schedule.listAsked()
        schedule.ended(1)
        #expect(schedule.listArrived([Self.entry(1)]).isEmpty)
        schedule.listAsked()
        #expect(schedule.listArrived([Self.entry(1)]).count == 1, "it is due again")
    }

    private static func verdict(
        _ status: Int?, _ attempts: Int, age ms: Int64 = 0, target: WebhookTarget = earshot, isHopeless: Bool = false,
        _ config: ServerConfig.Webhooks = ServerConfig().webhooks
    ) -> WebhookVerdict {
        WebhookVerdict(
            status: status, of: self.entry(target: target, attempts: attempts, queuedAt: 1_000), isHopeless: isHopeless, now: 1_000 + ms,
            config)
    }

    @Test func verdicts() {
        for status in [200, 201, 202, 204, 299] {
            #expect(Self.verdict(status, 0) == .delivered && Self.verdict(status, 99, age: .max / 2) == .delivered)
        }
        for status in [nil, 199, 300, 301, 404, 500] { #expect(Self.verdict(status, 0) == .retry(at: 11_000)) }
        #expect(Self.verdict(nil, 0, isHopeless: true) == .givenUp)
    }

    /// Waits double up to a quarter of an hour, and the last try is a day after the event.
    @Test func triesBackOffForADay() {
        var (age, attempts): (Int64, Int) = (0, 0)
        var waits: [Int64] = []
        while case .retry(let at) = Self.verdict(503, attempts, age: age) {
            waits.append((at - 1_000 - age) / 1_000)
            (age, attempts) = (at - 1_000, attempts + 1)
        }
        #expect(waits.prefix(9) == [10, 20, 40, 80, 160, 320, 640, 900, 900] && waits.dropLast().max() == 900)
        #expect(age == 86_400_000 && attempts == 102, "\(age) \(attempts)")
        // One that waited behind others for longer has one try.
        #expect(Self.verdict(503, 0, age: 86_400_000) == .givenUp)
        // Any number of tries, which a setting may allow.
        #expect(Self.verdict(503, 9_999, age: 5_000) == .retry(at: 906_000))
    }

    /// What a target refuses keeps its room's others waiting for an hour, not for a day.
    @Test(arguments: [(400, true), (404, true), (410, true), (408, false), (425, false), (429, false), (500, false), (301, false)])
    func refusedDeliveriesAreGivenUpEarlier(_ status: Int, _ isRefused: Bool) {
        #expect(Self.verdict(status, 5, age: 3_599_000) != .givenUp)
        #expect((Self.verdict(status, 5, age: 3_600_000) == .givenUp) == isRefused)
    }

    @Test func triesAreAsTheSettingsSay() {
        var config = ServerConfig().webhooks
        (config.retryForMs, config.retryIntervalMs, config.maxRetryIntervalMs) = (5_000, 2_000, 100)
        #expect(Self.verdict(nil, 0, age: 50, config) == .retry(at: 3_050), "a first wait longer than the longest stays")
        #expect(Self.verdict(nil, 3, age: 2_000, config) == .retry(at: 5_000))
        #expect(Self.verdict(nil, 4, age: 4_900, config) == .retry(at: 6_000))
        #expect(Self.verdict(nil, 5, age: 5_000, config) == .givenUp)
        config.retryForMs = 0
        #expect(Self.verdict(nil, 0, config) == .givenUp)
    }

    /// Twelve retries, a minute apart, whatever the settings say.
    @Test func tencentsTriesAreItsOwn() {
        var config = ServerConfig().webhooks
        config.retryForMs = 0
        for attempts in 0..<12 {
            #expect(Self.verdict(500, attempts, age: 7_000, target: Self.tencent, config) == .retry(at: 68_000))
        }
        #expect(Self.verdict(500, 12, target: Self.tencent, config) == .givenUp)
    }

    /// The URL after its origin is often the target's secret.
    @Test(arguments: [
        ("https://hooks.example.com/services/T0/secret?x=1", "https://hooks.example.com"),
        ("http://127.0.0.1:8080/a", "http://127.0.0.1:8080"),
        ("http://[::1]:9/a", "http://[::1]:9"), ("https://a.example", "https://a.example"), ("https://a.example?x", "https://a.example"),
        ("https://a.example#x", "https://a.example"), ("", ""), ("x/secret", "x"), ("https://", "https://"), ("https:///p", "https:///p"),
    ])
    func ofATargetOnlyTheOriginIsShown(_ url: String, _ shown: String) {
        #expect(WebhookLog.shown(url) == shown)
    }

    @Test(arguments: RoomEvent.Kind.allCases) func targetsTakeWhatTheirFormatHas(_ kind: RoomEvent.Kind) {
        let counterparts = ["stream.begin", "stream.end", "snapshot.taken"]
        let isTencents = counterparts.contains(kind.rawValue) || kind.rawValue.hasPrefix("record.") || kind.rawValue.hasPrefix("link.")
        #expect(Self.earshot.accepts(kind))
        #expect(Self.tencent.accepts(kind) == isTencents, "\(kind.rawValue)")
    }
}
