package import Support

/// Prints one item in full: a name and value per line. Values are escaped when added.
package struct Facts {
    private var pairs: [(name: String, value: String)] = []

    package init() {}

    /// Omits nil and empty values.
    package mutating func add(_ name: String, _ value: String?) {
        if let value, !value.isEmpty { self.pairs.append((name, DisplayText.escaped(value))) }
    }

    /// "2026-11-21T10:00:00Z (3m12s ago)"; omitted when there is no time.
    package mutating func add(_ name: String, time: JSONValue?) {
        self.add(name, time.string.map { text in "\(TimeText.short(text))\(TimeText.relative(text).map { " (\($0))" } ?? "")" })
    }

    package func print() throws {
        let width = self.pairs.map(\.name.count).max() ?? 0
        for (name, value) in self.pairs {
            let space = String(repeating: " ", count: width - name.count + 2)
            try Console.print(Console.usesColour ? "\u{1B}[1m\(name)\u{1B}[0m\(space)\(value)" : "\(name)\(space)\(value)")
        }
    }
}

/// Formats the API's times for people.
package enum TimeText {
    /// The time without milliseconds.
    package static func short(_ text: String) -> String {
        guard let dot = text.lastIndex(of: "."), text.hasSuffix("Z") else { return text }
        return text[..<dot] + "Z"
    }

    /// The age of a time; nil for an invalid one, "0s" for a future one.
    package static func age(_ time: JSONValue?) -> String? {
        self.milliseconds(since: time).map { Span.short(milliseconds: $0) }
    }

    /// "3m12s ago", "in 11h58m".
    package static func relative(_ text: String) -> String? {
        self.milliseconds(since: .string(text)).map {
            $0 < 0 ? "in \(Span.short(milliseconds: -$0))" : "\(Span.short(milliseconds: $0)) ago"
        }
    }

    private static func milliseconds(since time: JSONValue?) -> Int64? {
        time.string.flatMap(Moment.init(argument:)).map { Moment.now.milliseconds - $0.milliseconds }
    }

    /// Seconds in the style of list ages: "30s", "1h30m".
    package static func duration(seconds: JSONValue?) -> String? {
        self.span(seconds).map { Span.short(milliseconds: $0.milliseconds) }
    }

    /// Seconds in the style of the command line: "90s", "12h".
    package static func exactDuration(seconds: JSONValue?) -> String? { self.span(seconds)?.description }

    private static func span(_ seconds: JSONValue?) -> Span? {
        seconds.number.flatMap { $0.isFinite && $0 >= 0 && $0 < 1e12 ? Span(milliseconds: Int64($0 * 1_000)) : nil }
    }
}
