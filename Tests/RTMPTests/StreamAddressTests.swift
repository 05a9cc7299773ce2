import RTMP
import Testing

@Suite struct StreamAddressTests {
    private static let good: [(app: String, name: String, expected: [String])] = [
        ("live", "cam", ["live", "cam", ""]),
        ("live/", "cam", ["live", "cam", ""]),
        ("/live", "/cam", ["live", "cam", ""]),
        ("live", "room/alice", ["live", "room/alice", ""]),
        ("talk/room1", "alice", ["talk", "room1/alice", ""]),
        ("talk//room1/", "//alice/", ["talk", "room1/alice", ""]),
        ("live", "cam?txSecret=1&txTime=2", ["live", "cam", "txSecret=1&txTime=2"]),
        ("live?token=a", "cam", ["live", "cam", "token=a"]),
        ("live?a=1", "cam?b=2", ["live", "cam", "a=1&b=2"]),
        ("live?", "cam?", ["live", "cam", ""]),
        ("live", "cam?a=b?c", ["live", "cam", "a=b?c"]),
        ("live", "cam?path=/../x", ["live", "cam", "path=/../x"]),
        ("live", "höhle 7", ["live", "höhle 7", ""]),
        ("live", "...", ["live", "...", ""]),
        ("live", "a..b", ["live", "a..b", ""]),
        ("live", "mp4:cam", ["live", "mp4:cam", ""]),
        // The whole address in the field for the server, with a slash too many or a query.
        ("live/cam", "", ["live", "cam", ""]), ("live/cam/", "", ["live", "cam", ""]), ("live/cam", "/", ["live", "cam", ""]),
        ("live/cam?k=v", "", ["live", "cam", "k=v"]), ("live/cam", "?k=v", ["live", "cam", "k=v"]),
        ("live/cam?k=a/b", "", ["live", "cam", "k=a/b"]), ("live", "cam?k=a/b", ["live", "cam", "k=a/b"]),
        ("talk/room1/alice", "", ["talk", "room1/alice", ""]),
    ]

    @Test(arguments: good) func `app and name make one address, wherever the client cut them`(app: String, name: String, expected: [String])
        throws
    {
        let address = try StreamAddress(app: app, name: name)
        #expect([address.app, address.name, address.query] == expected)
        #expect(address.path == "\(expected[0])/\(expected[1])")
    }

    private static let bad: [(app: String, name: String, error: StreamAddressError)] = [
        ("", "cam", .emptyApp), ("/", "cam", .emptyApp), ("?a=1", "cam", .emptyApp),
        ("live", "", .emptyName), ("live", "/", .emptyName), ("live", "?key=1", .emptyName), ("", "", .emptyName),
        ("live", "..", .dotComponent), ("live", "../../etc/passwd", .dotComponent), ("live", "a/../b", .dotComponent),
        ("live", "a/.", .dotComponent), ("..", "cam", .dotComponent), ("live/..", "cam", .dotComponent),
        ("live", "cam\0", .controlCharacter(0)), ("live", "\0", .controlCharacter(0)), ("li\nve", "cam", .controlCharacter(10)),
        ("live", "a\u{7F}b", .controlCharacter(0x7F)), ("live", "a\u{1B}[31m", .controlCharacter(0x1B)),
        ("live", String(repeating: "n", count: 10_240), .tooLong(bytes: 10_244, limit: 256)),
        ("live", String(repeating: "ü", count: 127), .tooLong(bytes: 258, limit: 256)),
        ("live", "cam?" + String(repeating: "q", count: 4097), .queryTooLong(bytes: 4097, limit: 4096)),
        ("live", "../\u{301}x", .combinedSeparator), ("live", "/\u{301}../x", .combinedSeparator),
        ("live", "a/\u{1F3FB}", .combinedSeparator),
        ("live", "a\u{D4E}/b", .combinedSeparator), ("live/\u{301}", "cam", .combinedSeparator),
        ("live", "cam?\u{301}k=v", .combinedSeparator), ("live", "\u{654}cam", .combinedSeparator),
    ]

    @Test(arguments: bad) func `an unusable name is refused by its reason`(app: String, name: String, error: StreamAddressError) {
        #expect(throws: error) { try StreamAddress(app: app, name: name) }
        #expect(!error.description.isEmpty)
    }

