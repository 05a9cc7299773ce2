import RoomRegistry
import ServerConfiguration
import ServerData
import Store
import Streaming
import Testing

@testable import ControlAPI

/// Where a server keeps its rooms, by its settings.
@Suite struct StoreLocationTests {
    private static func cluster(_ key: String?) -> String? {
        var config = ServerConfig()
        config.database.url = "postgresql://h/d"
        config.cluster.key = key
        guard case .postgres(let location) = StoreLocation(config) else { return "a folder" }
        return location.cluster
    }

    /// Servers with one key have one fingerprint, which is not the key.
    @Test func aClusterIsNamedByItsKey() {
        let key = "a-key-of-a-cluster-0123456789abcdef"
        #expect(Self.cluster(nil) == nil)
        #expect(Self.cluster(key) == "69af0dff3b401303b476c0f262b8939f")
        #expect(Self.cluster(key + "x") != Self.cluster(key))
    }
}
