/// Writes a flat JSON object as text: the data of an event.
struct JSONText {
    private var body = ""

    mutating func add(_ name: String, _ value: String?) {
        guard let value else { return }
        self.key(name)
        Self.quote(value, into: &self.body)
    }

    mutating func add(_ name: String, _ value: Int64?) {
        guard let value else { return }
        self.key(name)
        self.body += String(value)
    }

    mutating func add(_ name: String, _ value: Int?) { self.add(name, value.map(Int64.init)) }

    mutating func add(_ name: String, _ values: [String]) {
        self.key(name)
        self.body += "["
        for (index, value) in values.enumerated() {
            if index > 0 { self.body += "," }
            Self.quote(value, into: &self.body)
        }
        self.body += "]"
    }

    private mutating func key(_ name: String) {
        if !self.body.isEmpty { self.body += "," }
        Self.quote(name, into: &self.body)
        self.body += ":"
    }

    var text: String { "{" + self.body + "}" }

    private static func quote(_ value: String, into text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let hex = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

/// Checks that text is one JSON value, strictly by RFC 8259, within a nesting limit.
struct JSONChecker {
    private let bytes: [UInt8]
    private var at = 0
    private let maxDepth: Int

    private init(_ text: String, maxDepth: Int) {
        self.bytes = Array(text.utf8)
        self.maxDepth = maxDepth
    }

    /// True for a JSON object with nothing after it. The object itself has depth 1.
    static func isObject(_ text: String, maxDepth: Int) -> Bool {
        var checker = JSONChecker(text, maxDepth: maxDepth)
        checker.space()
        guard checker.peek == UInt8(ascii: "{"), checker.value(depth: 1) else { return false }
        checker.space()
        return checker.at == checker.bytes.count
    }

    private var peek: UInt8? { self.at < self.bytes.count ? self.bytes[self.at] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard self.peek == byte else { return false }
        self.at += 1
        return true
    }

    private mutating func space() {
        while let byte = self.peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { self.at += 1 }
    }

    private mutating func value(depth: Int) -> Bool {
        switch self.peek {
        case UInt8(ascii: "{"): self.members(depth: depth, close: UInt8(ascii: "}"), named: true)
        case UInt8(ascii: "["): self.members(depth: depth, close: UInt8(ascii: "]"), named: false)
        case UInt8(ascii: "\""): self.string()
        case UInt8(ascii: "t"): self.word("true")
        case UInt8(ascii: "f"): self.word("false")
        case UInt8(ascii: "n"): self.word("null")
        default: self.number()
        }
    }

    private mutating func members(depth: Int, close: UInt8, named: Bool) -> Bool {
        guard depth <= self.maxDepth else { return false }
        self.at += 1
        self.space()
        if self.take(close) { return true }
        repeat {
            self.space()
            if named {
                guard self.string() else { return false }
                self.space()
                guard self.take(UInt8(ascii: ":")) else { return false }
                self.space()
            }
            guard self.value(depth: depth + 1) else { return false }
            self.space()
        } while self.take(UInt8(ascii: ","))
        return self.take(close)
    }

    private mutating func string() -> Bool {
        guard self.take(UInt8(ascii: "\"")) else { return false }
        while let byte = self.peek {
            self.at += 1
            switch byte {
            case UInt8(ascii: "\""): return true
            case UInt8(ascii: "\\"):
                guard let escape = self.peek else { return false }
                self.at += 1
                if escape == UInt8(ascii: "u") {
                    for _ in 0..<4 {
                        guard let digit = self.peek, Self.isHex(digit) else { return false }
                        self.at += 1
                    }
                } else if !Array("\"\\/bfnrt".utf8).contains(escape) {
                    return false
                }
            case 0..<0x20: return false
            default: break
            }
        }
        return false
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): true
        default: false
        }
    }

    private mutating func word(_ text: StaticString) -> Bool {
        for index in 0..<text.utf8CodeUnitCount where !self.take((text.utf8Start + index).pointee) { return false }
        return true
    }

    private mutating func digits() -> Bool {
        let start = self.at
        while let byte = self.peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { self.at += 1 }
        return self.at > start
    }

    private mutating func number() -> Bool {
        _ = self.take(UInt8(ascii: "-"))
        if !self.take(UInt8(ascii: "0")), !self.digits() { return false }
        if self.take(UInt8(ascii: ".")), !self.digits() { return false }
        if self.take(UInt8(ascii: "e")) || self.take(UInt8(ascii: "E")) {
            if !self.take(UInt8(ascii: "+")) { _ = self.take(UInt8(ascii: "-")) }
            return self.digits()
        }
        return true
    }
}
