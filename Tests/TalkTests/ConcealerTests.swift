import SignalCheck
import Testing

@testable import Talk

@Suite struct ConcealerTests {
    /// A period of 301 samples lies between two of the lags that are tried first. Any other repetition would be out of tune with the voice.
    @Test func theVoicesPeriodIsFoundToTheSample() {
        let tone = Voice.tone(48_000 / 301, 0.3)
        var concealer = Concealer()
        (0..<Concealer.past).map(tone).withUnsafeBufferPointer { concealer.begin(after: $0) }
        let errors = (0..<(3 * 301)).map { index in
            // It fades over 60 ms.
            abs(concealer.next() - tone(Concealer.past + index) * (1 - Float(index) / 2_880))
        }
        #expect(errors.allSatisfy { $0 < 0.003 }, "\(errors.max() ?? 0)")
    }
}
