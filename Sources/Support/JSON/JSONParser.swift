/// A JSON syntax error and its position.
package struct JSONProblem: Error, Equatable, CustomStringConvertible {
    package let what: String
    /// From 1. Columns count bytes.
    package let line: Int
    package let column: Int

    package var description: String { "line \(self.line), column \(self.column): \(self.what)" }
}

/// Parses strict JSON (RFC 8259): no comments, trailing commas or repeated names, and bounded nesting.
///
/// The bytes are a peer's; the caller limits their number. A value, used once.
package struct JSONParser {
    /// Levels of nesting in requests.
    package static let deepest = 32
    /// Levels of nesting in answers, which embed values from requests.
    package static let deepestAnswer = 2 * Self.deepest

    private let bytes: [UInt8]
    private let deepest: Int
    private var position = 0

    /// Parses the whole text as one value, nested no more than `deepest` levels.
    package static func parse(_ bytes: some Sequence<UInt8>, deepest: Int = Self.deepest) throws(JSONProblem) -> JSONValue {
        var parser = JSONParser(bytes: Array(bytes), deepest: deepest)
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.current == nil else { throw parser.problem("expected nothing after the value") }
        return value
    }

    /// The bytes without a byte order mark, which some programs write before JSON and a reader may ignore (RFC 8259 §8.1).
    package static func unmarked(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
    }

    /// Whether the text is one object, nested no more than `deepest` levels, itself the first.
    package static func isObject(_ text: String, deepest: Int) -> Bool {
        guard case .object? = try? Self.parse(text.utf8, deepest: deepest) else { return false }
        return true
    }

    private var current: UInt8? { self.position < self.bytes.count ? self.bytes[self.position] : nil }

    private func problem(_ what: String, at position: Int? = nil) -> JSONProblem {
        let before = self.bytes.prefix(position ?? self.position)
        let line = before.count { $0 == UInt8(ascii: "\n") }
        let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return JSONProblem(what: what, line: line + 1, column: before.count - start + 1)
    }

    private mutating func skipSpace() {
        while let byte = self.current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { self.position += 1 }
    }

    private mutating func value(depth: Int) throws(JSONProblem) -> JSONValue {
        self.skipSpace()
        guard let byte = self.current else { throw self.problem("the text ends where a value should be") }
        switch byte {
        case UInt8(ascii: "{"): return try self.object(depth: depth + 1)
        case UInt8(ascii: "["): return try self.array(depth: depth + 1)
        case UInt8(ascii: "\""): return .string(try self.string())
        case UInt8(ascii: "t"): return try self.word("true", .bool(true))
        case UInt8(ascii: "f"): return try self.word("false", .bool(false))
        case UInt8(ascii: "n"): return try self.word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try self.number()
        default: throw self.problem("no JSON value begins like this")
        }
    }

    private mutating func word(_ word: StaticString, _ value: JSONValue) throws(JSONProblem) -> JSONValue {
        let expected = Array("\(word)".utf8)
        guard self.bytes[self.position...].starts(with: expected) else { throw self.problem("expected \(word)") }
        self.position += expected.count
        return value
    }

    // MARK: Containers

    private mutating func object(depth: Int) throws(JSONProblem) -> JSONValue {
        guard depth <= self.deepest else { throw self.problem("nested deeper than \(self.deepest) levels") }
        var members: [JSONValue.Member] = []
        var names: Set<String> = []
        var isFirst = true
        self.position += 1
        while try self.continues(UInt8(ascii: "}"), &isFirst) {
            self.skipSpace()
            let start = self.position
            guard self.current == UInt8(ascii: "\"") else { throw self.problem("expected a name in quotes") }
            let name = try self.string()
            guard names.insert(name).inserted else { throw self.problem("the name \"\(name.prefix(60))\" occurs twice", at: start) }
            self.skipSpace()
            guard self.current == UInt8(ascii: ":") else { throw self.problem("expected \":\"") }
            self.position += 1
            members.append(JSONValue.Member(name: name, value: try self.value(depth: depth)))
        }
        return .object(members)
    }

    private mutating func array(depth: Int) throws(JSONProblem) -> JSONValue {
        guard depth <= self.deepest else { throw self.problem("nested deeper than \(self.deepest) levels") }
        var values: [JSONValue] = []
        var isFirst = true
        self.position += 1
        while try self.continues(UInt8(ascii: "]"), &isFirst) { values.append(try self.value(depth: depth)) }
        return .array(values)
    }

    /// Skips the comma before the next element, or the container's end. Returns whether an element follows.
    private mutating func continues(_ end: UInt8, _ isFirst: inout Bool) throws(JSONProblem) -> Bool {
        self.skipSpace()
        if self.current == end {
            self.position += 1
            return false
        }
        if !isFirst {
            guard self.current == UInt8(ascii: ",") else { throw self.problem("expected \",\" or \"\(Unicode.Scalar(end))\"") }
            self.position += 1
            self.skipSpace()
            guard self.current != end else { throw self.problem("a comma with nothing after it") }
        }
        isFirst = false
        return true
    }

    // MARK: Scalars

    private mutating func number() throws(JSONProblem) -> JSONValue {
        let start = self.position
        if self.current == UInt8(ascii: "-") { self.position += 1 }
        if self.current == UInt8(ascii: "0") {
            self.position += 1
        } else {
            try self.digits()
        }
        var isWhole = true
        if self.current == UInt8(ascii: ".") {
            isWhole = false
            self.position += 1
            try self.digits()
        }
        if self.current == UInt8(ascii: "e") || self.current == UInt8(ascii: "E") {
            isWhole = false
            self.position += 1
            if self.current == UInt8(ascii: "+") || self.current == UInt8(ascii: "-") { self.position += 1 }
            try self.digits()
        }
        if let next = self.current, Self.isDigit(next) { throw self.problem("a number with a leading zero", at: start) }
        let text = String(decoding: self.bytes[start..<self.position], as: UTF8.self)
        if isWhole, let value = Int64(text), String(value) == text { return .integer(value) }
        guard let value = Double(text), value.isFinite, JSONValue.text(of: value) == text else { return .digits(text) }
        return .number(value)
    }

    private mutating func digits() throws(JSONProblem) {
        guard let first = self.current, Self.isDigit(first) else { throw self.problem("expected a digit") }
        while let byte = self.current, Self.isDigit(byte) { self.position += 1 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private mutating func string() throws(JSONProblem) -> String {
        let start = self.position
        var text: [UInt8] = []
        self.position += 1
        while let byte = self.current {
            switch byte {
            case UInt8(ascii: "\""):
                self.position += 1
                guard let valid = String(validating: text, as: UTF8.self) else {
                    throw self.problem("a string that is not UTF-8", at: start)
                }
                return valid
            case UInt8(ascii: "\\"): try self.escape(&text)
            case 0..<0x20:
                throw self.problem("a control character in a string; write it as \\u\(String(hex: byte, digits: 4))")
            default:
                text.append(byte)
                self.position += 1
            }
        }
        throw self.problem("a string without a closing quote", at: start)
    }

    private mutating func escape(_ text: inout [UInt8]) throws(JSONProblem) {
        let start = self.position
        self.position += 1
        guard let byte = self.current else { throw self.problem("a string without a closing quote", at: start) }
        self.position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var code = try self.hexCode(start)
            if (0xD800..<0xDC00).contains(code) {
                guard self.bytes[self.position...].starts(with: "\\u".utf8) else { throw self.problem("half a surrogate pair", at: start) }
                self.position += 2
                let low = try self.hexCode(start)
                guard (0xDC00..<0xE000).contains(low) else { throw self.problem("half a surrogate pair", at: start) }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw self.problem("half a surrogate pair", at: start) }
            text.append(contentsOf: Character(scalar).utf8)
        default: throw self.problem("an escape that JSON does not define", at: start)
        }
    }

    private mutating func hexCode(_ start: Int) throws(JSONProblem) -> UInt32 {
        let digits = self.bytes[self.position...].prefix(4)
        guard digits.count == 4 else { throw self.problem("expected four hexadecimal digits after \\u", at: start) }
        var code: UInt32 = 0
        for digit in digits {
            guard let value = Character(Unicode.Scalar(digit)).hexDigitValue else {
                throw self.problem("expected four hexadecimal digits after \\u", at: start)
            }
            code = code << 4 + UInt32(value)
        }
        self.position += 4
        return code
    }
}
