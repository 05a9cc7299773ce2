import ServerConfiguration
import Testing

/// The settings of ICE servers.
@Suite struct ConfigICETests {
    private static func load(_ flags: [String: String]) throws(ConfigError) -> (config: ServerConfig, warnings: [String], yaml: String) {
        let loaded = try ServerConfig.load(file: nil, environment: [:], flags: flags)
        return (loaded.config, loaded.warnings, loaded.yaml)
    }

    @Test(arguments: [
        "stun:t.example", "stun:t.example:3478", "stun:192.0.2.1", "turn:[2001:db8::1]", "turn:[2001:db8::1]:3478?transport=tcp",
        "turn:t.example?transport=udp", "turns:t.example:443?transport=tcp",
    ]) func urls(_ url: String) throws {
        #expect(try Self.load(["ice.urls": url, "ice.secret": "12345678"]).config.ice.urls == [url])
    }

    @Test(arguments: [
        "t.example", "stun:", "stun://t.example", "stuns:t.example", "http://t.example", "turn:t.example:0", "turn:t.example:70000",
        "turn:t.example:", "turn:t example", "stun:t.example?transport=udp", "turn:t.example?transport=sctp", "turn:t.example?x=y",
        "turn:t.example/x", "turn:2001:db8::1", "turn:[fe80::1%eth0]", "TURN:t.example", "turn:-x.example",
    ]) func noURLs(_ url: String) {
        let error = #expect(throws: ConfigError.self) { try Self.load(["ice.urls": url]) }
        #expect(error?.mistakes.map(\.path) == ["ice.urls"], "\(error.debugDescription)")
        #expect(error?.description.contains("is not stun:HOST, turn:HOST or turns:HOST") == true, "\(error.debugDescription)")
    }

    @Test(arguments: [
        (
            ["ice.secret": "12345678", "ice.username": "mesh", "ice.credential": "hush"], "ice.secret",
            "excludes ice.username and ice.credential"
        ),
        (["ice.secret": "12345678", "ice.credential": "hush"], "ice.secret", "excludes ice.username and ice.credential"),
        (["ice.username": "mesh"], "ice.username", "needs ice.credential"),
        (["ice.credential": "hush"], "ice.credential", "needs ice.username"),
        (["ice.secret": "hush"], "ice.secret", "has 4 bytes; expected 8 to 512"),
        (["ice.username": "a hush", "ice.credential": "x"], "ice.username", "of 6 bytes, is not 1 to 508 printable characters"),
        (["ice.urls": "turn:mesh:hush@t.example"], "ice.urls", "expected stun:HOST"),
        (["ice.lifetime": "59s"], "ice.lifetime", "out of range"),
        (["ice.lifetime": "8d"], "ice.lifetime", "out of range"),
    ]) func mistakes(_ flags: [String: String], _ path: String, _ words: String) {
        let error = #expect(throws: ConfigError.self) { try Self.load(flags) }
        #expect(error?.mistakes.map(\.path) == [path], "\(error.debugDescription)")
        #expect(error?.description.contains(words) == true && error?.description.contains("hush") == false, "\(error.debugDescription)")
    }

    /// A TURN server without a credential is of no use, and the start says so.
    @Test func warnings() throws {
        func isWarned(_ flags: [String: String]) throws -> Bool {
            try Self.load(flags).warnings.contains { $0.hasPrefix("ice.urls: its TURN servers are not handed out") }
        }
        #expect(try isWarned(["ice.urls": "stun:t.example,turn:t.example"]))
        #expect(try !isWarned(["ice.urls": "stun:t.example"]))
        #expect(try !isWarned(["ice.urls": "turn:t.example", "ice.secret": "12345678"]))
        #expect(try !isWarned(["ice.urls": "turn:t.example", "ice.username": "mesh", "ice.credential": "x"]))
    }

    @Test func notShown() throws {
        for flags in [["ice.secret": "hush-hush-hush"], ["ice.username": "mesh", "ice.credential": "hush-hush-hush"]] {
            let loaded = try Self.load(flags)
            #expect(loaded.yaml.contains("(set, not shown)") && !loaded.yaml.contains("hush"))
            let changes = ServerConfig().adopting(loaded.config).applied.map(\.description)
            #expect(changes.count == flags.count && !changes.joined().contains("hush"), "\(changes)")
        }
    }
}
