import Testing

@testable import WebRTC

@Suite struct TrackClockTests {
    private static func ntp(_ ms: Int64) -> UInt64 {
        let seconds = UInt64(2_208_988_800 + ms / 1_000)
        return seconds << 32 | (UInt64(ms % 1_000) << 32) / 1_000
    }

    /// A track begins when its first packet comes, and goes on by its own clock, past the end of 32 bits.
    @Test func aTrackAlone() {
        var clock = TrackClock(rate: 90_000)
        let first = UInt32.max - 90_000 + 1
        #expect(clock.place(first, arrivedMs: 40, following: nil) == 40)
        #expect(clock.place(first &+ 90_000, arrivedMs: 2_000, following: nil) == 1_040)
        #expect(clock.place(first &+ 180_000, arrivedMs: 2_000, following: nil) == 2_040)
        // Out of order.
        #expect(clock.place(first &+ 90_000, arrivedMs: 2_000, following: nil) == 1_040)
    }

    /// Pictures that came 120 ms late, as their first packets are more, are brought to the sound's place, a little for each.
    @Test func oneFollowsTheOther() {
        var sound = TrackClock(rate: 48_000)
        var video = TrackClock(rate: 90_000)
        #expect(sound.place(1_000, arrivedMs: 0, following: nil) == 0)
        #expect(video.place(5_000, arrivedMs: 120, following: nil) == 120)
        // Both were taken at the same moment.
        sound.note(ntp: Self.ntp(1_000_000), time: 1_000)
        video.note(ntp: Self.ntp(1_000_000), time: 5_000)
        var last: Int64 = 120
        for picture in UInt32(1)...250 {
            let ms = video.place(5_000 + picture * 3_600, arrivedMs: 0, following: sound.reference)
            #expect((39...40).contains(ms - last), "\(picture): \(ms - last)")
            last = ms
        }
        #expect(last == 250 * 40)
    }

    /// What is too far off for that moves at once.
    @Test func aLeap() {
        var sound = TrackClock(rate: 48_000)
        var video = TrackClock(rate: 90_000)
        _ = sound.place(0, arrivedMs: 0, following: nil)
        _ = video.place(0, arrivedMs: 0, following: nil)
        sound.note(ntp: Self.ntp(1_000_000), time: 0)
        video.note(ntp: Self.ntp(1_003_000), time: 0)
        #expect(video.place(3_600, arrivedMs: 0, following: sound.reference) == 3_040)
    }
}
