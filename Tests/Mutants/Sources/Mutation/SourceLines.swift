import SwiftSyntax

/// A file's text, indexed by UTF-8 offset and by line. A plain value.
struct SourceLines {
    private let bytes: [UInt8]

    init(_ source: String) { self.bytes = Array(source.utf8) }

    /// The range of a node without the white space and comments around it.
    static func range(_ node: some SyntaxProtocol) -> Range<Int> {
        node.positionAfterSkippingLeadingTrivia.utf8Offset..<node.endPositionBeforeTrailingTrivia.utf8Offset
    }

    func text(_ range: Range<Int>) -> String { String(decoding: self.bytes[range], as: UTF8.self) }

    func text(_ node: some SyntaxProtocol) -> String { self.text(Self.range(node)) }

    /// The line of an offset, counted from 1.
    func line(at offset: Int) -> Int { 1 + self.newlines(in: 0..<offset) }

    func newlines(in range: Range<Int>) -> Int { self.bytes[range].count { $0 == UInt8(ascii: "\n") } }

    /// Returns the whole lines around the range, before and after the change. White space becomes single blanks.
    func around(_ range: Range<Int>, changedTo change: String) -> (before: String, after: String) {
        let newline = UInt8(ascii: "\n")
        let start = (self.bytes[..<range.lowerBound].lastIndex(of: newline) ?? -1) + 1
        let end = self.bytes[range.upperBound...].firstIndex(of: newline) ?? self.bytes.count
        let changed = self.text(start..<range.lowerBound) + change + self.text(range.upperBound..<end)
        return (Self.plain(self.text(start..<end)), Self.plain(changed))
    }

    /// Replaces runs of white space with single blanks.
    static func plain(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
}
