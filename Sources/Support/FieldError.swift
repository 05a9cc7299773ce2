/// A caller's invalid value. The API and the command line show it.
package struct FieldError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The field's name as the caller uses it: "title", "policy.grace".
    package let field: String
    /// The given value, shortened; empty if there was none.
    package let value: String
    /// The expected value in plain language: "at most 200 bytes".
    package let rule: String

    package init(_ field: String, _ value: String, _ rule: String) {
        self.field = field
        self.value = value.utf8.count > 80 ? String(value.prefix(60)) + "…" : value
        self.rule = rule
    }

    package var description: String {
        self.value.isEmpty ? "\(self.field): \(self.rule)" : "\(self.field) is \"\(self.value)\": \(self.rule)"
    }
}
