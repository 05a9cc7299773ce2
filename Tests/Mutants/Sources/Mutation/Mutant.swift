/// One small change of a source file that some test should notice. A plain value.
package struct Mutant: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// An integer literal is one more or one less.
        case literal
        /// `<` and `<=`, `==` and `!=`, … change places.
        case comparison
        /// `+` and `-` change places.
        case arithmetic
        /// `&&` and `||` change places.
        case connective
        /// A condition always holds, or never does.
        case check
        /// The two branches of a condition change places.
        case branch
        /// A `return`, `throw`, `continue` or `break` at the end of an `if` is left out.
        case exit
    }

    /// From 1, in the order of the draw; 0 before the draw.
    package var id = 0
    /// Path from the clone's root.
    package let file: String
    /// Of the change's first byte, from 1.
    package let line: Int
    package let kind: Kind
    /// The whole lines that the change touches, and the same lines changed; white space in them is single blanks.
    package let before: String
    package let after: String
    /// UTF-8 offsets in the file: what ``switchable`` replaces.
    package let range: Range<Int>
    /// UTF-8 offsets of the statement or member around it, where the compiler may report what it does not accept.
    package let statement: Range<Int>
    /// What stands in place of the range: the original and the changed form, chosen by ``idPlaceholder``'s switch at run time.
    package let switchable: String

    package static let idPlaceholder = "MUTANT_ID"

    /// The same change of the same text, whatever its number.
    package func isSame(as other: Mutant) -> Bool {
        self.file == other.file && self.range == other.range && self.before == other.before && self.after == other.after
    }
}
