package import Media
package import NIOCore

/// What a device with a bad clock sends: pictures at 25 a second and AAC at 44.1 kHz, in the order of their arrival, with the moments that they are of.
package struct DeviceClock: Sendable, CustomStringConvertible {
    /// One coded frame.
    package struct Shot: Sendable {
        package let kind: Frame.Kind
        package let arrivalMs: Int64
        /// When it was recorded, in milliseconds since the beginning; of a picture, its place in the order of decoding.
        package let momentMs: Double
        /// As sent.
        package let stamp: UInt32
        package let compositionMs: Int32
        package let isKeyframe: Bool

        /// A picture's place in the order of showing; milliseconds.
        package var shownMs: Double { self.momentMs + Double(self.compositionMs) }

        package var payload: ByteBuffer {
            guard self.kind == .video else { return ByteBuffer(bytes: [0xAF, 1, 0x21, 0, 0x49, 0x90, 2, 0x19, 0, 0x23, 0x80]) }
            var payload = ByteBuffer(bytes: [self.isKeyframe ? 0x17 : 0x27, 1])
            payload.writeBytes([16, 8, 0].map { UInt8(truncatingIfNeeded: self.compositionMs >> $0) })
            payload.writeBytes([0, 0, 0, 6, self.isKeyframe ? 0x65 : 0x41, 0x88, 0x84, 0x5A, 0x5A, 0x5A])
            return payload
        }
    }

    /// Milliseconds either way, of each timestamp by itself.
    package var jitterMs = 0
    /// Frames of sound that have one timestamp and arrive together.
    package var block = 1
    /// Where each kind's clock begins; milliseconds.
    package var soundStartMs: Int64 = 0
    package var pictureStartMs: Int64 = 0
    /// Pictures are stamped in the order of decoding; those shown earlier have negative composition times.
    package var hasNegativeComposition = false
    /// Moments at which both clocks are set back, and by how much. Milliseconds.
    package var stepsBack: [(atMs: Double, byMs: Double)] = []

    package init() {}

    /// Any faults, together.
    package init(any random: inout TestRandom, seconds: Int) {
        let hour: Int64 = 3_600_000
        self.jitterMs = [0, 5, 20].randomElement(using: &random) ?? 0
        self.block = Int.random(in: 1...4, using: &random)
        self.hasNegativeComposition = Bool.random(using: &random)
        // From 0, from a time of day, or from just before the 32 bits' end.
        let beforeEnd = (1 << 32) - Int64.random(in: 0...20_000, using: &random)
        let starts: [Int64] = [0, hour * Int64.random(in: 1...20, using: &random), beforeEnd]
        self.soundStartMs = starts.randomElement(using: &random) ?? 0
        let differences: [Int64] = [0, 0, 8 * hour, -2 * hour, 23 * hour]
        let apart = differences.randomElement(using: &random) ?? 0
        self.pictureStartMs = max(0, self.soundStartMs + apart)
        for second in stride(from: 6, to: seconds - 6, by: 8) where Bool.random(using: &random) {
            let atMs = Double(second * 1_000) + Double.random(in: 0...999, using: &random)
            self.stepsBack.append((atMs, Double.random(in: 1...900, using: &random)))
        }
    }

    package var description: String {
        "jitter \(self.jitterMs), blocks of \(self.block), sound from \(self.soundStartMs), pictures from \(self.pictureStartMs)"
            + (self.hasNegativeComposition ? ", negative composition" : "") + ", back \(self.stepsBack)"
    }

    /// Whether a clock was set back in the moments before: how far shows to within the jitter only.
    package func hasJustStepped(_ shot: Shot) -> Bool {
        self.stepsBack.contains { (-100...300).contains(shot.momentMs - $0.atMs) }
    }

    package func shots(seconds: Int, _ random: inout TestRandom) -> [Shot] {
        var shots: [Shot] = []
        func stamp(_ startMs: Int64, _ momentMs: Double) -> UInt32 {
            let back = self.stepsBack.reduce(0) { momentMs >= $1.atMs ? $0 + $1.byMs : $0 }
            let jitter = Int64.random(in: Int64(-self.jitterMs)...Int64(self.jitterMs), using: &random)
            // A device's clock does not begin before its zero.
            return TimestampUnwrapper.wrap(max(0, startMs + Int64((momentMs - back).rounded()) + jitter))
        }
        for index in 0..<(seconds * 44_100 / 1_024) {
            let first = index / self.block * self.block
            let (ms, arrival) = (Self.soundMs(index), Self.soundMs(first + self.block - 1))
            shots.append(
                Shot(
                    kind: .audio, arrivalMs: Int64(arrival), momentMs: ms, stamp: 0, compositionMs: 0, isKeyframe: false))
        }
        for index in 0..<(seconds * 25) {
            // Decoded: 0, then 3 1 2, 6 4 5, …
            let composition = !self.hasNegativeComposition || index == 0 ? 0 : index % 3 == 1 ? 80 : -40
            shots.append(
                Shot(
                    kind: .video, arrivalMs: Int64(index * 40), momentMs: Double(index * 40), stamp: 0, compositionMs: Int32(composition),
                    isKeyframe: index == 0 || index % 48 == 1))
        }
        shots.sort { ($0.arrivalMs, $0.momentMs) < ($1.arrivalMs, $1.momentMs) }
        var blockStamp: UInt32 = 0
        var sounds = 0
        return shots.map { shot in
            let own: UInt32
            if shot.kind == .video {
                own = stamp(self.pictureStartMs, shot.momentMs)
            } else {
                if sounds % self.block == 0 { blockStamp = stamp(self.soundStartMs, shot.momentMs) }
                sounds += 1
                own = blockStamp
            }
            return Shot(
                kind: shot.kind, arrivalMs: shot.arrivalMs, momentMs: shot.momentMs, stamp: own, compositionMs: shot.compositionMs,
                isKeyframe: shot.isKeyframe)
        }
    }

    /// The beginning of a frame of sound; milliseconds.
    package static func soundMs(_ index: Int) -> Double { Double(index) * 1_024_000 / 44_100 }
}
