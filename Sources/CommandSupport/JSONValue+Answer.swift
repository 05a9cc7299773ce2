package import Support

/// A part of an answer's JSON, or its absence, read leniently, since the server may be older or newer than this program.
package protocol AnswerPart {
    var part: JSONValue? { get }
}

extension JSONValue: AnswerPart {
    package var part: JSONValue? { self }

    /// An object with these fields, in alphabetical order.
    package static func of(_ fields: [String: JSONValue]) -> JSONValue {
        .object(fields.sorted { $0.key < $1.key }.map { Member(name: $0.key, value: $0.value) })
    }

    /// Throws when the bytes are not JSON, or nested deeper than answers are.
    package static func answer(_ bytes: some Sequence<UInt8>) throws -> JSONValue {
        try JSONParser.parse(bytes, deepest: JSONParser.deepestAnswer)
    }
}

extension Optional: AnswerPart where Wrapped == JSONValue {
    package var part: JSONValue? { self }

    /// Nil for a missing part, so that reads can be chained.
    package subscript(name: String) -> JSONValue? { self?[name] }
}

extension AnswerPart {
    package var string: String? { if case .string(let value)? = self.part { value } else { nil } }
    package var bool: Bool? { if case .bool(let value)? = self.part { value } else { nil } }
    package var list: [JSONValue] { if case .array(let values)? = self.part { values } else { [] } }
    package var isNull: Bool { self.part == nil || self.part == .null }
    package var number: Double? { self.part?.double }

    package var integer: Int64? {
        if case .integer(let value)? = self.part { value } else { self.number.flatMap { Int64(exactly: $0.rounded()) } }
    }

    /// An object's fields by name; empty for anything else.
    package var fields: [(name: String, value: JSONValue)] {
        guard case .object(let members)? = self.part else { return [] }
        return members.map { ($0.name, $0.value) }.sorted { $0.name < $1.name }
    }

    /// A scalar in human form; nil for null.
    package var plain: String? {
        switch self.part {
        case nil, .null?: nil
        case .bool(let value)?: value ? "yes" : "no"
        case .number(let value)?: JSONValue.text(of: value)
        case let value?: value.shown
        }
    }

    /// The JSON text with sorted keys, indented by two. `depth` is the first line's level.
    package func indented(depth: Int = 0) -> String {
        var out = ""
        (self.part ?? .null).write(to: &out, indent: depth)
        return out
    }
}

extension JSONValue {
    fileprivate func write(to out: inout String, indent: Int) {
        switch self {
        case .string(let value): DisplayText.quote(value, to: &out)
        case .array(let values): Self.write(values, "[", "]", to: &out, indent: indent) { $1.write(to: &$0, indent: $2) }
        case .object:
            Self.write(self.fields, "{", "}", to: &out, indent: indent) { out, field, indent in
                DisplayText.quote(field.name, to: &out)
                out += ": "
                field.value.write(to: &out, indent: indent)
            }
        default: out += self.text
        }
    }

    private static func write<Item>(
        _ items: [Item], _ open: String, _ close: String, to out: inout String, indent: Int, each: (inout String, Item, Int) -> Void
    ) {
        out += open
        for (index, item) in items.enumerated() {
            if index > 0 { out += "," }
            out += "\n" + String(repeating: "  ", count: indent + 1)
            each(&out, item, indent + 1)
        }
        if !items.isEmpty { out += "\n" + String(repeating: "  ", count: indent) }
        out += close
    }
}
