import Foundation
import Logging
import Rooms
import ServerTestSupport
import Support
import Testing

@testable import ServerConfiguration

@Suite struct ConfigTests {
    @Test func defaults() throws {
        let loaded = try ServerConfig.load(file: nil, environment: [:], flags: [:])
        #expect(loaded.config == ServerConfig())
        #expect(ConfigSetting.all.allSatisfy { loaded.origin(of: $0.path) == .defaults })
        #expect(loaded.config.rtmps.address == nil)
        #expect(loaded.config.access.publishFrom.map(\.description) == ["127.0.0.0/8", "::1/128"])
    }

    /// A default outside its own range would be refused when printed and read again.
    @Test func everyDefaultIsValid() throws {
        for setting in ConfigSetting.all {
            var config = ServerConfig()
            guard let values = setting.values(config) else { continue }
            #expect(throws: Never.self, "\(setting.path)") { try setting.assign(values, &config) }
            #expect(config == ServerConfig(), "\(setting.path)")
        }
    }

    @Test func theReferenceIsCurrent() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../docs/configuration.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text == ConfigReference.markdown, "make it again: earshot config reference > docs/configuration.md")
        for setting in ConfigSetting.all { #expect(text.contains("\n| `\(setting.path)`"), "\(setting.path)") }
    }

    @Test(arguments: [
        ("relay.gopCache.maxBytes", "EARSHOT_RELAY_GOP_CACHE_MAX_BYTES"), ("rtmp.listen", "EARSHOT_RTMP_LISTEN"),
        ("limits.connectionsPerAddress", "EARSHOT_LIMITS_CONNECTIONS_PER_ADDRESS"),
    ])
    func variableNames(path: String, name: String) throws {
        #expect(try #require(ConfigSetting.byPath[path]).environmentName == name)
    }

    /// Valid, and probably a mistake: the setting or variable, and part of the warning.
    @Test(arguments: [
        ("relay: {maxBehind: 5000}", "relay.maxBehind: 5000 counts as seconds (5000s); write 5000s, or 5000ms"),
        ("relay: {maxBehind: 83m}", "relay.maxBehind: slow viewers may be 83m behind live"),
        ("rooms: {policy: {retention: 1ms}}", "rooms.policy.retention: ended rooms are forgotten after 1ms"),
        ("limits: {connections: 100, publishersTotal: 200}", "limits.publishersTotal (200) is never reached"),
    ]) func improbableValuesAreWarnedOf(_ text: String, _ part: String) throws {
        try Scratch.use { scratch in
            let loaded = try ServerConfig.load(file: try scratch.write(text), environment: [:], flags: [:])
            #expect(loaded.warnings.contains { $0.contains(part) }, "\(loaded.warnings)")
        }
    }

    @Test func foreignVariablesAreWarnedOf() throws {
        let environment = ["EARSHOT_FOO": "1", "EARSHOT_TOKEN": "x", "EARSHOT_SERVICE_HOST": "10.0.0.1"]
        let loaded = try ServerConfig.load(file: nil, environment: environment, flags: [:])
        #expect(loaded.warnings == ["EARSHOT_FOO is no setting's variable and is not read"])
    }

    /// What a list's items have wrong, all at once.
    @Test func allItemsOfAListAreChecked() throws {
        let error = #expect(throws: ConfigError.self) {
            try ServerConfig.load(file: nil, environment: ["EARSHOT_ACCESS_PLAY_FROM": "10.0.0.0/99, here, 10.0.0.0/8"], flags: [:])
        }
        #expect(
            error?.description.contains("10.0.0.0/99") == true && error?.description.contains("here") == true,
            "\(String(describing: error))")
    }

    @Test func aFileSetsEverything() throws {
        try Scratch.use { scratch in
            let file = try scratch.write(
                """
                rtmp: {listen: "[::]:1945"}
                http:
                  listen: 0.0.0.0:0
                data:
                  directory: "a \\"quoted\\" folder"
                access:
                  publishFrom: any
                  playFrom: [10.0.0.0/8, "fd00::/8", 10.0.0.0/8]
                  apiFrom: []
                rooms:
                  policy: {grace: 1m, cleanStop: 500ms, mediaIdle: 90}
                relay:
                  maxBehind: 6s
                  gopCache:
                    maxBytes: 4MiB
                limits:
                  videoMessage: 2MiB
                  connections: 12
                log:
                  level: debug
                  format: JSON
                """)
            let config = try ServerConfig.load(file: file, environment: [:], flags: [:]).config
            var expected = ServerConfig()
            expected.rtmp.listen = HostPort(host: "::", port: 1945)
            expected.http.listen = HostPort(host: "0.0.0.0", port: 0)
            expected.data.directory = "a \"quoted\" folder"
            expected.access.publishFrom = CIDR.any
            expected.access.playFrom = [try CIDR(parsing: "10.0.0.0/8"), try CIDR(parsing: "fd00::/8")]
            expected.access.apiFrom = []
            expected.rooms.policy.graceMs = 60_000
            expected.rooms.policy.cleanStopMs = 500
            expected.rooms.policy.mediaIdleMs = 90_000
            expected.relay.maxBehindMs = 6_000
            expected.relay.gopCache.maxBytes = 4 << 20
            expected.limits.videoMessageBytes = 2 << 20
            expected.limits.connections = 12
            expected.log.level = .debug
            expected.log.format = .json
            #expect(config == expected)
        }
    }

    @Test(arguments: [
        "", "\n# nothing\n", "---\n", "~", "relay:\n", "relay:\n  gopCache:\n  maxBehind:\n", "relay.maxBehind: 5s", "\u{FEFF}log:\n",
    ])
    func filesThatChangeNothing(text: String) throws {
        try Scratch.use { scratch in
            let loaded = try ServerConfig.load(file: scratch.write(text), environment: [:], flags: [:])
            #expect(loaded.config == ServerConfig())
        }
    }

    @Test func laterSourcesWin() throws {
        try Scratch.use { scratch in
            let file = try scratch.write("relay:\n  maxBehind: 6s\n  skipBehind: 2s\nlog: {level: warning}\n")
            let loaded = try ServerConfig.load(
                file: file,
                environment: [
                    "EARSHOT_RELAY_MAX_BEHIND": "7s", "EARSHOT_RELAY_SKIP_BEHIND": "3s", "EARSHOT_RTMP_LISTEN": "",
                    "EARSHOT_ACCESS_PLAY_FROM": "10.0.0.0/8, 192.168.0.0/16", "EARSHOT_ACCESS_API_FROM": "none",
                    "EARSHOT_ACCESS_TRUSTED_PROXIES": "10.1.0.0/16", "PATH": "/bin",
                ],
                flags: ["relay.maxBehind": "8s", "rtmp.listen": "127.0.0.1:0"])
            #expect(loaded.config.relay.maxBehindMs == 8_000)
            #expect(loaded.config.relay.skipBehindMs == 3_000)
            #expect(loaded.config.log.level == .warning)
            #expect(loaded.config.access.playFrom.map(\.description) == ["10.0.0.0/8", "192.168.0.0/16"])
            #expect(loaded.config.access.apiFrom.isEmpty)
            #expect(loaded.config.access.trustedProxies.map(\.description) == ["10.1.0.0/16"])
            #expect(loaded.origin(of: "relay.maxBehind") == .flag("relay.maxBehind"))
            #expect(loaded.origin(of: "rtmp.listen") == .flag("--rtmp"))
            #expect(loaded.origin(of: "relay.skipBehind") == .environment("EARSHOT_RELAY_SKIP_BEHIND"))
            #expect(loaded.origin(of: "log.level") == .file(file, line: 4))
        }
    }

    // MARK: - Mistakes

    @Test func everyMistakeIsListed() throws {
        try Scratch.use { scratch in
            let file = try scratch.write(
                """
                rtmp:
                  listen: 1935
                relay:
                  maxBehind: abc
                  gopCach: {maxBytes: 3MiB}
                  gopCache: 5
                limits:
                  handshake: 0s
                  videoMessage: 1GiB
                  connections: many
                  connect: [1]
                access:
                  playFrom: [10.0.0.1/8]
                maxBehind: 3s
                log: {level: loud}
                """)
            let error = try Self.error(
                file: file, environment: ["EARSHOT_LIMITS_HANDSHAK": "3s", "EARSHOT_LOG_FORMAT": "xml"],
                flags: ["http.listen": "x", "htp.listen": "127.0.0.1:1"])
            let expected = [
                "maxBehind: unknown key; did you mean relay.maxBehind? (F:14)",
                "relay.gopCach: unknown key; did you mean relay.gopCache? (F:5)",
                "relay.gopCache: is a single value; the section must be a mapping of settings (F:6)",
                "limits.connect: is a list; expected a duration, e.g. 5s or 500ms (F:11)",
                "rtmp.listen: \"1935\" has no host; expected HOST:PORT, e.g. 0.0.0.0:1935 or [::]:1935 (F:2)",
                "relay.maxBehind: \"abc\" is not a duration; expected e.g. 5s or 500ms (F:4)",
                "limits.handshake: \"0s\" is out of range; expected 100ms to 24h (F:8)",
                "limits.videoMessage: \"1GiB\" is out of range; expected 1KiB to 64MiB (F:9)",
                "limits.connections: \"many\" is not a whole number (F:10)",
                "access.playFrom: \"10.0.0.1/8\" has bits beyond its prefix; write 10.0.0.0/8 or 10.0.0.1/32 (F:13)",
                "log.level: \"loud\" is not one of trace, debug, info, notice, warning, error, critical (F:15)",
                "EARSHOT_LIMITS_HANDSHAK: unknown variable; did you mean EARSHOT_LIMITS_HANDSHAKE? (environment EARSHOT_LIMITS_HANDSHAK)",
                "log.format: \"xml\" is not one of text, json (environment EARSHOT_LOG_FORMAT)",
                "http.listen: \"x\" has no port; expected HOST:PORT, e.g. 0.0.0.0:1935 or [::]:1935 (flag --http)",
                "htp.listen: unknown key; did you mean http.listen? (flag htp.listen)",
            ]
            let lines = error.description.replacingOccurrences(of: file, with: "F").split(separator: "\n").map(String.init)
            #expect(Set(lines) == Set(expected))
            #expect(lines.count == expected.count)
        }
    }

    @Test(arguments: [
        ("a: [1", "line 2, column 1: not valid YAML"), ("relay:\n\tgrace: 1", "line 2, column 1"),
        ("rtmp:\n  listen: [::]:1935\n", "line 2, column "),
        ("log: {}\nlog: {}\n", "the same key twice: log"), ("rtmp: {}\nlog: {}\nrtmp: {}\n", "line 3, column 1"),
        ("log:\n\tlevel: info\n", "begins with a tab: YAML indents with spaces"),
        ("rtmp:\n  listen: [::1]:1935\n", "an IPv6 address needs quotes"),
        ("relay:\n  maxBehind: ~\n", "relay.maxBehind: is ~; leave the line out"),
        ("log: {}\n---\nlog: {}\n", "line 2, column 1"),
        ("a\u{1}b", "line 1, column 2"), ("x: *y", "line 1, column 4"), ("- 1\n- 2", "is a list; the file must be a mapping of settings"),
        ("5", "is a single value; the file must be a mapping of settings"),
        ("relay: {? [a] : 1}", "a key must be a single value, not a list"),
        ("relay: {maxBehind: {a: 1}}", "relay.maxBehind: is a mapping; expected a duration"),
        ("access: {playFrom: [[any]]}", "holds an item that is not a single value"),
        ("relay: {maxBehind: 6s}\nrelay.maxBehind: 7s\n", "relay.maxBehind: is set twice"),
        ("relay: {wholly: 1}", "relay.wholly: unknown key; relay has "), ("<<: {a: 1}", "<<: unknown key"),
        ("data: {directory: \"\"}", "\"\" is not a path"), ("data: {directory: \"a\\0b\"}", "is not a path"),
        ("limits: {partialBytes: 1MiB}", "1MiB must hold one message of limits.videoMessage (15MiB)"),
        (
            "limits: {bytesBeforePublish: 32KiB}",
            "limits.bytesBeforePublish: 32KiB must hold one message of limits.messageBeforePublish (64KiB)"
        ),
        ("relay: {skipBehind: 5s}", "relay.skipBehind: 5s must be less than relay.maxBehind (5s)"),
        ("relay: {coalesce: 1s}", "relay.coalesce: 1s must be less than relay.skipBehind (1s)"),
        ("relay: {maxBehind: 25h}", "out of range"), ("rooms: {policy: {cleanStop: -3s}}", "not a duration"),
        ("http: {listen: \"0.0.0.0:1935\"}", "http.listen: 0.0.0.0:1935 is already taken by rtmp.listen (127.0.0.1:1935)"),
        ("rtmps: {listen: \"127.0.0.1:1936\"}", "rtmps.listen: needs rtmps.certificate and rtmps.key"),
        ("https: {listen: \"127.0.0.1:8443\"}", "https.listen: needs rtmps.certificate and rtmps.key"),
        ("rtmps: {key: /nowhere/key.pem}", "rtmps.key: cannot read /nowhere/key.pem: No such file or directory"),
        ("rtmps: {certificate: /, key: /dev/zero}", "rtmps.key: cannot read /dev/zero: it is not a regular file"),
        ("rtmps: {certificate: /, key: /dev/zero}", "rtmps.certificate: cannot read /: it is a folder"),
        (
            "apps: {classroom: {rongcloud: {host: \"https://a.example\", appKey: k1}}}",
            "apps.classroom.rongcloud.host: needs apps.classroom.rongcloud.appKey and apps.classroom.rongcloud.secret"
        ),
        (
            "apps: {classroom: {rongcloud: {host: \"https://a.example/?x\", appKey: k1, secret: 12345678}}}",
            "apps.classroom.rongcloud.host: has a query"
        ),
        ("apps: {classroom: {rongcloud: {appKey: \"k 1\"}}}", "\"k 1\" is not 1 to 64 letters and digits"),
        (
            "database: {url: \"mysql://root:geheim@h/d\"}",
            "database.url: the value, of 23 bytes, has another scheme; expected postgresql://"
        ),
        ("database: {url: \"postgresql://u:ge heim@h/d\"}", "database.url: the value, of 26 bytes, holds a space; expected %20"),
        ("database: {url: db.example.com}", "database.url: the value, of 14 bytes, is not postgresql://"),
        ("database: {readers: 65}", "database.readers: "), ("database: {readers: 0}", "database.readers: "),
        ("cluster: {name: \"node 1\"}", "cluster.name: \"node 1\" is not 1 to 64 of A-Z a-z 0-9 _ . -"),
        ("recording: {apps: [\"cafe\u{301}\"]}", "recording.apps: \"cafe\u{301}\" is not in Unicode Normalization Form C"),
        ("snapshots: {intervalByApp: [\"cafe\u{301}=10s\"]}", "is not in Unicode Normalization Form C: write \"é\" as U+00E9"),
        ("data: {directory: /dev/null}", "data.directory: /dev/null is not a folder"),
    ])
    func badFiles(text: String, problem: String) throws {
        try Scratch.use { scratch in
            let error = try Self.error(file: scratch.write(text))
            #expect(error.description.contains(problem), "\(error)")
        }
    }

    @Test func unreadableFiles() throws {
        try Scratch.use { scratch in
            let absent = scratch.path("absent.yaml")
            #expect(try Self.error(file: absent).description == "cannot read \(absent): No such file or directory")
            #expect(try Self.error(file: scratch.folder.path).description.hasSuffix("it is a folder"))
            let binary = try scratch.write(bytes: [0x61, 0xFF, 0xFE])
            #expect(try Self.error(file: binary).description.hasSuffix("it is not UTF-8 text"))
            let huge = try scratch.write(String(repeating: "#\n", count: 1 << 20))
            #expect(try Self.error(file: huge).description.hasSuffix("it is larger than 1MiB"))
        }
    }

    @Test func certificates() throws {
        try Scratch.use { scratch in
            let certificate = try scratch.write("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", name: "cert.pem")
            let key = try scratch.write("-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n", name: "key.pem")
            let flags = ["rtmps.certificate": certificate, "rtmps.key": key]
            let loaded = try ServerConfig.load(file: nil, environment: [:], flags: flags)
            #expect(loaded.config.rtmps.address == HostPort(host: "127.0.0.1", port: 1936))

            let swapped = try Self.error(flags: ["rtmps.certificate": key, "rtmps.key": certificate])
            #expect(swapped.mistakes.map(\.problem) == ["no PEM certificate in \(key)", "no PEM private key in \(certificate)"])

            let alone = try Self.error(flags: ["rtmps.certificate": certificate])
            #expect(alone.description == "rtmps.certificate: needs rtmps.key (flag rtmps.certificate)")

            // The default RTMPS port counts too, but clashes only when RTMPS is on.
            let clash = try Self.error(flags: flags.merging(["http.listen": "127.0.0.1:1936"]) { $1 })
            #expect(clash.description == "http.listen: 127.0.0.1:1936 is already taken by rtmps.listen (127.0.0.1:1936) (flag --http)")
            #expect(throws: Never.self) { try ServerConfig.load(file: nil, environment: [:], flags: ["http.listen": "127.0.0.1:1936"]) }
        }
    }

    @Test(arguments: [
        (["EARSHOT_SERVICE_HOST": "10.0.0.1", "EARSHOT_PORT": "tcp://10.0.0.1:1935", "EARSHOT_PORT_1935_TCP_ADDR": "10.0.0.1"], false),
        (
            ["EARSHOT_RTMP_SERVICE_PORT": "1935", "EARSHOT_RTMP_PORT": "tcp://10.0.0.1:1935", "EARSHOT_RTMP_PORT_1935_TCP": "tcp://x"],
            false
        ),
        (["EARSHOT_SCRATCH": "/x", "EARSHOT_CORE": "1", "EARSHOTS": "1"], false), (["EARSHOT_RTMP_PORT": "1935"], true),
        (["EARSHOT_LIMIT_HANDSHAKE": "1s"], true), (["EARSHOT_LOG_COLOUR": "yes"], true),
    ])
    func unknownVariables(environment: [String: String], refused: Bool) {
        #expect((try? ServerConfig.load(file: nil, environment: environment, flags: [:])) == nil ? refused : !refused)
    }

    // MARK: - Printing

    @Test func printReadsBackToTheSame() throws {
        try Scratch.use { scratch in
            let certificate = try scratch.write("-----BEGIN CERTIFICATE-----", name: "c \"é\" \\ #: {n}.pem")
            let key = try scratch.write("-----BEGIN PRIVATE KEY-----", name: "k.pem")
            let flags = [
                "rtmp.listen": "[::1]:0", "rtmps.certificate": certificate, "rtmps.key": key, "access.playFrom": "any",
                "access.apiFrom": "none",
                "data.directory": "null\n\u{7F}\u{2028}\t\u{1F50A} ~ #x", "relay.coalesce": "0.02", "limits.videoMessage": "1234567",
                "limits.streamName": "1KiB", "relay.gopCache.maxDuration": "1500ms", "log.level": "trace",
            ]
            let first = try ServerConfig.load(file: nil, environment: [:], flags: flags)
            let file = try scratch.write(first.yaml, name: "odd\nname.yaml")
            let second = try ServerConfig.load(file: file, environment: [:], flags: [:])
            #expect(second.config == first.config)
            // Its origins are file names now, one of them with a line break.
            let third = try ServerConfig.load(file: scratch.write(second.yaml), environment: [:], flags: [:])
            #expect(third.config == first.config)
        }
        let defaults = try ServerConfig.load(file: nil, environment: [:], flags: [:])
        #expect(defaults.yaml.contains("  # Where to listen for RTMP. [EARSHOT_RTMP_LISTEN]\n  listen: \"127.0.0.1:1935\"  # default\n"))
        #expect(defaults.yaml.contains("    cleanStop: 3s  # default\n"))
        #expect(defaults.yaml.contains("  # certificate: (not set)\n"))
    }

    @Test func secretsAreNeitherPrintedNorQuoted() throws {
        let secret = "a-secret-of-more-than-32-bytes-in-all"
        for name in [
            "CREDENTIALS_KEY", "CREDENTIALS_BACKUP_KEY", "CREDENTIALS_JWT_KEY", "WEBHOOKS_KEY", "APPS_CLASSROOM_RONGCLOUD_SECRET",
            "ICE_SECRET",
        ] {
            let loaded = try ServerConfig.load(file: nil, environment: ["EARSHOT_\(name)": secret], flags: [:])
            #expect(!loaded.yaml.contains(secret))
            #expect(loaded.yaml.contains("(set, not shown)"), "\(name)")
            let error = try Self.error(environment: ["EARSHOT_\(name)": "shrt"])
            #expect(!error.description.contains("shrt"), "\(error)")
        }
        let error = try Self.error(environment: ["EARSHOT_CREDENTIALS_JWT_KEY": "31-bytes-are-one-too-few-for-it"])
        #expect(error.description.contains("has 31 bytes; expected 32 to 512"))
    }

    @Test func roomSettings() throws {
        try Scratch.use { scratch in
            let file = try scratch.write(
                """
                urls: {rtmp: "rtmp://live.example.com"}
                rooms:
                  autoCreate: never
                  duplicatePublishByApp: [live=reject, talk=takeover]
                  policy: {heartbeatMisses: 5, maxDuration: 1h}
                relay: {coalesceByApp: [live=100ms, talk=0s]}
                webhooks: {urls: ["https://a.example.com/x?y=1", "http://b.example.com"]}
                """)
            let config = try ServerConfig.load(file: file, environment: [:], flags: [:]).config
            #expect(config.urls.rtmp == "rtmp://live.example.com")
            #expect(config.rooms.autoCreate == .never)
            #expect(config.rooms.duplicatePublishByApp == ["live": .reject, "talk": .takeover])
            #expect(config.relay.coalesceByAppMs == ["live": 100, "talk": 0])
            #expect(config.rooms.policy.heartbeatMisses == 5 && config.rooms.policy.maxDurationMs == 3_600_000)
            #expect(config.webhooks.urls == ["https://a.example.com/x?y=1", "http://b.example.com"])
        }
        for (name, value, problem) in [
            ("URLS_RTMP", "http://x", "of 8 bytes, is not a URL, rtmp://…"),
            ("HOOKS_ON_PLAY", "ftp://x", "is not a URL, http://… or https://…"),
            ("WEBHOOKS_URLS", "https://u:p@x", "has a user name in it"),
            ("ROOMS_DUPLICATE_PUBLISH_BY_APP", "live", "is not app=value; expected e.g. live=reject"),
            ("RELAY_COALESCE_BY_APP", "live=2s", "out of range"),
            ("RELAY_COALESCE_BY_APP", "live=1s", "must be less than relay.skipBehind"),
            ("ROOMS_POLICY_HEARTBEAT_MISSES", "0", "out of range"), ("ROOMS_AUTO_CREATE", "yes", "is not one of loopback, always, never"),
        ] {
            let error = try Self.error(environment: ["EARSHOT_\(name)": value])
            #expect(error.description.contains(problem), "\(name): \(error)")
        }
    }

    @Test func everySettingIsPrintedOnce() throws {
        let yaml = try ServerConfig.load(file: nil, environment: [:], flags: [:]).yaml
        for setting in ConfigSetting.all {
            #expect(yaml.components(separatedBy: "[\(setting.environmentName)]").count == 2, "\(setting.path)")
        }
    }

    /// The shipped example loads as it is, and with all its settings uncommented (`#name: value`; prose has a space: `# …`).
    @Test func theExampleLoads() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let example = root.appendingPathComponent("deploy/earshot.yaml")
        #expect(throws: Never.self) { try ServerConfig.load(file: example.path, environment: [:], flags: [:]) }

        let text = try String(contentsOf: example, encoding: .utf8)
        let active = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let rest = line.drop { $0 == " " }
            return rest.hasPrefix("#") && !rest.hasPrefix("# ") ? line.prefix(line.count - rest.count) + rest.dropFirst() : line
        }
        let yaml = ConfigYAML(active.joined(separator: "\n"), file: "earshot.yaml")
        #expect(yaml.mistakes.isEmpty)
        #expect(Set(yaml.entries.map(\.setting.path)) == Set(ConfigSetting.all.map(\.path)))
        var config = ServerConfig()
        for entry in yaml.entries {
            #expect(throws: Never.self, "\(entry.setting.path)") { try entry.setting.assign(entry.values, &config) }
        }
        // The values shown are the defaults, but for those that have none.
        config.rtmps = ServerConfig.RTMPS()
        config.https = ServerConfig.HTTPS()
        config.data = ServerConfig().data
        config.database.url = nil
        config.cluster = ServerConfig.Cluster()
        config.urls = ServerConfig.URLs()
        config.credentials = ServerConfig.Credentials()
        config.hooks = ServerConfig.Hooks()
        config.webhooks.key = nil
        config.apps.rongcloud = ServerConfig.RongCloud()
        config.apps.classroomWhiteboard = nil
        config.ice = ServerConfig.ICE(lifetimeMs: config.ice.lifetimeMs)
        config.drain.reconnectTo = nil
        config.webrtc = ServerConfig.WebRTC()
        config.recording.directory = nil
        config.snapshots.directory = nil
        config.limits.memoryBytes = nil
        config.limits.connectionsPerAddress = nil
        #expect(config == ServerConfig())
    }

    // MARK: - Helpers

    private static func error(
        file: String? = nil, environment: [String: String] = [:], flags: [String: String] = [:]
    ) throws -> ConfigError {
        try #require(throws: ConfigError.self) { try ServerConfig.load(file: file, environment: environment, flags: flags) }
    }
}

/// A folder that is removed after its use.
private struct Scratch {
    let folder: URL

    static func use(_ body: (Scratch) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-config-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(Scratch(folder: folder))
    }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    func write(_ text: String, name: String = "earshot.yaml") throws -> String { try write(bytes: Array(text.utf8), name: name) }

    func write(bytes: [UInt8], name: String = "earshot.yaml") throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }
}
