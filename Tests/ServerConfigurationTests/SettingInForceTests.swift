import Support
import Testing

@testable import ServerConfiguration

/// What a running server says of its settings.
@Suite struct SettingInForceTests {
    private static let secret = "abcdefghijklmnopqrstuvwxyz0123456789"

    @Test func valuesHaveTheirSources() throws {
        let loaded = try ServerConfig.load(
            file: nil, environment: ["EARSHOT_LIMITS_CONNECTIONS": "1234"], flags: ["rtmp.listen": "127.0.0.1:1999"])
        let all = Dictionary(uniqueKeysWithValues: loaded.config.settings(from: loaded.origins).map { ($0.path, $0) })
        #expect(all.count == ConfigSetting.all.count)
        let limit = try #require(all["limits.connections"])
        #expect(limit.value == "1234" && limit.isSet && limit.origin == .environment("EARSHOT_LIMITS_CONNECTIONS"))
        let address = try #require(all["rtmp.listen"])
        #expect(address.value == "127.0.0.1:1999" && address.origin == .flag("--rtmp") && address.applies == .restart)
        let other = try #require(all["relay.maxBehind"])
        #expect(other.isSet && other.origin == .defaults)
    }

    /// Neither a secret nor an address that may hold one is ever among the values.
    @Test func secretsAreNotShown() throws {
        var config = ServerConfig()
        let hidden = ConfigSetting.all.filter(\.isHidden)
        for setting in hidden {
            for text in [Self.secret, "https://a.example/\(Self.secret)", "rtmp://a.example/\(Self.secret)"] {
                do throws(ValueProblem) { try setting.assign([text], &config) } catch { continue }
            }
        }
        let all = config.settings(from: [:])
        let shown = all.filter(\.isHidden)
        #expect(shown.contains { $0.path == "credentials.jwtKey" && $0.isSet })
        #expect(shown.allSatisfy { $0.value == nil })
        #expect(!all.contains { $0.value?.contains(Self.secret) == true })
    }
}
