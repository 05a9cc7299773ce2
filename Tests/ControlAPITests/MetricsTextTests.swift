import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// Prometheus' text format, and the page that scrapes share.
@Suite struct MetricsTextTests {
    @Test func labelsAreEscaped() {
        var text = MetricsText()
        text.sample("a", ["stream": "live/\"x\\\n"], 1.5)
        #expect(text.text == "a{stream=\"live/\\\"x\\\\\\n\"} 1.5\n")
        // Neither a line of its own nor steering of a terminal.
        var other = MetricsText()
        other.sample("a", ["stream": "b\r\nc \u{9B}1m\u{202E}"], 1)
        #expect(other.text == #"a{stream="b\\r\nc \\u{9b}1m\\u{202e}"} 1"# + "\n")
    }

    /// Buckets hold all that is below their end, in seconds.
    @Test func histogramsAddUp() throws {
        let figures = RequestFigures()
        for took in [500, 500, 1_000_000, 30_000_000] { figures.answered("r", .get, .ok, after: .microseconds(took)) }
        var text = MetricsText()
        text.histogram("h_seconds", "Help.", try #require(figures.current.times["r"]))
        let lines = text.text.split(separator: "\n")
        #expect(lines[..<2] == ["# HELP h_seconds Help.", "# TYPE h_seconds histogram"])
        #expect(lines[2] == "h_seconds_bucket{le=\"0.001\"} 2" && lines.contains("h_seconds_bucket{le=\"0.5\"} 2"))
        #expect(lines.contains("h_seconds_bucket{le=\"1\"} 3") && lines.contains("h_seconds_bucket{le=\"10\"} 3"))
        #expect(lines.suffix(3) == ["h_seconds_bucket{le=\"+Inf\"} 4", "h_seconds_sum 31.001", "h_seconds_count 4"])
    }

    @Test func numbers() {
        var text = MetricsText()
        for value in [1, 1.25, .infinity, -.infinity, .nan, 12_345_678_901_234] { text.sample("n", value) }
        #expect(text.text == "n 1\nn 1.25\nn +Inf\nn -Inf\nn NaN\nn 12345678901234\n")
    }

    private final class Count: Sendable {
        let value = Atomic<Int>(0)
    }

    /// However many ask at once, one page is made; and another one only when that is old.
    @Test func onePageForAll() async throws {
        let page = SharedPage(lifetime: .seconds(3_600))
        let made = Count()
        let gate = AsyncStream<Void>.makeStream()
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<50 {
                group.addTask {
                    try await page.bytes {
                        for await _ in gate.stream { break }
                        return [UInt8(made.value.add(1, ordering: .relaxed).newValue)]
                    }
                }
            }
            gate.continuation.yield()
            for try await bytes in group { #expect(bytes == [1]) }
        }
        #expect(try await page.bytes { [9] } == [1])
        #expect(try await SharedPage(lifetime: .zero).bytes { [9] } == [9])
    }

    /// A page that could not be made is not kept.
    @Test func failuresAreNotShared() async throws {
        struct Failure: Error {}
        let page = SharedPage(lifetime: .seconds(3_600))
        await #expect(throws: Failure.self) { try await page.bytes { throw Failure() } }
        #expect(try await page.bytes { [7] } == [7])
    }

    /// Methods and statuses are few, and routes are patterns: what peers send adds no series.
    @Test func requestsAreBounded() {
        let figures = RequestFigures()
        for index in 0..<1_000 {
            figures.answered("/api/v1/rooms/{roomId}", .init("M\(index)") ?? .get, .ok, after: .milliseconds(3))
        }
        #expect(figures.current.counts.count == 1)
        #expect(figures.current.times.count == 1)
    }
}
