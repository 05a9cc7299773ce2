/// A trace in one line of text, for the log: the newest entries that fit, oldest first.
///
///     -2.1s < connect #1 app=live | -2.1s > _result #1 … | -0.4s < 61 messages: 60 video, 1 audio, 84213 bytes | -0.0s . closed …
package enum CompactTrace {
    /// Bytes of one line.
    package static let longest = 2_048
    private static let separator = " | "

    package static func text(_ entries: [TraceEntry], nowMs: Int64, longest: Int = longest) -> String {
        var parts: [String] = []
        var length = 0
        var rest = entries[...]
        while let newest = rest.last {
            var part: String
            if newest.kind == .message {
                // A run of messages is one part: the run matters, not each message.
                let run = rest.suffix(while: { $0.kind == .message })
                rest.removeLast(run.count)
                part = run.count == 1 ? Self.one(newest, nowMs) : Self.many(run, nowMs)
            } else {
                rest.removeLast()
                part = Self.one(newest, nowMs)
            }
            length += part.utf8.count + (parts.isEmpty ? 0 : Self.separator.utf8.count)
            guard length <= longest else { break }
            parts.append(part)
        }
        return parts.reversed().joined(separator: Self.separator)
    }

    private static func one(_ entry: TraceEntry, _ nowMs: Int64) -> String {
        var words = [self.ago(entry, nowMs), self.sign(entry.direction), entry.name]
        if let transaction = entry.transaction, transaction != 0 { words.append("#\(transaction)") }
        if let streamID = entry.streamID, entry.kind == .message || streamID != 0 { words.append("on \(streamID)") }
        if let header = entry.header { words.append(contentsOf: ["\(header.length) bytes at \(header.timestamp)"] + header.flagNames) }
        if !entry.text.isEmpty { words.append(entry.text) }
        return words.joined(separator: " ")
    }

    private static func many(_ run: ArraySlice<TraceEntry>, _ nowMs: Int64) -> String {
        guard let newest = run.last else { return "" }
        var counts: [(name: String, count: Int)] = []
        for entry in run {
            if let index = counts.firstIndex(where: { $0.name == entry.name }) {
                counts[index].count += 1
            } else {
                counts.append((entry.name, 1))
            }
        }
        let kinds = counts.map { "\($0.count) \($0.name)" }.joined(separator: ", ")
        let keyframes = run.count { $0.header?.flags.contains(.keyframe) == true }
        let bytes = run.reduce(0) { $0 + Int($1.header?.length ?? 0) }
        let last = newest.header?.timestamp ?? 0
        return "\(self.ago(newest, nowMs)) < \(run.count) messages: \(kinds) (\(keyframes) keyframes), \(bytes) bytes, the last at \(last)"
    }

    private static func sign(_ direction: TraceDirection) -> String {
        switch direction {
        case .received: "<"
        case .sent: ">"
        case .here: "."
        }
    }

    /// "-12.3s"
    private static func ago(_ entry: TraceEntry, _ nowMs: Int64) -> String {
        let tenths = max(0, nowMs - entry.atMs) / 100
        return "-\(tenths / 10).\(tenths % 10)s"
    }
}

extension ArraySlice {
    /// The longest suffix whose elements all satisfy the condition.
    fileprivate func suffix(while holds: (Element) -> Bool) -> ArraySlice {
        var start = self.endIndex
        while start > self.startIndex, holds(self[start - 1]) { start -= 1 }
        return self[start...]
    }
}
