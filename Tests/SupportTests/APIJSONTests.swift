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

/// Points in time in RFC 3339 form.
@Suite struct APIInstantTests {
    @Test(arguments: [
        ("1970-01-01T00:00:00.000Z", Int64(0)), ("1970-01-01T00:00:00.001Z", 1), ("2000-02-29T12:00:00.000Z", 951_825_600_000),
        ("2026-11-21T10:00:00.000Z", 1_795_255_200_000), ("2100-03-01T00:00:00.000Z", 4_107_542_400_000),
        ("9999-12-31T23:59:59.999Z", Instant.latest),
    ])
    func isWrittenAndRead(_ text: String, _ ms: Int64) {
        #expect(Instant.text(ms) == text)
        #expect(Instant.ms(text) == ms)
    }

    @Test(arguments: [
        ("2026-11-21T18:00:00+08:00", Int64(1_795_255_200_000)), ("2026-11-21T04:30:00-05:30", 1_795_255_200_000),
        ("2026-11-21t10:00:00z", 1_795_255_200_000), ("2026-11-21T10:00:00.5Z", 1_795_255_200_500),
        ("2026-11-21T10:00:00.123456789Z", 1_795_255_200_123),
    ])
    func otherSpellingsAreRead(_ text: String, _ ms: Int64) { #expect(Instant.ms(text) == ms) }

    @Test(arguments: [
        "", "2026-11-21", "2026-11-21T10:00:00", "2026-11-21 10:00:00Z", "2026-11-21T10:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+8:00", "2026-01-01T00:00:00+08",
        "2026-01-01T00:00:00+24:00", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
        "12026-01-01T00:00:00Z",
        "2026-1-01T00:00:00Z ", "-026-01-01T00:00:00Z", "２026-01-01T00:00:00Z", "2026-01-01T00:00:00.0000000000000000000000Z",
    ])
    func otherTextIsRefused(_ text: String) { #expect(Instant.ms(text) == nil) }

    @Test func everyDayIsWrittenAndReadBack() {
        for day in stride(from: Int64(0), through: Instant.latest / 86_400_000, by: 13) {
            let ms = day * 86_400_000 + day % 86_400_000
            #expect(Instant.ms(Instant.text(ms)) == ms)
        }
        #expect(Instant.text(.max) == Instant.text(Instant.latest))
        #expect(Instant.text(.min) == Instant.text(0))
    }
}
