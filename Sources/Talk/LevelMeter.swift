import LibC

/// The thresholds at which a voice counts as speaking. A plain value.
package struct LevelSettings: Sendable, Equatable {
    /// dBFS of a block's root mean square at or above which speaking begins.
    package var onDB: Float
    /// dBFS below which speaking ends, after ``hangBlocks``.
    package var offDB: Float
    /// Loud blocks in a row before speaking begins. A tap on the microphone is shorter.
    package var attackBlocks: Int
    /// Quiet blocks before speaking ends. Pauses between words and syllables are shorter.
    package var hangBlocks: Int

    package init(onDB: Float = -45, offDB: Float = -52, attackBlocks: Int = 2, hangBlocks: Int = 19) {
        self.onDB = onDB
        self.offDB = min(offDB, onDB)
        self.attackBlocks = max(1, attackBlocks)
        self.hangBlocks = max(0, hangBlocks)
    }
}

/// Measures how loud a voice is, and whether it speaks. One per talker; a plain value.
package struct LevelMeter: Sendable {
    /// The level reported for silence.
    package static let floorDB: Float = -100

    /// dBFS; a sine at full scale has −3. Rises at once and falls by 20 dB in 170 ms.
    package private(set) var rmsDB = Self.floorDB
    /// dBFS of the largest sample; falls as ``rmsDB`` does.
    package private(set) var peakDB = Self.floorDB
    package private(set) var isSpeaking = false
    private let settings: LevelSettings
    private var loud = 0
    private var quiet = 0

    /// dB that the reported levels fall per block.
    private static let fall: Float = 2.5

    package init(settings: LevelSettings = LevelSettings()) { self.settings = settings }

    /// Measures a tick's block; returns true when ``isSpeaking`` changed.
    package mutating func add(_ block: TalkBlock) -> Bool {
        var (sum, peak) = (Float(0), Float(0))
        if block.kind != .silent {
            (sum, peak) = Loudness.measure(block.samples)
        }
        let rms = Self.decibels((sum / Float(TalkFormat.blockSamples)).squareRoot())
        self.rmsDB = max(rms, self.rmsDB - Self.fall, Self.floorDB)
        self.peakDB = max(Self.decibels(peak), self.peakDB - Self.fall, Self.floorDB)
        self.loud = rms >= self.settings.onDB ? self.loud + 1 : 0
        self.quiet = rms < self.settings.offDB ? self.quiet + 1 : 0
        let was = self.isSpeaking
        if self.loud >= self.settings.attackBlocks { self.isSpeaking = true }
        if self.quiet > self.settings.hangBlocks { self.isSpeaking = false }
        return self.isSpeaking != was
    }

    /// dBFS of an amplitude.
    static func decibels(_ amplitude: Float) -> Float {
        amplitude > 1e-5 ? max(Self.floorDB, 20 * log10f(amplitude)) : Self.floorDB
    }
}
