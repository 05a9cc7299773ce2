// For the normalization that the standard library compares strings by. A toolchain without it does not compile this file, and NameFormTests hold
// what it does; it needs no Foundation.
@_spi(_Unicode) internal import Swift

/// The one rule on the spelling of names, for every door that takes one: apps, streams, rooms, users, tokens. Pure; any thread.
///
/// Swift compares strings by canonical equivalence (Unicode UAX #15), but signatures, the store and URLs compare bytes: "é" is U+00E9 or "e" with
/// U+0301, one text to the former and two to the latter. Only Normalization Form C is accepted as a name. Other spellings are refused and never
/// rewritten, because a signature over their bytes would then open the name in Form C.
package enum NameForm {
    /// Why the text may not be a name, such as "is not in …"; nil when it may.
    package static func problem(_ text: String) -> ValueProblem? {
        guard !self.isNormal(text) else { return nil }
        for character in text {
            let normal = Array(String(character)._nfc)
            guard !character.unicodeScalars.elementsEqual(normal) else { continue }
            // A single scalar is a letter or a mark. Several may hide others.
            let shown = normal.count == 1 ? "\"\(String(String.UnicodeScalarView(normal)))\" as " : ""
            return ValueProblem("\(Self.rule): write \(shown)\(Self.codes(normal)), not as \(Self.codes(Array(character.unicodeScalars)))")
        }
        return ValueProblem(Self.rule)
    }

    /// Throws for the field whose value may not be a name.
    package static func check(_ text: String, _ field: String) throws(FieldError) {
        if let problem = self.problem(text) { throw FieldError(field, text, "the text \(problem)") }
    }

    /// Whether the text is in Normalization Form C.
    package static func isNormal(_ text: String) -> Bool {
        // Fast path: ASCII, as in most names.
        text.utf8.allSatisfy { $0 < 0x80 } || text.unicodeScalars.elementsEqual(text._nfc)
    }

    private static let rule = "is not in Unicode Normalization Form C"
    /// Code points that a message shows of one character, which may have any number of marks.
    private static let mostCodes = 4

    private static func codes(_ scalars: [Unicode.Scalar]) -> String {
        let shown = scalars.prefix(self.mostCodes).map { "U+\(String(hex: $0.value, digits: 4, uppercase: true))" }
        return (shown + (scalars.count > self.mostCodes ? ["…"] : [])).joined(separator: " ")
    }
}
