import Foundation
import Rooms
import ServerConfiguration
import Support
import TestSupport
import Testing

@testable import Access

/// The servers of a cluster have the same keys from one secret.
@Suite struct ClusterKeyTests {
    private static let text = "a-key-of-a-cluster-0123456789abcdef"
    private static let other = "another-key-of-a-cluster-0123456789"
    private static let path = StreamPath(app: "live", name: "cam1")
    private static let url = "rtmp://localhost:9/live/hush-hush-key"

    private static func config(_ key: String?, previous: String? = nil, data: String = "/dev/null/nowhere") -> ServerConfig {
        var config = ServerConfig()
        config.data.directory = data
        config.cluster.key = key
        config.cluster.previousKey = previous
        return config
    }

    /// Expected values by Python's hmac, as RFC 5869 §2 says. Others would make worthless what running clusters have signed and sealed.
    @Test(arguments: [
        (ClusterKey.Use.urls, "8d333305a37aafe551dfd505595e8c71f7e1f7cee0b434bfd0ab2b232ed38c65"),
        (.tokens, "f717448fd7d58388eae1e1266cc586ae5aa927452979546cce2f0f810a6da0e1"),
        (.webhooks, "d8292389cc9fdba5c0bd8c5d827759f0c16e7cf41586d985dd291bdb1c2fc3aa"),
        (.cookies, "5eacd18b59f13a16e4784259a21dd219c87ba77027c4bff30d1afb4da20c3a53"),
        (.vault, "1b247b98adbd07491582ca12f4dbaa15e5dffa9c185c8fce62c9842d1d622a93"),
        (.tickets, "07544d12ff1d974b080b7e0f23f141fdfab1d7787da4aa8b6ac9095bc4265e19"),
    ])
    func theKeysAreTheseForEver(_ use: ClusterKey.Use, _ expected: String) {
        #expect(SecretText.hex(ClusterKey(current: Self.text, previous: nil).key(for: use)) == expected)
        #expect(ClusterKey(current: Self.other, previous: Self.text).previousKey(for: use).map { SecretText.hex($0) } == expected)
    }

    @Test func eachUseAndEachClusterHasItsOwn() {
        let (one, two) = (ClusterKey(current: Self.text, previous: nil), ClusterKey(current: Self.other, previous: Self.text))
        let keys = ClusterKey.Use.allCases.flatMap { [one.key(for: $0), two.key(for: $0)] }
        #expect(Set(keys).count == 2 * ClusterKey.Use.allCases.count)
        #expect(ClusterKey.Use.allCases.allSatisfy { one.previousKey(for: $0) == nil })
        #expect(one.fingerprint == "69af0dff3b401303b476c0f262b8939f")
        #expect(two.fingerprint != one.fingerprint)
        #expect(two.fingerprint == ClusterKey(current: Self.other, previous: nil).fingerprint)
        #expect(one.previousFingerprint == nil)
        #expect(ClusterKey(current: Self.other, previous: Self.text).previousFingerprint == one.fingerprint)
    }

