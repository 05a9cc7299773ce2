import APITestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import EarshotServer
@testable import ServerConfiguration

/// The call that lists the settings in force.
@Suite struct SettingListTests {
    private static let secret = "abcdefghijklmnopqrstuvwxyz0123456789"

    @Test func settingsAreListedWithoutSecrets() async throws {
        try await UnboundServer.run({ $0.credentials.jwtKey = Self.secret }) { server in
            let api = try await CheckedAPI(server)
            let answer = try await api("GET", "server/settings", token: server.token)
            #expect(answer.status == 200 && !answer.text.contains(Self.secret))
            let all = try await api.ok("GET", "server/settings")["list"].list
            #expect(all.compactMap { $0["setting"].string } == ConfigSetting.all.map(\.path))
            let key = try #require(all.first { $0["setting"].string == "credentials.jwtKey" })
            #expect(key["isSet"].bool == true && key["isHidden"].bool == true && key["value"].string == nil)
            // Nobody says where this server's settings come from.
            #expect(all.allSatisfy { $0["source"].string == "default" && $0["place"].string == nil })
        }
    }
}
