/// Reads the output of a swift-testing run.
package enum TestLog {
    /// The first test that failed, from a line like `✘ Test name() recorded an issue at File.swift:1:2: …`.
    package static func firstFailure(in log: String) -> String? {
        for line in log.split(whereSeparator: \.isNewline) {
            guard let match = line.firstMatch(of: /Test (.+?) recorded an issue/) else { continue }
            return String(match.1)
        }
        return nil
    }

    /// The number of tests, from the last line `✔ Test run with 12 tests … passed after …`; nil unless all passed.
    package static func passed(in log: String) -> Int? {
        for line in log.split(whereSeparator: \.isNewline).reversed() {
            guard let match = line.firstMatch(of: /Test run with (\d+) tests? .*passed/) else { continue }
            return Int(match.1)
        }
        return nil
    }
}