    /// Invisible characters by kind: zero width, soft hyphen, bidi controls, BOM, separators, fillers, selectors, tags.
    @Test(
        arguments: [
            0x200B, 0x200C, 0x200D, 0x2060, 0x00AD, 0x200E, 0x200F, 0x061C, 0x202A, 0x202E, 0x2066, 0x2069, 0xFEFF, 0x2028, 0x2029, 0x85,
            0x9F,
            0x034F, 0x115F, 0x3164, 0xFFA0, 0x180E, 0xFE0F, 0xE0100, 0xE0001, 0xE0041, 0xFFF9, 0x206A, 0x1D173,
        ] as [UInt32]) func `an invisible character is refused wherever it stands`(code: UInt32) throws
    {
        let character = Character(try #require(Unicode.Scalar(code)))
        for name in ["\(character)cam", "ca\(character)m", "cam\(character)"] {
            #expect(throws: StreamAddressError.controlCharacter(code)) { try StreamAddress(app: "live", name: name) }
            #expect(throws: StreamAddressError.controlCharacter(code)) { try StreamAddress(app: name, name: "cam") }
        }
        // A query may contain any character.
        #expect(try StreamAddress(app: "live", name: "cam?a=\(character)").name == "cam")
    }

    @Test(arguments: ["камера", "カメラ", "กล้อง", "कैमरा", "كاميرا", "\u{E9}", "한국", "ﬁ", "x\u{301}", "📷", "cam 1", "a·b"])
    func `a name of any script passes`(name: String) throws {
        #expect(try StreamAddress(app: "live", name: name).name == name)
    }

    /// Two spellings of one text are two names to signatures and one to Swift: only the composed one is a name. A query has no names.
    @Test(arguments: ["cafe\u{301}", "\u{1112}\u{1161}\u{11AB}", "\u{212B}", "\u{212A}amera", "a\u{301}\u{323}", "room/cafe\u{301}/x"])
    func `a name in another spelling than Form C is refused in words`(name: String) throws {
        for (app, name) in [("live", name), (name, "cam"), ("live/\(name)", "cam")] {
            let error = #expect(throws: StreamAddressError.self) { try StreamAddress(app: app, name: name) }
            #expect(error?.description.hasPrefix("the name is not in Unicode Normalization Form C: write ") == true)
        }
        #expect(try StreamAddress(app: "live", name: "cam?user=\(name)").query.utf8.elementsEqual("user=\(name)".utf8))
    }

    /// Unicode writes at least four digits.
    @Test(arguments: [(7 as UInt32, "U+0007"), (0x200E, "U+200E"), (0xE0001, "U+E0001")])
    func `the refused character is named`(code: UInt32, shown: String) {
        #expect("\(StreamAddressError.controlCharacter(code))".contains("character, \(shown);"))
    }

    /// A name as clients put it into a URL, and the same one by HTTP. Malformed encoding and other text than UTF-8 stay as sent.
    private static let encoded: [(app: String, name: String, path: String)] = [
        ("live", "with%20space", "live/with space"), ("live", "with space", "live/with space"), ("li%76e", "cam", "live/cam"),
        ("live/caf%C3%A9", "", "live/caf\u{E9}"), ("live", "100%", "live/100%"), ("live", "100%zz", "live/100%zz"),
        ("live", "a%2520b", "live/a%20b"), ("live", "a%ffb", "live/a%ffb"), ("live", "c%20d/a%ffb", "live/c d/a%ffb"),
        ("live", "a+b", "live/a+b"),
        (String(repeating: "%61", count: 250), "cam", String(repeating: "a", count: 250) + "/cam"),
    ]

    @Test(arguments: encoded) func `an encoded name is the same name`(app: String, name: String, path: String) throws {
        let address = try StreamAddress(encodedApp: app, name: "\(name)?k=%20")
        #expect(address.path.utf8.elementsEqual(path.utf8) && address.query == "k=%20", "only the credential's reader decodes a query")
    }

    /// What the rule on names refuses is refused in disguise too. A hidden separator would make another name.
    private static let disguised: [(app: String, name: String, error: StreamAddressError)] = [
        ("live", "%2e%2e", .dotComponent), ("live", "a/%2E/b", .dotComponent), ("%2e%2e", "cam", .dotComponent),
        ("live", "a%00b", .controlCharacter(0)), ("live", "a%0Ab", .controlCharacter(10)),
        ("live", "a%E2%80%8Bb", .controlCharacter(0x200B)),
        ("live", "a%2Fb", .encodedSeparator), ("live", "..%2fetc", .encodedSeparator), ("live%2Fx", "cam", .encodedSeparator),
        ("live", "cam%3Ftoken=x", .encodedSeparator), ("live", "/%CC%81x", .combinedSeparator),
        ("live", String(repeating: "%61", count: 257), .tooLong(bytes: 771, limit: 256)), ("live", "", .emptyName),
        ("live", String(repeating: "%61", count: 253), .tooLong(bytes: 257, limit: 256)),
    ]

    @Test(arguments: disguised) func `encoding opens no door`(app: String, name: String, error: StreamAddressError) {
        #expect(throws: error) { try StreamAddress(encodedApp: app, name: name) }
    }

    @Test func `another spelling is refused when it is encoded too`() {
        let error = #expect(throws: StreamAddressError.self) { try StreamAddress(encodedApp: "live", name: "cafe%CC%81") }
        #expect(error?.description.hasPrefix("the name is not in Unicode Normalization Form C: write ") == true)
    }

    @Test func `names and queries at their limits pass`() throws {
        let name = String(repeating: "n", count: 252)
        let query = String(repeating: "q", count: 4096)
        let address = try StreamAddress(app: "live", name: "\(name)?\(query)")
        #expect(address.name == name && address.query == query)
    }
}
