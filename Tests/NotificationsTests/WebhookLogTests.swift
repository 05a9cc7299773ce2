import Logging
import Rooms
import ServerTestSupport
import Testing

@testable import Notifications

/// Names of webhooks, and log lines about one that does not answer.
@Suite struct WebhookLogTests {
    @Test func anIdIsOfTheURLAndTellsNothingOfIt() {
        let target = WebhookTarget(url: "https://hooks.example.com/secret?key=1", format: .earshot)
        #expect(target.id == WebhookTarget(url: "https://hooks.example.com/secret?key=1", format: .earshot).id)
        #expect(target.id != WebhookTarget(url: "https://hooks.example.com/secret?key=2", format: .earshot).id)
        #expect(target.id != WebhookTarget(url: "https://hooks.example.com/secret?key=1", format: .tencent).id)
        // printf %s 'https://hooks.example.com/secret?key=1' | sha256sum | cut -c 1-8
        #expect(target.id == "earshot-\(Self.hashOfExample)")
    }

    private static let hashOfExample = "d190aa0a"

    private static func log() -> (WebhookLog, LogLines) {
        let lines = LogLines()
        return (WebhookLog(Logger(label: "earshot", factory: { _ in CollectingLogHandler(lines: lines) })), lines)
    }

    /// Days of silence make a few lines, which hold the counts.
    @Test func aTargetThatNeverAnswersDoesNotFillTheLog() throws {
        let (log, lines) = Self.log()
        let target = WebhookFormTests.earshot
        let begin: Int64 = 1_000_000
        let day: Int64 = 86_400_000
        var attempts = 0
        // A delivery every ten seconds, each given up at once.
        for now in stride(from: begin, to: begin + 3 * day, by: 10_000) {
            attempts += 1
            log.attempted(WebhookFormTests.entry(target: target), .givenUp, problem: "no answer within 20 s", now: now)
        }
        #expect(attempts > 25_000)
        let failing = lines.all.filter { $0.contains("A webhook still fails") }
        #expect(lines.all.first?.contains("A webhook fails") == true && lines.all.filter { $0.contains("webhook fails") }.count == 1)
        // After one, two, four … minutes, then each hour.
        #expect((70...80).contains(failing.count), "\(failing.count)")
        #expect(lines.all.filter { $0.contains("given up") }.count <= failing.count + 1)
        #expect(lines.all.count < 170, "\(lines.all.count)")
        #expect(failing[0].contains("failed=7 ") && failing[0].contains("givenUp=7") && failing[0].contains("seconds=60"), "\(failing[0])")
        #expect(lines.all.allSatisfy { $0.contains("target=\(target.id)") && !$0.contains("secret") })
        #expect(log[target.id]?.failed == attempts && log[target.id]?.isFailing == true)
        log.attempted(WebhookFormTests.entry(target: target), .delivered, problem: nil, now: begin + 3 * day)
        #expect(lines.all.last?.contains("A webhook works again") == true)
        #expect(lines.all.last?.contains("failed=\(attempts) ") == true && lines.all.last?.contains("seconds=259200") == true)
        log.attempted(WebhookFormTests.entry(target: target), .delivered, problem: nil, now: begin + 3 * day + 1)
        #expect(lines.all.filter { $0.contains("works again") }.count == 1)
    }

    /// Failures one after another are an outage; one between successes may be its delivery's own.
    @Test func anOutageIsMoreThanOneFailure() {
        let (log, _) = Self.log()
        let target = WebhookFormTests.earshot
        func attempt(_ verdict: WebhookVerdict) {
            log.attempted(WebhookFormTests.entry(target: target), verdict, problem: "no answer within 20 s", now: 1_000)
        }
        #expect(log.isInOutage(target.id), "nothing is known of the time before the start")
        attempt(.delivered)
        #expect(!log.isInOutage(target.id))
        attempt(.retry(at: 0))
        #expect(!log.isInOutage(target.id))
        attempt(.retry(at: 0))
        #expect(log.isInOutage(target.id))
        attempt(.delivered)
        attempt(.retry(at: 0))
        #expect(!log.isInOutage(target.id), "counted anew")
    }

    /// A target that comes and goes gets no more lines than one that stays away.
    @Test func aTargetThatFlapsDoesNotFillItEither() {
        let (log, lines) = Self.log()
        for second in 0..<7_200 {
            let verdict: WebhookVerdict = second % 2 == 0 ? .retry(at: 0) : .delivered
            log.attempted(WebhookFormTests.entry(), verdict, problem: "HTTP status 500; expected 2xx", now: Int64(second) * 1_000)
        }
        // A failure and a recovery at 0, 1, 3, 7, 15, 31, 63 minutes.
        #expect((10...16).contains(lines.all.count), "\(lines.all.count)")
        // Hours without failure: the next failure is news at once.
        let before = lines.all.count
        log.attempted(WebhookFormTests.entry(), .retry(at: 0), problem: "x", now: 40_000_000)
        log.attempted(WebhookFormTests.entry(), .retry(at: 0), problem: "x", now: 40_060_000)
        #expect(lines.all.count == before + 2)
    }

    /// Too many that wait are told once, then at growing intervals with what was given up since.
    @Test func aBacklogIsToldOnce() {
        let (log, lines) = Self.log()
        let target = WebhookFormTests.earshot
        for second in 0..<100 { log.gaveUpSurplus(5, target, limit: 100_000, now: Int64(second) * 1_000) }
        #expect(lines.all.count == 2 && lines.all.allSatisfy { $0.contains("Too many deliveries wait") && !$0.contains("secret") })
        #expect(lines.all[0].contains("givenUp=5 ") && lines.all[0].contains("limit=100000"), "\(lines.all[0])")
        #expect(lines.all[1].contains("givenUp=300 "), "\(lines.all[1])")
        #expect(log[target.id]?.givenUp == 500)
    }

    @Test func whatWaitsIsCountedByTarget() {
        let (log, _) = Self.log()
        log.counted([(WebhookFormTests.earshot, 3), (WebhookFormTests.tencent, 9)])
        log.counted([(WebhookFormTests.tencent, 8)])
        #expect(log.waiting.map(\.target) == [WebhookFormTests.earshot.id, WebhookFormTests.tencent.id])
        #expect(log.waiting.map(\.count) == [0, 8])
    }

    @Test func targetsDoNotHoldEachOthersLinesBack() {
        let (log, lines) = Self.log()
        log.attempted(WebhookFormTests.entry(), .retry(at: 0), problem: "x", now: 0)
        log.attempted(WebhookFormTests.entry(target: WebhookFormTests.tencent), .retry(at: 0), problem: "x", now: 0)
        #expect(lines.all.filter { $0.contains("A webhook fails") }.count == 2)
    }
}
