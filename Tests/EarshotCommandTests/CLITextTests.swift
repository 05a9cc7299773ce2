import Support
import Testing

@testable import CommandSupport
@testable import Commands
@testable import Doctor

/// Input and output of the command line without a server: times, addresses, figures, tables, JSON.
@Suite struct CLITextTests {
    // MARK: - Reading

    @Test(
        arguments: [
            ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("7d", 604_800_000), ("500ms", 500), ("1h30m", 5_400_000), ("0s", 0),
            ("1d2h3m4s5ms", 93_784_005), ("3650d", 315_360_000_000), ("1.5h", 5_400_000), ("30", 30_000),
        ] as [(String, Int64)])
    func spans(_ text: String, _ milliseconds: Int64) throws {
        #expect(try #require(Span(argument: text)).milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "s", "-5s", "+5s", "5s1m", "5m5m", "1y", "３０s", "30S", "3651d", "999999999999d", "9999999999999s",
        "1h-5m", "5m ", "1.5h30m",
    ])
    func noSpans(_ text: String) {
        #expect(Span(argument: text) == nil)
    }

    /// A printed span parses as the same span.
    @Test(arguments: [0, 1, 999, 1_000, 59_000, 60_000, 90_000, 3_600_000, 86_400_000, 86_400_001] as [Int64])
    func spansRoundTrip(_ milliseconds: Int64) throws {
        let span = try #require(Span(argument: "\(milliseconds)ms"))
        #expect(Span(argument: "\(span)") == span)
        #expect(try #require(span.json.number) * 1_000 == Double(milliseconds))
    }

    @Test(
        arguments: [
            (0, "0s"), (999, "0s"), (-5, "0s"), (59_999, "59s"), (60_000, "1m00s"), (192_000, "3m12s"), (3_599_999, "59m59s"),
            (7_500_000, "2h05m"),
            (86_400_000, "1d0h"), (356_400_000, "4d3h"),
        ] as [(Int64, String)])
    func ages(_ milliseconds: Int64, _ text: String) {
        #expect(Span.short(milliseconds: milliseconds) == text)
    }

    /// Expected values by `date -u -d … +%s`.
    @Test(
        arguments: [
            ("1970-01-01T00:00:00.000Z", 0), ("2026-11-21T10:00:00.000Z", 1_795_255_200_000), ("2026-11-21T10:00:00Z", 1_795_255_200_000),
            ("2026-11-21T10:00Z", 1_795_255_200_000), ("2026-11-21T10:00", 1_795_255_200_000), ("2026-11-21 10:00", 1_795_255_200_000),
            ("2026-11-21T12:00:00+02:00", 1_795_255_200_000), ("2026-11-21T04:30-0530", 1_795_255_200_000),
            ("2026-11-21", 1_795_219_200_000),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999), ("2024-02-29T00:00Z", 1_709_164_800_000), ("2100-03-01", 4_107_542_400_000),
            ("2026-11-21T10:00:00.5Z", 1_795_255_200_500), ("2026-11-21T10:00:00.123456789Z", 1_795_255_200_123),
        ] as [(String, Int64)])
    func instants(_ text: String, _ milliseconds: Int64) throws {
        let instant = try #require(Moment(argument: text))
        #expect(instant.milliseconds == milliseconds)
        #expect(Moment(argument: "\(instant)") == instant)
    }

    @Test(arguments: [
        "", "tomorrow", "2026", "2026-13-01", "2026-00-01", "2026-02-29", "2100-02-29", "2026-04-31", "1969-12-31", "2026-11-21T24:00Z",
        "2026-11-21T10",
        "2026-11-21T10:60Z", "2026-11-21T10:00:60Z", "2026-11-21T10:00:00.Z", "2026-11-21T10:00ZZ", "2026-11-21T10:00+25:00",
        "2026-11-21T10:00+2",
        "2026-1-1", "20261121", "2026-11-21Z5", "1970-01-01T00:00+01:00", "２０２６-11-21",
    ])
    func noInstants(_ text: String) {
        #expect(Moment(argument: text) == nil)
    }

    @Test(arguments: [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", true), ("HTTP://Localhost:80/", "http://Localhost", true),
        ("https://live.example.com", "https://live.example.com", false),
        ("https://live.example.com:8443/earshot/", "https://live.example.com:8443/earshot", false),
        ("http://[::1]:8080", "http://[::1]:8080", true), ("https://[2001:db8::1]", "https://[2001:db8::1]", false),
        ("http://127.example.com", "http://127.example.com", false),
        ("http://127.0.0.1.example.com:1", "http://127.0.0.1.example.com:1", false),
    ])
    func addresses(_ text: String, _ printed: String, _ isLoopback: Bool) throws {
        let address = try #require(ServerAddress(argument: text))
        #expect("\(address)" == printed)
        #expect(address.isLoopback == isLoopback)
    }

    @Test(arguments: [
        "", "127.0.0.1:8080", "ftp://host", "http://", "http://:80", "http://host:0", "http://host:65536", "http://host:x",
        "http://user@host", "http://host?x",
        "http://host/#", "http://ho st", "http://[::1", "http://::1:80", "http://[1.2.3.4]x", "http://höst", "http://host\r\nX: y",
    ])
    func noAddresses(_ text: String) {
        #expect(ServerAddress(argument: text) == nil)
    }

    /// An id cannot leave its path segment, whatever its characters.
    @Test(arguments: [
        ("r1", "r1"), ("a/b", "a%2Fb"), ("..", "%2E%2E"), (".", "%2E"), ("a.b", "a.b"), ("é", "%C3%A9"), ("a?b#c%", "a%3Fb%23c%25"),
        ("\r\n", "%0D%0A"),
    ])
    func segments(_ id: String, _ encoded: String) throws {
        let address = try #require(ServerAddress(argument: "http://h/p"))
        #expect(address.target(["rooms", id], [("q", id), ("none", nil)]) == "/p/rooms/\(encoded)?q=\(encoded)")
    }

    @Test func streamsAreAppAndName() throws {
        let stream = try #require(StreamArgument(argument: "live/a/b"))
        #expect(stream.segments == ["streams", "live", "a/b"])
        for wrong in ["", "live", "/a", "live/"] { #expect(StreamArgument(argument: wrong) == nil) }
    }

    @Test func policies() throws {
        #expect(try #require(PolicyOption(argument: "grace=60s")).value == 60)
        #expect(try #require(PolicyOption(argument: "grace=60")).value == 60)
        #expect(try #require(PolicyOption(argument: "grace=1500ms")).value == .number(1.5))
        #expect(try #require(PolicyOption(argument: "heartbeatMisses=5")).name == "heartbeatMisses")
        #expect(try #require(PolicyOption(argument: "record=always")).value == "always")
        for wrong in ["", "grace", "=5", "grace=", "grace=soon", "record="] { #expect(PolicyOption(argument: wrong) == nil) }
    }

    // MARK: - Figures

    @Test(
        arguments: [
            (0, "0 b/s"), (999, "999 b/s"), (1_000, "1 kb/s"), (128_000, "128 kb/s"), (2_512_345, "2.5 Mb/s"), (999_499, "999 kb/s"),
            (999_500, "1 Mb/s"),
            (99_940, "99.9 kb/s"), (99_960, "100 kb/s"),
        ] as [(Int64, String)])
    func bitRates(_ value: Int64, _ text: String) {
        #expect(HumanUnits.bitRate(value) == text)
    }

    @Test func figures() {
        #expect(HumanUnits.bytes(1_234_567) == "1.2 MB")
        #expect(HumanUnits.bytes(.max) == "9223372 TB")
        #expect(HumanUnits.bytes(nil) == nil)
        #expect(HumanUnits.decimal(29.97002) == "29.97")
        #expect(HumanUnits.decimal(30.0001, digits: 1) == "30")
        for odd in [Double.nan, .infinity, -.infinity, 1e300] { #expect(HumanUnits.decimal(odd) == nil) }
    }

    // MARK: - Text on a terminal

    @Test(arguments: [
        ("abc", 3), ("", 0), ("前門", 4), ("ｈｉ", 4), ("ﾊﾝｶｸ", 4), ("한국", 4), ("e\u{301}", 1), ("é", 1), ("👍", 2), ("👨‍👩‍👧", 2), ("🇨🇳", 2),
        ("❤️", 2), ("❤", 1), ("…", 1),
    ])
    func widths(_ text: String, _ columns: Int) {
        #expect(DisplayText.width(text) == columns)
    }

    @Test func cutsFitTheirColumns() {
        #expect(DisplayText.truncated("abcdef", to: 6) == "abcdef")
        #expect(DisplayText.truncated("abcdef", to: 4) == "abc…")
        // A wide character does not fit into one column.
        #expect(DisplayText.truncated("前門前門", to: 4) == "前…")
        #expect(DisplayText.truncated("前門", to: 1) == "…")
        #expect(DisplayText.truncated("前門", to: 0) == "")
    }

    /// Titles and client names cannot move the cursor, colour or reorder the text around them.
    @Test func controlsAreEscaped() {
        #expect(DisplayText.escaped("a\u{1B}[31m\n\t\r\u{9B}b\u{202E}c\u{7F}") == #"a\u{1b}[31m\n\t\r\u{9b}b\u{202e}c\u{7f}"#)
        #expect(DisplayText.escaped("前門 👨‍👩‍👧 é") == "前門 👨‍👩‍👧 é")
    }

    private static let table: Table = {
        var table = Table([.left("ID"), .right("N"), .text("TITLE")])
        table.add(["r1", "7", "前門"])
        table.add(["r22", "1234", "a title of some length"])
        table.add([.init("r3", .green), .init(nil), .init("")])
        return table
    }()

    @Test func tablesAlign() {
        #expect(
            Self.table.lines() == [
                "ID      N  TITLE",
                "r1      7  前門",
                "r22  1234  a title of some length",
                "r3      -  -",
            ])
        #expect(Self.table.lines(colour: true).last == "\u{1B}[32mr3\u{1B}[0m      -  -")
        #expect(Self.table.lines(colour: true).first?.hasPrefix("\u{1B}[1mID\u{1B}[0m") == true)
    }

    @Test func narrowTerminalsCutTheTextFirst() {
        #expect(
            Self.table.lines(width: 24) == [
                "ID      N  TITLE",
                "r1      7  前門",
                "r22  1234  a title of s…",
                "r3      -  -",
            ])
        for width in 1...40 {
            for line in Self.table.lines(width: width) { #expect(DisplayText.width(line) <= width, "\(width): \(line)") }
        }
    }

    // MARK: - JSON

    @Test func jsonIsPrintedInOrder() throws {
        let value = try JSONValue.answer(
            #"{"b":[1,2.5,{}],"a":{"z":null,"y":true},"c":"é\u001b\u009b\"\\","d":[],"e":9007199254740993}"#.utf8)
        #expect(
            value.indented() == #"""
                {
                  "a": {
                    "y": true,
                    "z": null
                  },
                  "b": [
                    1,
                    2.5,
                    {}
                  ],
                  "c": "é\u001b\u009b\"\\",
                  "d": [],
                  "e": 9007199254740993
                }
                """#)
        #expect(try JSONValue.answer(value.indented().utf8).indented() == value.indented())
    }

    @Test func jsonIsReadLeniently() throws {
        let value = try JSONValue.answer(#"{"n":1,"d":1.5,"s":"x","l":[1],"t":true}"#.utf8)
        #expect(value["n"].integer == 1 && value["n"].number == 1 && value["n"].string == nil && value["n"].bool == nil)
        #expect(value["d"].integer == 2 && value["d"].plain == "1.5")
        #expect(value["t"].plain == "yes" && value["t"].integer == nil)
        #expect(value["nothing"]["at"]["all"].isNull && value["s"]["x"].isNull && value["s"].list.isEmpty)
        for wrong in ["", "{", "nope", "{\"a\":}", "[1,,2]"] { #expect(throws: (any Error).self) { try JSONValue.answer(wrong.utf8) } }
    }

    /// The peer chooses the nesting depth.
    @Test func deepJSONIsAnError() {
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(throws: (any Error).self) { try JSONValue.answer(deep.utf8) }
    }
}
