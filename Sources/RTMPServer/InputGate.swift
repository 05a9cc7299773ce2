/// Why a connection's input waits in its decoder, and whether its socket is read. A value.
struct InputGate {
    /// A connect, publish or play is being decided; later messages wait.
    var isDeciding = false
    /// This turn's messages are used up; the rest waits for the next turn.
    var isYielding = false
    /// Enough waits for a decision.
    var isFull = false
    /// The channel's autoRead, as it was set last.
    private var isReading = true

    /// The value that autoRead must get; nil if it has it already.
    mutating func changeOfReading() -> Bool? {
        let reads = !self.isYielding && !self.isFull
        guard reads != self.isReading else { return nil }
        self.isReading = reads
        return reads
    }
}
