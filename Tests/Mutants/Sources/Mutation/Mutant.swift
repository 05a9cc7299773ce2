/// One small change of a source file that some test should notice. A plain value.
package struct Mutant: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// Adds one to an integer literal, or subtracts one.
        case literal
        /// Swaps `<` and `<=`, `==` and `!=`, …
        case comparison
        /// Swaps `+` and `-`.
        case arithmetic
        /// Swaps `&&` and `||`.
        case connective
        /// Makes a condition always true, or always false.
        case check
        /// Swaps the two branches of a condition.
        case branch
        /// Omits a `return`, `throw`, `continue` or `break` at the end of an `if`.
        case exit
    }

    /// The number in the draw, from 1; 0 before the draw.
    package var id = 0
    /// Path from the clone's root.
    package let file: String
    /// The line of the change's first byte, counted from 1.
    package let line: Int
    package let kind: Kind
    /// The whole lines that the change touches, with white space as single blanks; ``after`` holds the changed lines.
    package let before: String
    package let after: String
    /// The text that ``switchable`` replaces, in UTF-8 offsets of the file.
    package let range: Range<Int>
    /// The statement or member around it, in UTF-8 offsets. The compiler may report errors anywhere in it.
    package let statement: Range<Int>
    /// The replacement for the range: the original and the changed form, chosen at run time by the switch with ``idPlaceholder``.
    package let switchable: String

    package static let idPlaceholder = "MUTANT_ID"

    /// Whether both make the same change of the same text, whatever their numbers.
    package func isSame(as other: Mutant) -> Bool {
        self.file == other.file && self.range == other.range && self.before == other.before && self.after == other.after
    }
}
