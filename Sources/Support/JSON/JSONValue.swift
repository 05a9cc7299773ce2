/// A JSON value as read from a request or written into an answer (RFC 8259). Members keep their order. A plain value.
package indirect enum JSONValue: Sendable, Equatable {
    package struct Member: Sendable, Equatable {
        package let name: String
        package let value: JSONValue

        package init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    case null
    case bool(Bool)
    case integer(Int64)
    /// Finite.
    case number(Double)
    /// A number's original text, where `Int64` and `Double` would change or cannot hold it: 1.10, 1e400.
    case digits(String)
    case string(String)
    case array([JSONValue])
    case object([Member])

    /// The member with this name; nil for everything but objects.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The same object with another value for one of its members.
    package func replacing(_ name: String, with value: JSONValue) -> JSONValue {
        guard case .object(let members) = self else { return self }
        return .object(members.map { $0.name == name ? Member(name: name, value: value) : $0 })
    }

    /// The kind of value, for messages: "a string".
    package var kind: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer, .number, .digits: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// The nearest `Double`; nil for a number too large for one, and for other kinds.
    package var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        case .digits(let text): Double(text).flatMap { $0.isFinite ? $0 : nil }
        case .null, .bool, .string, .array, .object: nil
        }
    }

    /// The text in messages: a string without quotes, everything else as JSON.
    package var shown: String { if case .string(let text) = self { text } else { self.text } }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    package init(stringLiteral text: String) { self = .string(text) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    package init(dictionaryLiteral members: (String, JSONValue)...) { self = .object(members.map(Member.init)) }
    package init(nilLiteral: ()) { self = .null }
}

// MARK: - Writing

extension JSONValue {
    /// Compact JSON.
    package var text: String {
        var bytes: [UInt8] = []
        self.write(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends compact JSON.
    package func write(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): bytes.append(contentsOf: String(value).utf8)
        case .number(let value): bytes.append(contentsOf: Self.text(of: value).utf8)
        case .digits(let text): bytes.append(contentsOf: text.utf8)
        case .string(let text): Self.write(text, to: &bytes)
        case .array(let values):
            Self.write(values, between: ("[", "]"), to: &bytes) { $0.write(to: &$1) }
        case .object(let members):
            Self.write(members, between: ("{", "}"), to: &bytes) { member, bytes in
                Self.write(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.write(to: &bytes)
            }
        }
    }

    private static func write<Element>(
        _ elements: [Element], between ends: (Unicode.Scalar, Unicode.Scalar), to bytes: inout [UInt8],
        _ write: (Element, inout [UInt8]) -> Void
    ) {
        bytes.append(UInt8(ascii: ends.0))
        var isFirst = true
        for element in elements {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            write(element, &bytes)
        }
        bytes.append(UInt8(ascii: ends.1))
    }

    /// Writes whole numbers below 2^53 without a fraction. Infinities and NaN, which JSON lacks, become null.
    package static func text(of value: Double) -> String {
        guard value.isFinite else { return "null" }
        if let whole = Int64(exactly: value), whole.magnitude < 1 << 53 { return String(whole) }
        return value.description
    }

    private static let hex = Array("0123456789abcdef".utf8)

    /// Escapes what ``ShownText`` holds to be unsafe, which readers of JSON undo, so that answers can be looked at on a terminal.
    private static func write(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        if text.utf8.allSatisfy({ $0 < 0x80 }) {
            self.append(text.utf8, to: &bytes)
        } else {
            for scalar in text.unicodeScalars {
                if scalar.isASCII || !ShownText.isUnsafe(scalar) {
                    self.append(UTF8.encode(scalar) ?? .init(), to: &bytes)
                } else {
                    // All of these are in the basic plane.
                    let code = UInt16(truncatingIfNeeded: scalar.value)
                    bytes.append(contentsOf: "\\u".utf8)
                    for shift in [12, 8, 4, 0] { bytes.append(Self.hex[Int(code >> UInt16(shift) & 15)]) }
                }
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func append(_ text: some Sequence<UInt8>, to bytes: inout [UInt8]) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""): bytes.append(contentsOf: "\\\"".utf8)
            case UInt8(ascii: "\\"): bytes.append(contentsOf: "\\\\".utf8)
            case UInt8(ascii: "\n"): bytes.append(contentsOf: "\\n".utf8)
            case UInt8(ascii: "\r"): bytes.append(contentsOf: "\\r".utf8)
            case UInt8(ascii: "\t"): bytes.append(contentsOf: "\\t".utf8)
            case 0..<0x20, 0x7F:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(Self.hex[Int(byte >> 4)])
                bytes.append(Self.hex[Int(byte & 15)])
            default: bytes.append(byte)
            }
        }
    }
}
