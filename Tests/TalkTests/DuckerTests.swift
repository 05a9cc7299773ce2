@testable import Talk
import Testing

@Suite struct DuckerTests {
    /// Ducking goes down within 40 ms and back up within 300 ms: 1,920 and 14,400 samples.
    @Test func theRampsEndInTime() {
        var ducker = Ducker()
        var down = [Float](repeating: 1, count: 1_920)
        ducker.process(&down, isActive: true)
        #expect(down[1_918] > Ducker.gain + 2e-4 && abs(down[1_919] - Ducker.gain) < 2e-4, "\(down[1_918]) \(down[1_919])")
        ducker.skip(14_399, isActive: false)
        #expect(!ducker.isIdle)
        ducker.skip(2, isActive: false)
        #expect(ducker.isIdle)
    }

    /// A ramp advances through a silent mix as it does through sound, and an idle ducker stays idle.
    @Test func silenceAdvancesTheRamp() {
        var (heard, skipped) = (Ducker(), Ducker())
        skipped.skip(1_000_000, isActive: false)
        #expect(skipped.isIdle)
        for isActive in [true, false] {
            var sound = [Float](repeating: 1, count: 1_000)
            heard.process(&sound, isActive: isActive)
            skipped.skip(1_000, isActive: isActive)
            var (one, other) = ([Float(1)], [Float(1)])
            heard.process(&one, isActive: isActive)
            skipped.process(&other, isActive: isActive)
            #expect(abs(one[0] - other[0]) < 2e-4 && one[0] < 1, "\(one) \(other)")
        }
    }
}
