import Support
import Testing

@testable import ServerConfiguration

/// Settings that a reload applies, and settings that wait for a restart.
@Suite struct ConfigChangeTests {
    /// One of these is another valid value of every setting.
    private static let values: [[String]] = [
        ["on"], ["off"], ["7"], ["8"], ["9s"], ["150ms"], ["33MiB"], ["2MiB"], ["2KiB"], ["20000"], ["3d"], ["10.0.0.0/8"],
        ["127.0.0.1:7777"],
        ["rtmp://a.example"], ["rtmps://a.example"], ["https://a.example/x"], ["https://a.example"], ["never"], ["reject"], ["always"],
        ["debug"], ["json"], ["ts"],
        ["sha256"], ["ptt"], ["live=reject"], ["live=30ms"], ["live"], ["/tmp/other"], ["abcdefghijklmnopqrstuvwxyz0123456789"], ["code1"],
        ["live/*"], ["host.example"], ["1h"], ["2d"], ["postgresql://u:p@h/d"], ["http://a.example:80"],
        ["stun:a.example"], ["192.0.2.1"], ["refuse"],
    ]

    private static func changed(_ setting: ConfigSetting) -> ServerConfig? {
        let defaults = ServerConfig()
        for values in self.values {
            var config = defaults
            do throws(ValueProblem) { try setting.assign(values, &config) } catch { continue }
            if setting.values(config) != setting.values(defaults) { return config }
        }
        return nil
    }

    /// Each setting that applies at a reload is applied and reported; each other one keeps its value and is reported at every reload.
    @Test(arguments: ConfigSetting.all.map(\.path)) func everySettingIsToldOf(_ path: String) throws {
        let setting = try #require(ConfigSetting.byPath[path])
        let new = try #require(Self.changed(setting), "no other value of \(path) is known here")
        var running = ServerConfig()
        // Turning TLS on needs a restart; another certificate does not.
        let isTLS = ["rtmps.certificate", "rtmps.key"].contains(path)
        if isTLS {
            #expect(running.adopting(new).waiting.map(\.path) == [path])
            running.rtmps.certificate = "/tmp/certificate"
            running.rtmps.key = "/tmp/key"
        }
        var wanted = running
        setting.copy(new, &wanted)
        let change = running.adopting(wanted)
        switch setting.applies {
        case .reload:
            #expect(change.applied.map(\.path) == [path] && change.waiting.isEmpty)
            #expect(change.config == wanted)
            #expect(change.config.adopting(wanted).applied.isEmpty, "told once")
        case .restart:
            #expect(change.applied.isEmpty && change.waiting.map(\.path) == [path])
            #expect(change.config == running)
            #expect(change.config.adopting(wanted).waiting.map(\.path) == [path], "told again")
        }
        #expect(running.adopting(running).applied.isEmpty && running.adopting(running).waiting.isEmpty)
    }

    /// Settings from which structures are built at the start must not look as if a reload changed them.
    @Test(arguments: [
        "rtmp.listen", "http.listen", "https.listen", "data.directory", "database.url", "cluster.name", "cluster.address", "cluster.key",
        "cluster.previousKey", "relay.maxBehind", "recording.directory", "snapshots.directory",
        "log.format",
        "stats.keep", "console.enabled", "urls.http", "limits.lag",
    ]) func theseNeedARestart(_ path: String) { #expect(ConfigSetting.byPath[path]?.applies == .restart) }

    @Test(arguments: [
        "limits.connections", "limits.memory", "access.publishFrom", "access.apiFrom", "hooks.onPublish", "credentials.key",
        "webhooks.urls", "log.level",
        "recording.apps", "recording.retention", "drain.timeout", "rtmps.certificate", "rooms.policy.record",
    ]) func theseDoNot(_ path: String) { #expect(ConfigSetting.byPath[path]?.applies == .reload) }

    @Test func secretsAreNotTold() throws {
        var new = ServerConfig()
        new.credentials.key = "abcdefghijklmnop"
        let change = try #require(ServerConfig().adopting(new).applied.first)
        #expect(change.to == nil && change.from == nil && change.description == "credentials.key (not shown)")
    }

    @Test func valuesAreTold() throws {
        var new = ServerConfig()
        new.limits.connections = 100
        new.webhooks.urls = ["http://a.example/x"]
        new.snapshots.intervalByAppMs = ["live": 10_000]
        #expect(
            ServerConfig().adopting(new).applied.map(\.description) == [
                "webhooks.urls (not shown)", "snapshots.intervalByApp [] → [live=10s]", "limits.connections 20000 → 100",
            ])
    }

    /// Warned of only when everything is open, and others can reach it.
    @Test func everythingOpenIsWarnedOf() throws {
        var config = ServerConfig()
        #expect(ConfigWarnings.of(config).isEmpty)
        config.access.publishFrom = CIDR.any
        config.access.playFrom = CIDR.any
        config.access.apiFrom = CIDR.any
        #expect(ConfigWarnings.of(config).isEmpty, "on this machine only")
        config.rtmp.listen = HostPort(host: "0.0.0.0", port: 1935)
        #expect(ConfigWarnings.of(config).count == 1 && ConfigWarnings.of(config)[0].contains("rtmp.listen"))
        config.access.playFrom = CIDR.loopback
        #expect(ConfigWarnings.of(config).count == 1 && ConfigWarnings.of(config)[0].hasPrefix("everybody may push (access.publishFrom"))
        config.hooks.onPublish = "https://backend.example/publish"
        #expect(ConfigWarnings.of(config).isEmpty, "the hook decides")
    }
}
