/// A mutant with an explanation why no test can notice it. A plain value, an entry of explained.txt.
///
/// ```
/// file: Sources/RTMP/Chunk/ChunkDecoder.swift
/// before: the whole line
/// after: the line as the mutant has it
/// reason: why nothing can tell the two apart
/// ```
/// Empty lines separate entries, and lines that begin with # are comments. Runs of white space within a line count as one blank.
package struct Explained: Sendable, Equatable {
    package let file: String
    package let before: String
    package let after: String
    package let reason: String

    package init(file: String, before: String, after: String, reason: String) {
        self.file = file
        self.before = before
        self.after = after
        self.reason = reason
    }

    package struct Malformed: Error, Equatable, CustomStringConvertible {
        package let line: Int
        package let description: String
    }

    package func explains(_ mutant: Mutant) -> Bool {
        self.file == mutant.file && self.before == mutant.before && self.after == mutant.after
    }

    package static func parse(_ text: String) throws(Malformed) -> [Explained] {
        var entries: [Explained] = []
        var fields: [String: String] = [:]
        func entry(endingAt line: Int) throws(Malformed) -> Explained? {
            guard !fields.isEmpty else { return nil }
            guard let file = fields["file"], let before = fields["before"], let after = fields["after"], let reason = fields["reason"]
            else {
                throw Malformed(line: line, description: "line \(line): the entry above needs file, before, after and reason")
            }
            return Explained(file: file, before: before, after: after, reason: reason)
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where !line.hasPrefix("#") {
            guard line.contains(where: { !$0.isWhitespace }) else {
                if let entry = try entry(endingAt: index + 1) { entries.append(entry) }
                fields = [:]
                continue
            }
            guard let colon = line.firstIndex(of: ":"), ["file", "before", "after", "reason"].contains(line[..<colon]) else {
                throw Malformed(line: index + 1, description: "line \(index + 1): expected file:, before:, after: or reason:")
            }
            guard fields.updateValue(SourceLines.plain(String(line[line.index(after: colon)...])), forKey: String(line[..<colon])) == nil
            else {
                throw Malformed(line: index + 1, description: "line \(index + 1): \(line[..<colon]) twice in one entry")
            }
        }
        if let entry = try entry(endingAt: lines.count) { entries.append(entry) }
        return entries
    }
}
