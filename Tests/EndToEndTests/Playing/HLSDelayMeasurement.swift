import Foundation
import HLSCheck
import Media
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

/// The delay of low latency through a live server. A benchmark, not a test: it depends on the clock of a machine that may have other work, so
/// `Benchmarks/hls.sh` runs it alone, with `EARSHOT_MEASURE=1`. ``PartDelayTests`` tests the server's share with a clock of its own.
@Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["EARSHOT_MEASURE"] != nil, "measured by Benchmarks/hls.sh"))
struct HLSDelayMeasurement {
    /// Measures the time from a part's last picture to the playlist that lists it, less what the machine itself was late. The last part
    /// before the publisher falls silent is one of them.
    @Test(.timeLimit(.minutes(2))) func delayOfParts() async throws {
        let tags = try await HLSLatencyTests.media(16)
        try await TestServer.run({
            $0.hls.windowMs = 60_000
            $0.hls.segmentMs = 1_000
            // From the first picture on, so that the playlist's zero is known.
            $0.hls.always = true
        }) { server in
            let publisher = PacedPublisher(try await TagClient.publish(to: server, "live/cam1"))
            try await HLSLatencyTests.remuxing(server)
            async let pushed = publisher.send(tags)
            try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
            let live = try await LiveHLS(server, "cam1")
            var text = try await live.playlist().text
            let noise = Noise()
            let listening = Task { try await noise.listen(to: server) }
            defer { listening.cancel() }
            let begin = Int64(try publisher.sentAt.first.orThrow().ms)
            var listedMs = ListedParts.listedMs(text)
            // The delay of each part, in milliseconds.
            var late: [Int64] = []
            while true {
                let answer = try await live.playlist(ListedParts.next(after: text))
                let now = ContinuousClock.now
                guard answer.status == 200 else { break }
                text = answer.text
                for endMs in ListedParts.partEndsMs(text) where endMs > listedMs + 10 {  // but for rounding
                    let sent = try publisher.sent(before: begin + endMs).orThrow()
                    late.append(max(0, Int64((now - sent) / .milliseconds(1)) - (await noise.worstMs(from: sent, to: now))))
                    listedMs = endMs
                }
                if begin + listedMs >= 15_800 { break }
            }
            let lateness = try await pushed
            late.sort()
            #expect(late.count > 30, "\(late.count) parts")
            let (middle, most, last) = (late[late.count / 2], late[late.count * 9 / 10], late[late.count - 1])
            print("delay of \(late.count) parts: p50 \(middle) ms, p90 \(most) ms, max \(last) ms; \(lateness)")
            #expect(middle <= 250 && most <= 300 && last <= 1_000, "\(lateness); milliseconds: \(late)")
        }
    }

    /// The machine's own lateness: the excess time of a short sleep and a small request.
    private actor Noise {
        private var found: [(begin: ContinuousClock.Instant, end: ContinuousClock.Instant, ms: Int64)] = []

        /// Measures until cancelled.
        func listen(to server: TestServer) async throws {
            while !Task.isCancelled {
                let begin = ContinuousClock.now
                try await Task.sleep(for: .milliseconds(20))
                _ = try await HTTPAnswer.get("\(server.http)/healthz")
                let end = ContinuousClock.now
                self.found.append((begin, end, max(0, Int64((end - begin) / .milliseconds(1)) - 25)))
            }
        }

        /// In milliseconds.
        func worstMs(from begin: ContinuousClock.Instant, to end: ContinuousClock.Instant) -> Int64 {
            self.found.filter { $0.end >= begin && $0.begin <= end }.map(\.ms).max() ?? 0
        }
    }
}
