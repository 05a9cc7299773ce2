import SignalCheck
import Talk
import Testing

@Suite struct SmokeTests {
    @Test func silence() { #expect(TalkBlock.silence.samples.count == 1_024) }
}
