import Support

/// An answer's JSON as a plain value. It prints unchanged and reads leniently, since the server may be older or newer than this program.
package enum ResponseJSON: Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    /// The original text of a number that a `Double` would print differently.
    case digits(String)
    case string(String)
    case array([ResponseJSON])
    case object([String: ResponseJSON])

    /// Throws when the bytes are not JSON.
    package init(parsing bytes: some Sequence<UInt8>) throws { self = try Self.reader.read(bytes) }

    private static var reader: JSONReader<ResponseJSON> {
        JSONReader(
            null: .null, bool: ResponseJSON.bool, number: ResponseJSON.init(digits:), string: ResponseJSON.string,
            array: ResponseJSON.array,
            object: { .object(Dictionary($0.map { ($0.name, $0.value) }) { $1 }) })
    }

    private init(digits text: String) {
        if let value = Int64(text), String(value) == text {
            self = .integer(value)
        } else if let value = Double(text), "\(value)" == text {
            self = .number(value)
        } else {
            self = .digits(text)
        }
    }

    /// Returns `.null` for a missing key, so that reads can be chained.
    package subscript(key: String) -> ResponseJSON {
        if case .object(let fields) = self { fields[key] ?? .null } else { .null }
    }

    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var list: [ResponseJSON] { if case .array(let values) = self { values } else { [] } }
    package var isNull: Bool { self == .null }

    package var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .number(let value): Int64(exactly: value.rounded())
        case .digits(let text): Double(text).flatMap { Int64(exactly: $0.rounded()) }
        default: nil
        }
    }

    package var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        case .digits(let text): Double(text)
        default: nil
        }
    }

    /// An object's fields by name; empty for anything else.
    package var fields: [(key: String, value: ResponseJSON)] {
        if case .object(let fields) = self { fields.sorted { $0.key < $1.key } } else { [] }
    }

    /// A scalar in human form; nil for null.
    package var plain: String? {
        switch self {
        case .null: nil
        case .bool(let value): value ? "yes" : "no"
        case .integer(let value): String(value)
        case .number(let value): value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
        case .digits(let text): text
        case .string(let value): value
        case .array, .object: self.text(pretty: false)
        }
    }
}

extension ResponseJSON {
    /// The JSON text with sorted keys, on one line or indented by two. `depth` is the first line's level.
    package func text(pretty: Bool = true, depth: Int = 0) -> String {
        var out = ""
        self.write(to: &out, indent: pretty ? depth : nil)
        return out
    }

    private func write(to out: inout String, indent: Int?) {
        switch self {
        case .null: out += "null"
        case .bool(let value): out += value ? "true" : "false"
        case .integer(let value): out += String(value)
        case .number(let value): out += value.isFinite ? "\(value)" : "null"
        case .digits(let text): out += text
        case .string(let value): DisplayText.quote(value, to: &out)
        case .array(let values):
            Self.write(values, "[", "]", to: &out, indent: indent) { $1.write(to: &$0, indent: $2) }
        case .object:
            Self.write(self.fields, "{", "}", to: &out, indent: indent) { out, field, indent in
                DisplayText.quote(field.key, to: &out)
                out += indent == nil ? ":" : ": "
                field.value.write(to: &out, indent: indent)
            }
        }
    }

    private static func write<Item>(
        _ items: [Item], _ open: String, _ close: String, to out: inout String, indent: Int?, each: (inout String, Item, Int?) -> Void
    ) {
        out += open
        for (index, item) in items.enumerated() {
            if index > 0 { out += "," }
            if let indent { out += "\n" + String(repeating: "  ", count: indent + 1) }
            each(&out, item, indent.map { $0 + 1 })
        }
        if let indent, !items.isEmpty { out += "\n" + String(repeating: "  ", count: indent) }
        out += close
    }
}

extension ResponseJSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(dictionaryLiteral elements: (String, ResponseJSON)...) { self = .object(Dictionary(elements) { $1 }) }
    package init(arrayLiteral elements: ResponseJSON...) { self = .array(elements) }
}
