#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An answer's JSON as a plain value: shown as it came, and read leniently, since a server may be older or newer than this program.
enum JSONValue: Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// - Throws: `DecodingError` for what is not JSON.
    init(parsing bytes: some Sequence<UInt8>) throws {
        self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    /// `.null` where there is none, so that reads can be chained.
    subscript(key: String) -> JSONValue {
        if case .object(let fields) = self { fields[key] ?? .null } else { .null }
    }

    var string: String? { if case .string(let value) = self { value } else { nil } }
    var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    var list: [JSONValue] { if case .array(let values) = self { values } else { [] } }
    var isNull: Bool { self == .null }

    var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .number(let value): Int64(exactly: value.rounded())
        default: nil
        }
    }

    var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// Of an object, by name; empty for anything else.
    var fields: [(key: String, value: JSONValue)] {
        if case .object(let fields) = self { fields.sorted { $0.key < $1.key } } else { [] }
    }

    /// A scalar as a person reads it; nil for null.
    var plain: String? {
        switch self {
        case .null: nil
        case .bool(let value): value ? "yes" : "no"
        case .integer(let value): String(value)
        case .number(let value): value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
        case .string(let value): value
        case .array, .object: self.text(pretty: false)
        }
    }
}

extension JSONValue: Decodable {
    init(from decoder: any Decoder) throws {
        let one = try decoder.singleValueContainer()
        // What is frequent first: each miss costs an error.
        if let value = try? one.decode(String.self) {
            self = .string(value)
        } else if let value = try? one.decode(Int64.self) {
            self = .integer(value)
        } else if one.decodeNil() {
            self = .null
        } else if let value = try? one.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? one.decode([String: JSONValue].self) {
            self = .object(value)
        } else if let value = try? one.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .number(try one.decode(Double.self))
        }
    }
}

extension JSONValue {
    /// As JSON text with the keys in alphabetical order: indented by two, the first line's depth given; or on one line.
    func text(pretty: Bool = true, depth: Int = 0) -> String {
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
        case .string(let value): Self.quote(value, to: &out)
        case .array(let values):
            Self.write(values, "[", "]", to: &out, indent: indent) { $1.write(to: &$0, indent: $2) }
        case .object:
            Self.write(self.fields, "{", "}", to: &out, indent: indent) { out, field, indent in
                Self.quote(field.key, to: &out)
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

    /// Control characters are escaped, those of C1 too: some terminals obey them.
    private static func quote(_ value: String, to out: inout String) {
        out += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case _ where DisplayText.isUnsafe(scalar):
                for unit in String(scalar).utf16 {
                    let hex = String(unit, radix: 16)
                    out += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                }
            default: out.unicodeScalars.append(scalar)
            }
        }
        out += "\""
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral
{
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int64) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(Dictionary(elements) { $1 }) }
    init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
}
