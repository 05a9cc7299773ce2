import TestSupport
import Testing

@testable import Support

/// JSON as RFC 8259 defines it, and nothing else.
@Suite struct APIJSONTests {
    /// Pairs of text and value: each reads and writes as the other.
    static let values: [(text: String, value: JSONValue)] = [
        ("null", .null), ("true", true), ("false", false), ("0", 0), ("-1", -1), ("9223372036854775807", .integer(.max)),
        ("-9223372036854775808", .integer(.min)), ("0.5", .number(0.5)), ("-2.25", .number(-2.25)), ("1e-07", .number(1e-7)),
        ("\"\"", ""), ("\"é☃😀\"", "é☃😀"), (#""\"\\\n\r\t\u0000\u007f""#, "\"\\\n\r\t\0\u{7F}"), ("[]", []), ("{}", .object([])),
        ("[1,[2,[]],{}]", [1, [2, []], .object([])]), (#"{"a":1,"b":{"c":null},"":[]}"#, ["a": 1, "b": ["c": nil], "": []]),
    ]

    @Test(arguments: values.indices) func isReadAndWritten(_ index: Int) throws {
        let (text, value) = Self.values[index]
        #expect(try JSONParser.parse(text.utf8) == value)
        #expect(value.text == text)
        #expect(try JSONParser.parse(" \t\r\n\(text)\n ".utf8) == value)
    }

    @Test(arguments: [
        (#""\/\b\f""#, "/\u{8}\u{C}"), (#""\u00e9\u2603""#, "é☃"),
        (#""\ud83d\ude00""#, "😀"), (#"{ "a" : [ 1 , 2 ] }"#, JSONValue.object([.init(name: "a", value: [1, 2])])),
    ])
    func otherSpellingsAreRead(_ text: String, _ value: JSONValue) throws {
        #expect(try JSONParser.parse(text.utf8) == value)
    }

    /// A number keeps its digits, whatever its form.
    @Test(arguments: [
        "1.0", "1.10", "1E3", "1e+2", "-0", "-0.0", "12345678901234567890", "92233720368547758080", "0.1000000000000000055511151231257827",
        "1e-400", "100e-2", "9007199254740993.0",
    ])
    func digitsAreKept(_ text: String) throws {
        let value = try JSONParser.parse(text.utf8)
        #expect(value == .digits(text))
        #expect(value.text == text && value.double == Double(text))
        #expect(try JSONParser.parse("[\(text)]".utf8).text == "[\(text)]")
    }

    @Test(arguments: [
        "", " ", "nul", "nulL", "True", "undefined", "NaN", "Infinity", "-Infinity", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "--1",
        "0x10", "1_000",
        "'a'", "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", #""\ud83d""#, #""\ud83dx""#, #""\ude00""#,
        #""\ud83d\ud83d""#, "\"\t\"", "\"\n\"", "\"\0\"", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "]", "{", "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}",
        "{,}", "{a:1}", "{1:1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{\"a\":1]", "1 2", "{}x", "// c\n1", "1 // c", "/* */1", "\u{FEFF}1",
    ])
    func otherTextIsRefused(_ text: String) {
        #expect(throws: JSONProblem.self) { try JSONParser.parse(text.utf8) }
    }

    /// No prefix of an object is valid.
    @Test func everyPrefixIsRefused() throws {
        let text = Array(#"{"a":[1.5e3,"x\u00e9\n",true,null],"b":{"c":"\ud83d\ude00"}}"#.utf8)
        _ = try JSONParser.parse(text)
        for length in 0..<text.count {
            #expect(throws: JSONProblem.self, "\(length) bytes") { try JSONParser.parse(text.prefix(length)) }
        }
    }

    @Test func bytesThatAreNotUTF8AreRefused() {
        for bytes: [UInt8] in [[0xFF], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0x80]] {
            #expect(throws: JSONProblem.self, "\(bytes)") { try JSONParser.parse([0x22] + bytes + [0x22]) }
        }
    }

    @Test func repeatedNamesAreRefused() {
        #expect(throws: JSONProblem(what: "the name \"a\" occurs twice", line: 2, column: 2)) {
            try JSONParser.parse("{\"a\":1,\n \"a\":2}".utf8)
        }
        // Escaped or not, the name is the same.
        #expect(throws: JSONProblem.self) { try JSONParser.parse(#"{"a":1,"\u0061":2}"#.utf8) }
    }

    @Test func nestingIsBounded() throws {
        func nested(_ depth: Int) -> String { String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
        _ = try JSONParser.parse(nested(JSONParser.deepest).utf8)
        #expect(throws: JSONProblem.self) { try JSONParser.parse(nested(JSONParser.deepest + 1).utf8) }
        #expect(throws: JSONProblem.self) { try JSONParser.parse(String(repeating: "[", count: 100_000).utf8) }
        #expect(throws: JSONProblem.self) { try JSONParser.parse(String(repeating: "{\"a\":", count: 100_000).utf8) }
    }

    @Test func problemsAreLocated() {
        #expect(throws: JSONProblem(what: "a comma with nothing after it", line: 3, column: 1)) {
            try JSONParser.parse("[\n1,\n]".utf8)
        }
        #expect(throws: JSONProblem(what: "expected nothing after the value", line: 1, column: 4)) { try JSONParser.parse("{} x".utf8) }
    }

    @Test func numbersThatJSONHasNotBecomeNull() {
        #expect(JSONValue.array([.number(.infinity), .number(.nan), .number(2), .number(1e300)]).text == "[null,null,2,1e+300]")
    }

    /// Random bytes give a value or a problem. A written value can be read again.
    @Test(.seeded) func randomBytesAreHarmless() throws {
        var random = TestRandom()
        let pieces = [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d83d", "0", "1", "-", ".", "e", "+", "true", "null", " ", "a", "\u{e9}", "\n",
            "\0",
        ].map { Array($0.utf8) }
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &random)).flatMap { _ in pieces.randomElement(using: &random) ?? [] }
            guard let value = try? JSONParser.parse(bytes) else { continue }
            // Compares texts: a number keeps its digits.
            #expect(try JSONParser.parse(value.text.utf8).text == value.text, "\(String(decoding: bytes, as: UTF8.self))")
        }
    }
}
