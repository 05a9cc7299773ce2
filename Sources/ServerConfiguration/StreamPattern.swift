package import Support

/// Names of streams, "app/name", in which `*` stands for any text. A value.
package struct StreamPattern: Sendable, Equatable {
    package let text: String
    /// The text between the stars, as UTF-8.
    private let parts: [[UInt8]]

    package static let longest = 512

    /// Throws for text that cannot name a stream.
    package init(_ text: String) throws(ValueProblem) {
        guard (1...Self.longest).contains(text.utf8.count), text.contains("/") || text == "*",
            text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
        else { throw ValueProblem("\"\(text.prefix(80))\" is no pattern of streams; expected e.g. live/stage or live/event-*") }
        self.text = text
        self.parts = text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map(Array.init)
    }

    /// Takes time in proportion to the path, times the pattern's parts at most.
    package func matches(_ path: String) -> Bool {
        var rest = Array(path.utf8)[...]
        guard let first = self.parts.first, let last = self.parts.last, rest.starts(with: first) else { return false }
        if self.parts.count == 1 { return rest.count == first.count }
        rest = rest.dropFirst(first.count)
        guard rest.count >= last.count, rest.suffix(last.count).elementsEqual(last) else { return false }
        rest = rest.dropLast(last.count)
        // The leftmost match of each part leaves the most text for the others.
        for part in self.parts.dropFirst().dropLast() where !part.isEmpty {
            guard let start = rest.indices.first(where: { rest[$0...].starts(with: part) }) else { return false }
            rest = rest[(start + part.count)...]
        }
        return true
    }
}

extension ConfigValueKind<[StreamPattern]> {
    package static var streamPatterns: Self {
        Self(
            expected: "a list of streams such as live/stage or live/event-*", isList: true,
            read: { (values: [String]) throws(ValueProblem) in
                guard values.count <= 64 else { throw ValueProblem("has \(values.count) patterns; expected 64 at most") }
                return try values.map { (value: String) throws(ValueProblem) in try StreamPattern(value) }
            },
            write: { $0.map(\.text) })
    }
}
