import SwiftOperators
import SwiftParser
import SwiftSyntax

/// Finds mutants of source text, and rewrites the text so that each can be switched on.
package enum Mutation {
    /// Returns every mutant of a file, in no particular order.
    package static func mutants(of source: String, file: String) -> [Mutant] {
        // The folding of unknown operators does not matter, because all text is copied from the source.
        let tree = OperatorTable.standardOperators.foldAll(Parser.parse(source: source)) { _ in }
        let finder = SiteFinder(source: source, file: file)
        finder.walk(tree)
        return finder.mutants
    }

    /// The file with the switch, added to each module that has mutants.
    ///
    /// `@usableFromInline` lets default arguments and inlinable code call it. It is never inlined, so 200 calls cost the compiler nothing.
    package static let switchFile = """
        #if canImport(Glibc)
        import Glibc
        #elseif canImport(Musl)
        import Musl
        #else
        import Darwin
        #endif

        /// The number of the one mutant that is on; 0: none is.
        private let activeMutant: Int = getenv("EARSHOT_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0

        @usableFromInline @inline(never)
        func mutant(_ id: Int) -> Bool { id == activeMutant }

        @usableFromInline @inline(never)
        func negated(_ id: Int, _ condition: Bool) -> Bool { mutant(id) != condition }

        """

    /// Returns the file with each of the mutants switchable. Their ranges must not overlap.
    package static func rewrite(_ source: String, with mutants: [Mutant]) -> Rewritten {
        let lines = SourceLines(source)
        var text = ""
        var end = 0
        var moved: [(end: Int, newlines: Int)] = []
        for mutant in mutants.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            let replacement = mutant.switchable.replacing(Mutant.idPlaceholder, with: "\(mutant.id)")
            text += lines.text(end..<mutant.range.lowerBound) + replacement
            end = mutant.range.upperBound
            moved.append((end, replacement.count { $0 == "\n" } - lines.newlines(in: mutant.range)))
        }
        text += lines.text(end..<source.utf8.count)
        func line(_ offset: Int) -> Int { lines.line(at: offset) + moved.reduce(0) { $1.end <= offset ? $0 + $1.newlines : $0 } }
        func lineRanges(_ range: (Mutant) -> Range<Int>) -> [Int: ClosedRange<Int>] {
            Dictionary(uniqueKeysWithValues: mutants.map { ($0.id, line(range($0).lowerBound)...line(range($0).upperBound)) })
        }
        return Rewritten(text: text, lines: lineRanges(\.range), statementLines: lineRanges(\.statement))
    }
}

/// A file with its mutants in it.
package struct Rewritten: Sendable {
    package let text: String
    /// The lines of each mutant, counted from 1, by its number.
    package let lines: [Int: ClosedRange<Int>]
    /// The lines of the statement around each mutant.
    package let statementLines: [Int: ClosedRange<Int>]

    /// The mutants that most likely caused a compiler error in this line; empty only if the file has none.
    package func suspects(line: Int) -> [Int] {
        for ranges in [self.lines, self.statementLines] {
            let hit = ranges.filter { $0.value.contains(line) }.keys
            if !hit.isEmpty { return hit.sorted() }
        }
        let distance = { (range: ClosedRange<Int>) in max(range.lowerBound - line, line - range.upperBound) }
        return self.lines.min { (distance($0.value), $0.key) < (distance($1.value), $1.key) }.map { [$0.key] } ?? []
    }
}
