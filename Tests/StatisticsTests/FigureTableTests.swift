import Relay
import Support
import Testing

@testable import Statistics

/// Figures between samples, by a clock that the test sets.
@Suite struct FigureTableTests {
    private func figures(_ rows: [(subject: FigureKey.Subject, figures: Figures)]) -> [FigureKey.Subject: Figures] {
        Dictionary(uniqueKeysWithValues: rows.map { ($0.subject, $0.figures) })
    }

    /// Viewers between two samples count by their time, and the peak is exact.
    @Test func viewersCountByTheirTime() {
        var table = FigureTable(nowMs: 0)
        table.playBegan("live/a", viewers: 1, nowMs: 1_000)
        table.playBegan("live/a", viewers: 2, nowMs: 2_000)
        table.playEnded("live/a", viewers: 1, bytes: 500, nowMs: 5_000)
        table.beginSample()
        let first = FigureTable.Present(viewers: 1, bytesIn: 70, bytesOut: 300)
        let rows = self.figures(table.endSample(["live/a": first], connections: ["rtmp": 2], nowMs: 10_000))
        let expected = Figures(bytesIn: 70, bytesOut: 800, plays: 2, viewerMs: 1_000 + 6_000 + 5_000, peak: 2)
        #expect(rows[.stream("live/a")] == expected)
        #expect(rows[.everything] == expected)
        #expect(rows[.connections("rtmp")]?.peak == 2)
        table.beginSample()
        let second = FigureTable.Present(viewers: 1, bytesIn: 90, bytesOut: 350)
        let later = self.figures(table.endSample(["live/a": second], connections: ["rtmp": 2], nowMs: 20_000))
        #expect(later[.stream("live/a")] == Figures(bytesIn: 20, bytesOut: 50, plays: 0, viewerMs: 10_000, peak: 1))
        #expect(later[.connections("rtmp")] == Figures(viewerMs: 20_000, peak: 2))
    }

    /// How media came in is of the last sample only, and of streams only.
    @Test func arrivalsAreOfTheirSample() {
        var table = FigureTable(nowMs: 0)
        var arrival = StreamHistory.Sum()
        arrival.seconds = 10
        arrival.framesPerSecond = 250
        table.beginSample()
        var present = FigureTable.Present(viewers: 0, bytesIn: 10, bytesOut: 0, arrival: arrival)
        let rows = self.figures(table.endSample(["live/a": present], connections: [:], nowMs: 10_000))
        #expect(rows[.stream("live/a")]?.arrival == arrival)
        #expect(rows[.everything]?.arrival == StreamHistory.Sum() && rows[.everything]?.bytesIn == 10)
        present.arrival = StreamHistory.Sum()
        table.beginSample()
        #expect(self.figures(table.endSample(["live/a": present], connections: [:], nowMs: 20_000)).isEmpty)
    }

    /// A session that ends while the loops are asked is counted once, now or in the next sample.
    @Test func whatEndsDuringASampleCountsOnce() {
        var table = FigureTable(nowMs: 0)
        table.playBegan("live/a", viewers: 1, nowMs: 0)
        table.beginSample()
        _ = table.endSample(["live/a": .init(viewers: 1, bytesIn: 0, bytesOut: 1_000)], connections: [:], nowMs: 10_000)
        table.beginSample()
        // It ends after the sample began; its loop no longer knows it.
        table.playEnded("live/a", viewers: 0, bytes: 1_500, nowMs: 20_000)
        let during = self.figures(table.endSample([:], connections: [:], nowMs: 20_000))
        #expect(during[.stream("live/a")]?.bytesOut == 0)
        table.beginSample()
        let next = self.figures(table.endSample([:], connections: [:], nowMs: 30_000))
        #expect(next[.stream("live/a")]?.bytesOut == 500)
    }

    @Test func streamsWithoutAnybodyAreForgotten() {
        var table = FigureTable(nowMs: 0)
        table.published("live/a", room: "r1", nowMs: 0)
        table.pushEnded("live/a", bytes: 10, nowMs: 5_000)
        #expect(table.room(of: "live/a") == "r1")
        var total: UInt64 = 0
        for second in 1...10 {
            table.beginSample()
            let nowMs = Int64(second) * 10_000
            total += self.figures(table.endSample([:], connections: [:], nowMs: nowMs))[.stream("live/a")]?.bytesIn ?? 0
        }
        #expect(total == 10 && table.count == 0)
    }

    @Test func streamsAreBounded() {
        var table = FigureTable(nowMs: 0)
        for index in 0..<FigureTable.mostStreams + 5 { table.playBegan("live/\(index)", viewers: 1, nowMs: 0) }
        #expect(table.count == FigureTable.mostStreams && table.overflows == 5)
        table.beginSample()
        // The sum has them all the same.
        #expect(self.figures(table.endSample([:], connections: [:], nowMs: 1))[.everything]?.plays == UInt64(FigureTable.mostStreams + 5))
    }
}
