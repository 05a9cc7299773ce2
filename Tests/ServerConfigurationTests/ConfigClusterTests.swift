import Testing

@testable import ServerConfiguration

/// The keys of a cluster. Read from the environment, which is where they should be.
@Suite struct ConfigClusterTests {
    /// 35 bytes.
    private static let key = "a-key-of-a-cluster-0123456789abcdef"
    private static let other = "another-key-of-a-cluster-0123456789"
    private static let url = ["EARSHOT_DATABASE_URL": "postgresql://h/d"]

    private static func load(_ variables: [String: String]) throws -> LoadedConfig {
        try ServerConfig.load(file: nil, environment: variables, flags: [:])
    }

    @Test func theyAreReadAndNotShown() throws {
        let loaded = try Self.load(
            Self.url.merging(["EARSHOT_CLUSTER_KEY": Self.key, "EARSHOT_CLUSTER_PREVIOUS_KEY": Self.other]) { $1 })
        #expect(loaded.config.cluster.key == Self.key && loaded.config.cluster.previousKey == Self.other)
        #expect(!loaded.yaml.contains(Self.key) && !loaded.yaml.contains(Self.other))
        #expect(loaded.yaml.contains("# key: (set, not shown)") && loaded.yaml.contains("# previousKey: (set, not shown)"))
        let change = ServerConfig().adopting(loaded.config)
        #expect(change.waiting.map(\.description).contains("cluster.key (not shown)"))
        #expect(change.config.cluster == ServerConfig.Cluster())
    }

    @Test func aRandomKeyOfOpensslIsOne() throws {
        let text = "q8Zk+V0m/3S2m0Jb6dYwK1x9Q7r5T4u3W2e1A0s9D8f7G6h5J4k3L2z1X0c9V8b="
        #expect(try Self.load(Self.url.merging(["EARSHOT_CLUSTER_KEY": text]) { $1 }).config.cluster.key == text)
    }

    /// The variables besides the database's, the setting that is named, and part of the message.
    @Test(arguments: [
        (["KEY": String(Self.key.dropLast(4))], "cluster.key", "has 31 bytes; expected 32 to 256 printable characters of ASCII"),
        (["KEY": String(repeating: "k", count: 257)], "cluster.key", "has 257 bytes; expected 32 to 256"),
        (["KEY": "\(Self.key) x"], "cluster.key", "holds a space or a character that is not printable ASCII"),
        (["KEY": "\(Self.key)\u{7F}"], "cluster.key", "holds a space or a character that is not printable ASCII"),
        (["KEY": Self.key, "PREVIOUS_KEY": "\(Self.key)é"], "cluster.previousKey", "holds a space or a character that is not printable"),
        (["PREVIOUS_KEY": Self.key], "cluster.previousKey", "needs cluster.key"),
        (["KEY": Self.key, "PREVIOUS_KEY": Self.key], "cluster.previousKey", "is the same as cluster.key; expected another key, or none"),
    ])
    func badKeysAreNamedAndNotQuoted(_ variables: [String: String], _ setting: String, _ words: String) throws {
        let named = Dictionary(uniqueKeysWithValues: variables.map { ("EARSHOT_CLUSTER_\($0.key)", $0.value) })
        let error = try #require(throws: ConfigError.self) { try Self.load(Self.url.merging(named) { $1 }) }
        #expect(error.mistakes.map(\.path) == [setting], "\(error)")
        #expect(error.description.contains(words), "\(error)")
        for value in variables.values { #expect(!error.description.contains(value)) }
    }

    @Test(arguments: [
        ("http://10.0.0.1:8080", true), ("https://a.example:8443", true), ("http://[fd00::1]:8080", true), ("http://a.example", false),
        ("a.example:8080", false), ("ftp://a.example:80", false), ("http://a.example:80/api", false), ("http://:80", false),
        ("http://a.example:0", false), ("http://u:p@a.example:80", false),
    ])
    func addressesOfNodes(_ text: String, _ isGood: Bool) throws {
        do {
            #expect(try Self.load(["EARSHOT_CLUSTER_ADDRESS": text]).config.cluster.address == text && isGood)
        } catch let error as ConfigError {
            #expect(!isGood && error.description.contains("is not http://HOST:PORT or https://HOST:PORT"), "\(error)")
        }
    }

    @Test func aClusterNeedsADatabase() throws {
        let error = try #require(throws: ConfigError.self) { try Self.load(["EARSHOT_CLUSTER_KEY": Self.key]) }
        #expect(error.description.contains("needs database.url: the servers of a cluster share one database"), "\(error)")
        #expect(!error.description.contains(Self.key))
    }
}
