import Media
import Testing

@testable import Relay

@Suite struct TimelineTests {
    @Test func firstPublisherStandsAsItIs() {
        var timeline = Timeline()
        timeline.publisherChanged()
        #expect(timeline.lastTimestamp == nil)
        #expect(timeline.map(0, .video, isCoded: false, nowMs: 10) == 0)
        #expect(timeline.lastTimestamp == nil, "a header's 0 is not the stream's time")
        #expect(timeline.map(3_600_000, .video, isCoded: true, nowMs: 10) == 3_600_000)
        #expect(timeline.map(3_599_990, .video, isCoded: true, nowMs: 11) == 3_600_000, "no time goes back")
        #expect(timeline.lastTimestamp == 3_600_000)
    }

    @Test func returnGoesOnAfterTheTimeAway() {
        var timeline = Timeline()
        #expect(timeline.map(500, .video, isCoded: true, nowMs: 1_000) == 500)
        timeline.publisherChanged()
        #expect(timeline.map(0, .video, isCoded: false, nowMs: 4_000) == 3_500, "headers are stamped with the moment of return")
        #expect(timeline.lastTimestamp == 500)
        #expect(timeline.map(70_000, .video, isCoded: true, nowMs: 4_000) == 3_500)
        #expect(timeline.map(70_040, .video, isCoded: true, nowMs: 4_040) == 3_540)
        #expect(timeline.lastTimestamp == 3_540)
    }

    @Test func returnAtTheSameMomentStillMovesOn() {
        var timeline = Timeline()
        _ = timeline.map(500, .video, isCoded: true, nowMs: 1_000)
        timeline.publisherChanged()
        #expect(timeline.map(0, .video, isCoded: true, nowMs: 1_000) == 501)
    }

    @Test func aHeaderAtTheSameMomentMovesOnToo() {
        var timeline = Timeline()
        _ = timeline.map(500, .video, isCoded: true, nowMs: 1_000)
        timeline.publisherChanged()
        #expect(timeline.map(0, .video, isCoded: false, nowMs: 1_000) == 501)
    }

    /// After the return audio arrives first and continues. The first picture dates from the return itself.
    @Test func aPictureOfTheReturnsMomentKeepsIt() {
        var timeline = Timeline()
        _ = timeline.map(500, .video, isCoded: true, nowMs: 1_000)
        timeline.publisherChanged()
        #expect(timeline.map(70_000, .audio, isCoded: true, nowMs: 2_000) == 1_500)
        #expect(timeline.map(70_040, .audio, isCoded: true, nowMs: 2_040) == 1_540)
        #expect(timeline.map(70_000, .video, isCoded: true, nowMs: 2_050) == 1_500)
    }

    /// After the return audio arrives first. The first picture's own time is a little earlier.
    @Test func laggingTrackDoesNotGoBackBehindTheReturn() {
        var timeline = Timeline()
        _ = timeline.map(500, .video, isCoded: true, nowMs: 1_000)
        timeline.publisherChanged()
        #expect(timeline.map(8_000, .audio, isCoded: true, nowMs: 1_001) == 501)
        #expect(timeline.map(7_960, .video, isCoded: true, nowMs: 1_001) == 501)
        #expect(timeline.map(7_990, .video, isCoded: true, nowMs: 1_001) == 502, "no two frames of a kind have one time")
        #expect(timeline.map(0, .video, isCoded: false, nowMs: 1_001) == 501, "nor does a header that says 0")
        #expect(timeline.map(8_010, .video, isCoded: true, nowMs: 1_010) == 511)
    }

    /// A device returns with times that continue, and then its clock restarts.
    @Test func farBackBehindTheReturnGoesOn() {
        var timeline = Timeline()
        _ = timeline.map(3_600_000, .video, isCoded: true, nowMs: 1_000)
        timeline.publisherChanged()
        #expect(timeline.map(3_601_000, .video, isCoded: true, nowMs: 2_000) == 3_601_000)
        #expect(timeline.map(0, .video, isCoded: true, nowMs: 2_040) == 3_601_040)
        #expect(timeline.map(40, .video, isCoded: true, nowMs: 2_080) == 3_601_080)
    }

    @Test func secondReturnCountsFromTheFirst() {
        var timeline = Timeline()
        _ = timeline.map(100, .video, isCoded: true, nowMs: 0)
        timeline.publisherChanged()
        #expect(timeline.map(0, .video, isCoded: true, nowMs: 50) == 150)
        timeline.publisherChanged()
        timeline.publisherChanged()
        #expect(timeline.map(1 << 40, .video, isCoded: true, nowMs: 60) == 160)
    }
}