    @Test func printingShowsNoKey() {
        let key = ClusterKey(current: Self.text, previous: Self.other)
        var shown = "\(key) \(String(reflecting: key)) \([key]) \(Optional(key) as Any)"
        dump(key, to: &shown)
        for secret in [Self.text, Self.other, "\(Array(Self.text.utf8))"] { #expect(!shown.contains(secret)) }
    }

    /// No file is read or made: the data directory of these settings cannot be one.
    @Test func theRingOfAClusterNeedsNoFile() throws {
        let ring = try KeyRing.load(config: Self.config(Self.text))
        #expect(ring.key == "jTMzBaN6r-VR39UFWV6Mcffh987gtDS_0KsrIy7TjGU")
        #expect(Set([ring.key, ring.jwtKey, ring.webhookKey]).count == 3)
        #expect(ring.former == KeyRing.Former() && ring.backupKey == nil)
        #expect(try KeyRing.load(config: Self.config(Self.text)) == ring)
        #expect(try KeyRing.load(config: Self.config(Self.other)).key != ring.key)
    }

    @Test func configuredKeysStay() throws {
        var config = Self.config(Self.text, previous: Self.other)
        config.credentials.key = "configured"
        config.credentials.backupKey = "another, configured too"
        config.credentials.jwtKey = String(repeating: "k", count: 32)
        config.webhooks.key = "configured too"
        let ring = try KeyRing.load(config: config)
        #expect([ring.key, ring.backupKey, ring.webhookKey] == ["configured", "another, configured too", "configured too"])
        #expect(ring.jwtKey == String(repeating: "k", count: 32) && ring.former == KeyRing.Former())
    }

    /// URLs and tokens by either key are accepted; new ones are by the current key.
    @Test func theRingsKeysRotate() throws {
        let old = try KeyRing.load(config: Self.config(Self.text))
        let new = try KeyRing.load(config: Self.config(Self.other, previous: Self.text))
        let strangers = try KeyRing.load(config: Self.config(Self.other))
        #expect(new.key == strangers.key && new.jwtKey == strangers.jwtKey)
        func opens(_ signing: String, _ keys: [String]) -> Bool {
            let secret = TxSecret.signature(key: signing, streamName: "cam1", txTime: "7FFFFFFF", hash: .md5)
            do throws(AdmissionRefusal) {
                _ = try TxSecret.check(secret, txTime: "7FFFFFFF", streamName: "cam1", keys: keys, nowSeconds: 1)
                return true
            } catch {
                return false
            }
        }
        #expect(opens(old.key, new.publishKeys) && opens(old.key, new.playKeys) && opens(old.playKey, new.playKeys))
        #expect(!opens(old.playKey, new.publishKeys), "a URL for playing does not push")
        #expect(!opens(old.key, strangers.publishKeys) && !opens(old.playKey, strangers.playKeys))
        let token = try AccessToken(expires: 2_000_000_000, issued: 1, room: "walk").signed(with: old)
        #expect(try AccessToken(signed: token, keys: new).room == "walk")
        #expect(throws: AdmissionRefusal.self) { try AccessToken(signed: token, keys: strangers) }
        #expect(throws: AdmissionRefusal.self) {
            try AccessToken(signed: AccessToken(expires: 2_000_000_000, issued: 1, room: "walk").signed(with: new), keys: old)
        }
    }

    @Test func cookiesRotate() throws {
        func key(_ current: String, _ previous: String? = nil) throws -> SessionKey {
            try SessionKey(ClusterKey(current: current, previous: previous), directory: "/dev/null/nowhere")
        }
        let (old, new) = (try key(Self.text), try key(Self.other, Self.text))
        #expect(try old.signature(of: "x") == key(Self.text).signature(of: "x"))
        #expect(new.isSignature(old.signature(of: "x"), of: "x") && new.isSignature(new.signature(of: "x"), of: "x"))
        #expect(!new.isSignature(old.signature(of: "x"), of: "y") && !new.isSignature("", of: "x"))
        #expect(try !key(Self.other).isSignature(old.signature(of: "x"), of: "x"))
        #expect(try new.signature(of: "x") == key(Self.other).signature(of: "x"))
    }

    /// What the previous key sealed, or this server before it joined, opens and is to be sealed anew.
    @Test func sealedAddressesRotate() throws {
        try withTemporaryFolder { folder in
            func vault(_ current: String, _ previous: String? = nil, _ directory: String) throws -> URLVault {
                try URLVault(ClusterKey(current: current, previous: previous), directory: "\(folder)/\(directory)")
            }
            let (old, new) = (try vault(Self.text, nil, "a"), try vault(Self.other, Self.text, "b"))
            let sealed = try old.seal(Self.url, .push, Self.path)
            #expect(try vault(Self.text, nil, "c").open(sealed, .push, Self.path) == Self.url)
            #expect(new.open(sealed, .push, Self.path) == Self.url && new.open(sealed, .pull, Self.path) == nil)
            #expect(new.isOutdated(sealed, .push, Self.path) && !old.isOutdated(sealed, .push, Self.path))
            #expect(new.isOutdated(Self.url, .push, Self.path), "it is not sealed at all")
            #expect(try vault(Self.other, nil, "c").open(sealed, .push, Self.path) == nil)
            let again = try new.seal(Self.url, .push, Self.path)
            #expect(!new.isOutdated(again, .push, Self.path) && old.open(again, .push, Self.path) == nil)
            #expect(!FileManager.default.fileExists(atPath: "\(folder)/a"), "no key is kept in a file")

            let alone = try URLVault(directory: "\(folder)/alone").seal(Self.url, .push, Self.path)
            let joined = try vault(Self.text, nil, "alone")
            #expect(joined.open(alone, .push, Self.path) == Self.url && joined.isOutdated(alone, .push, Self.path))
            #expect(new.open(alone, .push, Self.path) == nil, "another server's file")
        }
    }
}
