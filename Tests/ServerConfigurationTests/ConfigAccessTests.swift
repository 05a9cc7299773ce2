import ServerConfiguration
import Testing

@testable import Support

/// Access settings, as written in a configuration.
@Suite struct ConfigAccessTests {
    private static func load(_ flags: [String: String]) throws(ConfigError) -> ServerConfig {
        try ServerConfig.load(file: nil, environment: [:], flags: flags).config
    }

    @Test func names() throws {
        let config = try Self.load(["http.hosts": "live.example.com,203.0.113.9,fd00::1", "access.proxyProtocolFrom": "10.0.0.0/8,::1"])
        #expect(config.http.hosts == ["live.example.com", "203.0.113.9", "fd00::1"])
        #expect(config.access.proxyProtocolFrom.map(\.description) == ["10.0.0.0/8", "::1/128"])
        #expect(try Self.load(["http.hosts": "any"]).http.hosts == ["any"])
        #expect(config.http.allowOrigin == ["*"])
        let two = ["https://a.example", "http://b.example:81"]
        for (text, origins) in [("*", ["*"]), ("", []), ("https://A.example, http://b.example:81", two)] {
            #expect(try Self.load(["http.allowOrigin": text]).http.allowOrigin == origins)
        }
        #expect(try Self.load(["access.proxyProtocolFrom": "none"]).access.proxyProtocolFrom.isEmpty)
    }

    /// Setting, value, and part of the error message.
    @Test(arguments: [
        ("http.allowOrigin", "good.example", "not an origin"), ("http.allowOrigin", "https://a.example/x", "not an origin"),
        ("http.hosts", "live.example.com:8080", "without a port"), ("http.hosts", "http://live.example.com", "host name"),
        ("http.hosts", "exa$mple", "host name"), ("http.hosts", "1.2.3", "host name"), ("access.proxyProtocolFrom", "any", "every address"),
        ("access.proxyProtocolFrom", "0.0.0.0/0", "every address"), ("access.proxyProtocolFrom", "10.0.0.1/8", "bits beyond"),
    ]) func mistakes(_ path: String, _ value: String, _ words: String) {
        let error = #expect(throws: ConfigError.self) { try Self.load([path: value]) }
        #expect(error?.mistakes.count == 1 && error?.mistakes.first?.path == path, "\(error?.description ?? "")")
        #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
    }

    @Test func keysThatBeginAlike() {
        let error = #expect(throws: ConfigError.self) {
            try Self.load(["credentials.key": "a key of ours", "credentials.backupKey": "a key of ours 2"])
        }
        #expect(error?.description.contains("credentials.backupKey: begins with the key of credentials.key") == true)
        #expect(error?.description.contains("ours") == false)
    }
}
