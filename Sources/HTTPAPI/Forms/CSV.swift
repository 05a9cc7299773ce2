package import Support

/// A list of objects as comma-separated values (RFC 4180), for spreadsheets.
package enum CSV {
    package static let mediaType = "text/csv; charset=utf-8"

    /// A header, then one line per object; members in the order of `columns`.
    package static func text(_ columns: [String], _ list: [JSONValue]) -> [UInt8] {
        var text = self.line(columns.map(JSONValue.string))
        for item in list { text += self.line(columns.map { item[$0] ?? .null }) }
        return Array(text.utf8)
    }

    private static func line(_ values: [JSONValue]) -> String { values.map(self.cell).joined(separator: ",") + "\r\n" }

    package static func cell(_ value: JSONValue) -> String {
        switch value {
        case .null: ""
        case .string(let text): self.quoted(self.harmless(ShownText.escaped(text)))
        default: self.quoted(value.text)
        }
    }

    /// Spreadsheets treat text with these beginnings as a formula, and run it. Clients choose their names.
    private static func harmless(_ text: String) -> String {
        switch text.unicodeScalars.first {
        // Also as wide characters, which some read alike.
        case "=", "+", "-", "@", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}": "'" + text
        default: text
        }
    }

    private static func quoted(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0 == "," || $0 == "\"" }) else { return text }
        var doubled = ""
        for scalar in text.unicodeScalars {
            if scalar == "\"" { doubled.unicodeScalars.append(scalar) }
            doubled.unicodeScalars.append(scalar)
        }
        return "\"\(doubled)\""
    }
}
