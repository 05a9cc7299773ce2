/// Reads the errors in the output of a Swift build.
package enum BuildLog {
    package struct Position: Hashable, Sendable {
        package let path: String
        package let line: Int

        package init(path: String, line: Int) {
            self.path = path
            self.line = line
        }
    }

    /// The places of compiler errors, from lines of the form `/path/File.swift:12:5: error: …`.
    package static func errors(in log: String) -> Set<Position> {
        Set(
            log.split(whereSeparator: \.isNewline).compactMap { line in
                guard let match = line.prefixMatch(of: #/(/[^:]+\.swift):(\d+):\d+: error: /#), let number = Int(match.2) else {
                    return nil
                }
                return Position(path: String(match.1), line: number)
            })
    }
}
