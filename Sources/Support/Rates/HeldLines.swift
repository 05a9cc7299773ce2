package import Logging

extension Logger {
    /// Writes a line of a kind that may be frequent. `held`: how many like it were held back before it.
    package func write(_ line: Message, _ metadata: Metadata = [:], at level: Level = .info, heldBack held: Int) {
        var metadata = metadata
        if held > 0 { metadata["linesHeldBack"] = "\(held)" }
        self.log(level: level, line, metadata: metadata)
    }
}
