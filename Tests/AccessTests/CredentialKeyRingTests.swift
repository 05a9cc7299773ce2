import Access
import Foundation
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@Suite struct CredentialKeyRingTests {
    private func config(_ folder: String) -> ServerConfig {
        var config = ServerConfig()
        config.data.directory = "\(folder)/data"
        return config
    }

    private func mode(_ path: String) throws -> Int {
        try ((FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]) as? Int).orThrow()
    }

    @Test func firstStartMakesKeysAndLaterOnesReadThem() throws {
        try withTemporaryFolder { folder in
            let config = self.config(folder)
            let first = try KeyRing.load(config: config)
            let path = "\(folder)/data/keys.json"
            #expect(try self.mode(path) == 0o600)
            #expect(try FileManager.default.contentsOfDirectory(atPath: "\(folder)/data") == ["keys.json"])
            let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
            for key in [first.key, first.jwtKey, first.webhookKey] {
                #expect(key.utf8.count >= 32)
                #expect(alphabet.isSuperset(of: key))
            }
            #expect(Set([first.key, first.jwtKey, first.webhookKey]).count == 3)
            #expect(first.backupKey == nil)
            #expect(try KeyRing.load(config: config) == first)
        }
    }

    @Test func twoDirectoriesHaveDifferentKeys() throws {
        try withTemporaryFolder { one in
            try withTemporaryFolder { other in
                let (mine, yours) = (try KeyRing.load(config: self.config(one)), try KeyRing.load(config: self.config(other)))
                #expect(mine.key != yours.key && mine.jwtKey != yours.jwtKey && mine.webhookKey != yours.webhookKey)
            }
        }
    }

    @Test func whatIsConfiguredWins() throws {
        try withTemporaryFolder { folder in
            var config = self.config(folder)
            let made = try KeyRing.load(config: config)
            config.credentials.key = "configured"
            config.credentials.backupKey = "another, configured too"
            let ring = try KeyRing.load(config: config)
            #expect(ring.key == "configured")
            #expect(ring.backupKey == "another, configured too")
            #expect(ring.jwtKey == made.jwtKey)
            #expect(ring.webhookKey == made.webhookKey)
        }
    }

    @Test func noFileIsMadeWhenEverythingIsConfigured() throws {
        try withTemporaryFolder { folder in
            var config = self.config(folder)
            config.credentials.key = "configured"
            config.credentials.jwtKey = String(repeating: "k", count: 32)
            config.webhooks.key = "configured"
            _ = try KeyRing.load(config: config)
            #expect(!FileManager.default.fileExists(atPath: "\(folder)/data"))
        }
    }

    @Test(arguments: [0o644, 0o640, 0o604, 0o660, 0o601])
    func aFileThatOthersMayOpenIsRefused(_ mode: Int) throws {
        try withTemporaryFolder { folder in
            let config = self.config(folder)
            let ring = try KeyRing.load(config: config)
            let path = "\(folder)/data/keys.json"
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            let error = try #require(throws: KeyFileError.self) { try KeyRing.load(config: config) }
            #expect(error.description.contains(path) && error.description.contains("chmod 600 \(path)"))
            #expect(error.description.contains("0\(String(mode, radix: 8))"))
            #expect(!error.description.contains(ring.key))
            try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: path)
            #expect(try KeyRing.load(config: config) == ring)
        }
    }

    /// The file's content, and part of the error message.
    @Test(arguments: [
        ("", "JSON"), ("garbage", "JSON"), ("[]", "JSON"), (#"{"key": 5}"#, "JSON"), ("{}", "has no \"key\""),
        (#"{"key":"short","jwtKey":"01234567890123456789012345678901","webhookKey":"long enough"}"#, "\"key\" in"),
        (#"{"key":"long enough","jwtKey":"0123456789012345678901234567890","webhookKey":"long enough"}"#, "\"jwtKey\" in"),
        (#"{"key":"long enough","jwtKey":"01234567890123456789012345678901"}"#, "has no \"webhookKey\""),
        (String(repeating: "x", count: 70_000), "70000 bytes"),
        // The message names the mistake and its position.
        ("", "line 1, column 1: the text ends where a value should be"), ("[]", "it is an array, expected an object"),
        (#"{"key": 5}"#, "\"key\" is a number, expected a string"),
        ("{\n\"key\":\"k\",\n}", "line 3, column 1: a comma with nothing after it"),
        (#"{"key":"long enough","key":"long enough"}"#, "line 1, column 22: the name \"key\" occurs twice"),
    ])
    func aFileThatHoldsNoKeysIsNamed(_ contents: String, _ words: String) throws {
        try withTemporaryFolder { folder in
            let config = self.config(folder)
            let path = "\(folder)/data/keys.json"
            try FileManager.default.createDirectory(atPath: "\(folder)/data", withIntermediateDirectories: true)
            #expect(FileManager.default.createFile(atPath: path, contents: Data(contents.utf8), attributes: [.posixPermissions: 0o600]))
            let error = try #require(throws: KeyFileError.self) { try KeyRing.load(config: config) }
            #expect(error.description.contains(path) && error.description.contains(words), "\(error)")
            #expect(error.description.contains("backup"))
            // The file may be all that is left of the keys.
            #expect(FileManager.default.contents(atPath: path) == Data(contents.utf8))
        }
    }

    /// As earlier versions wrote it, and as an editor may have saved it.
    @Test(arguments: ["", "\u{FEFF}"]) func anEarlierVersionsFileIsRead(_ mark: String) throws {
        try withTemporaryFolder { folder in
            let key = String(repeating: "k", count: 32)
            let contents = """
                \(mark){
                  "jwtKey" : "\(key)1",
                  "key" : "\(key)2",
                  "more" : [null],
                  "version" : 1,
                  "webhookKey" : "\(key)3"
                }

                """
            try FileManager.default.createDirectory(atPath: "\(folder)/data", withIntermediateDirectories: true)
            let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
            let path = "\(folder)/data/keys.json"
            #expect(FileManager.default.createFile(atPath: path, contents: Data(contents.utf8), attributes: attributes))
            let ring = try KeyRing.load(config: self.config(folder))
            #expect([ring.jwtKey, ring.key, ring.webhookKey] == ["\(key)1", "\(key)2", "\(key)3"])
        }
    }

    /// Earlier versions read what this one makes: an object of texts and the version.
    @Test func theFileThatIsMade() throws {
        try withTemporaryFolder { folder in
            let ring = try KeyRing.load(config: self.config(folder))
            let text = try String(contentsOfFile: "\(folder)/data/keys.json", encoding: .utf8)
            #expect(
                text == """
                    {
                      "version": 1,
                      "key": "\(ring.key)",
                      "jwtKey": "\(ring.jwtKey)",
                      "webhookKey": "\(ring.webhookKey)"
                    }

                    """)
        }
    }

    @Test func aFolderInItsPlaceIsNamed() throws {
        try withTemporaryFolder { folder in
            try FileManager.default.createDirectory(atPath: "\(folder)/data/keys.json", withIntermediateDirectories: true)
            let error = try #require(throws: KeyFileError.self) { try KeyRing.load(config: self.config(folder)) }
            #expect(error.description.contains("not a regular file"))
        }
    }

    @Test func aShortConfiguredKeyIsRefused() throws {
        try withTemporaryFolder { folder in
            var config = self.config(folder)
            config.credentials.jwtKey = String(repeating: "k", count: 31)
            let error = try #require(throws: KeyFileError.self) { try KeyRing.load(config: config) }
            #expect(error.description == "the setting credentials.jwtKey has 31 bytes; expected 32 at least")
        }
    }

    @Test func serversThatStartTogetherShareOneFile() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let config = self.config(folder)
        let rings = try await withThrowingTaskGroup(of: KeyRing.self) { tasks in
            for _ in 0..<16 { tasks.addTask { try KeyRing.load(config: config) } }
            var rings: [KeyRing] = []
            for try await ring in tasks { rings.append(ring) }
            return rings
        }
        #expect(rings.count == 16)
        #expect(rings.allSatisfy { $0 == rings[0] })
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(folder)/data") == ["keys.json"])
    }

    @Test func printingShowsNoKey() {
        var shown = "\(TestCredential.keys)" + String(reflecting: TestCredential.keys) + "\(Optional(TestCredential.keys) as Any)"
        dump(TestCredential.keys, to: &shown)
        shown += "\([TestCredential.keys])"
        for key in [TestCredential.keys.key, "backup-key-0001", TestCredential.keys.jwtKey, "hook-key"] { #expect(!shown.contains(key)) }
    }

    /// Expected values by Python's base64.urlsafe_b64encode, without padding.
    @Test func base64URL() {
        #expect(SecretText.base64URL([]) == "")
        #expect(SecretText.base64URL([0xFF]) == "_w")
        #expect(SecretText.base64URL([0xFF, 0xFE]) == "__4")
        #expect(SecretText.base64URL([0xFF, 0xFE, 0xFD]) == "__79")
        #expect(SecretText.base64URL(Array(0...255)).hasPrefix("AAECAwQFBgcICQoLDA0O"))
    }

    @Test func comparingLooksAtEveryByte() {
        let secret = Array("f85a2ab363fe4deaffef9754d79da6fe".utf8)
        #expect(SecretText.isEqual(secret, secret))
        for index in secret.indices {
            var other = secret
            other[index] ^= 1
            #expect(!SecretText.isEqual(secret, other))
            #expect(!SecretText.isEqual(secret, secret[..<index]))
        }
        #expect(!SecretText.isEqual(secret, secret + [0]))
        #expect(SecretText.isEqual([UInt8](), [UInt8]()))
    }
}
