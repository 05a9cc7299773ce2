/// The reasons why a connection's input waits in its decoder, and whether its socket is read. A value.
struct InputGate {
    /// A connect, publish or play is being decided; later messages wait.
    var isDeciding = false
    /// The connection has used up this turn's messages; the rest waits for the next turn.
    var isYielding = false
    /// Enough input waits for a decision.
    var isFull = false
    /// The channel's autoRead, as last set.
    private var isReading = true

    /// The new value for autoRead; nil if autoRead already has it.
    mutating func changeOfReading() -> Bool? {
        let reads = !self.isYielding && !self.isFull
        guard reads != self.isReading else { return nil }
        self.isReading = reads
        return reads
    }
}
