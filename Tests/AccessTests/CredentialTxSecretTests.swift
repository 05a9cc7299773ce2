import Foundation
import RTMP
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Access

@Suite struct CredentialTxSecretTests {
    private let door = Doorkeeper()

    /// The first is Tencent's documented example (intl.cloud.tencent.com/document/product/267/31560); the others are by Python's hashlib, e.g.
    /// `hashlib.sha256((key + "test" + "5C271099").encode()).hexdigest()`.
    @Test(arguments: [
        (TestCredential.keys.key, "test", "5C271099", ServerConfig.Credentials.Hash.md5, "f85a2ab363fe4deaffef9754d79da6fe"),
        (TestCredential.keys.key, "test", "5c271099", .md5, "9603387445825a481e6b7496aced5746"),
        (TestCredential.keys.key, "test", "5C271099", .sha256, "2fe51d13bff48deaddd7e4e086265e69d5a04a64db9a2cbc737bd585c472fd07"),
        (TestCredential.keys.key, "room1/alice", "7FFFFFFF", .md5, "3fb949160feb82c2524fdc6d34fb4ead"),
        (TestCredential.keys.key, "кот", "7FFFFFFF", .sha256, "a11698fa26db50f8233a8841082996e54fc0e2daa8077167dd03395dee4392a6"),
        ("backup-key-0001", "test", "7FFFFFFF", .md5, "9992881f06990a8449c77a1a3e2a5e2b"),
    ])
    func vectors(_ key: String, _ name: String, _ txTime: String, _ hash: ServerConfig.Credentials.Hash, _ expected: String) throws {
        #expect(TxSecret.signature(key: key, streamName: name, txTime: txTime, hash: hash) == expected)
        let query = "txSecret=\(expected)&txTime=\(txTime)"
        let seconds = try TxSecret.seconds(txTime).orThrow()
        for action in [AdmissionRequest.Action.publish, .play] {
            let pass = try self.door.ask(query, name: name, action: action, at: seconds - 1).get()
            #expect(pass.identity == "signed live/\(name)")
            #expect(pass.rank == seconds)
            #expect(pass.isVerified && pass.user == nil)
            #expect(try self.door.ask(query, name: name, action: action, at: seconds).refusal == .credentialExpired)
        }
    }

    /// Every refusal and its reason.
    @Test(arguments: [
        ("", CloseReason.credentialMissing),
        ("a=b", .credentialMissing),
        ("txTime=7FFFFFFF", .credentialMissing),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b", .credentialNoTime),
        ("txSecret=", .credentialNoTime),
        ("txSecret=&txTime=7FFFFFFF", .credentialWrong),
        ("txSecret&txTime=7FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=", .credentialWrong),
        // Other case of hexadecimal digits: in the time, which is signed as sent, and in the digest, which has one spelling.
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=7fffffff", .credentialWrong),
        ("txSecret=9992881F06990A8449C77A1A3E2A5E2B&txTime=7FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=07FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=0x7FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=+7FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=-1", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=2147483647", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=FFFFFFFFFFFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=00000000000000007FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=７ＦＦＦＦＦＦＦ", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2&txTime=7FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b0&txTime=7FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2c&txTime=7FFFFFFF", .credentialWrong),
        ("txSecret=%209992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF", .credentialWrong),
        // The right parameter twice, and beside another credential.
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF&txSecret=9992881f06990a8449c77a1a3e2a5e2b", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF&txTime=7FFFFFFF", .credentialWrong),
        ("txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF&token=x", .credentialWrong),
        // Expired with the right signature (by Python: f85a…), and with a wrong one: only the first learns about time.
        ("txSecret=f85a2ab363fe4deaffef9754d79da6fe&txTime=5C271099", .credentialExpired),
        ("txSecret=f85a2ab363fe4deaffef9754d79da6ff&txTime=5C271099", .credentialWrong),
        // SRS and others accept more spellings of names; ours are exactly Tencent's.
        ("txsecret=9992881f06990a8449c77a1a3e2a5e2b&txtime=7FFFFFFF", .credentialMissing),
        ("ｔｘSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF", .credentialMissing),
    ])
    func refusals(_ query: String, _ reason: CloseReason) throws {
        for action in [AdmissionRequest.Action.publish, .play] {
            let answer = try self.door.ask(query, action: action)
            #expect(answer.refusal == reason, "\(query)")
            for secret in [
                TestCredential.keys.key, "backup-key-0001", "9992881f06990a8449c77a1a3e2a5e2b", "f85a2ab363fe4deaffef9754d79da6fe",
            ] {
                #expect(!answer.message.contains(secret))
            }
            #expect(answer.message.contains("txTime") || answer.message.contains("txSecret"))
        }
        // Where no credential is needed, a wrong one is still refused.
        if reason != .credentialMissing || query.contains("txTime=") {
            #expect(try self.door.ask(query, from: "127.0.0.1").refusal == reason)
        } else {
            #expect(try self.door.ask(query, from: "127.0.0.1").pass?.isVerified == false)
        }
    }

    @Test func aSignatureIsForOneStreamInAnyApp() throws {
        let query = TestCredential.signed("cam1")
        #expect(try self.door.ask(query, name: "cam1").pass != nil)
        #expect(try self.door.ask(query, app: "event", name: "cam1").pass?.identity == "signed event/cam1")
        for name in ["cam2", "cam", "cam11", "x/cam1", "cam1/x", "CAM1"] {
            #expect(try self.door.ask(query, name: name).refusal == .credentialWrong)
        }
        // The name is all that follows the app, wherever a client splits it.
        let deep = TestCredential.signed("room1/alice")
        #expect(try self.door.ask(deep, app: "talk", name: "room1/alice").pass?.identity == "signed talk/room1/alice")
        #expect(try self.door.ask(deep, app: "talk/room1", name: "alice").pass?.identity == "signed talk/room1/alice")
        #expect(try self.door.ask(TestCredential.signed("alice"), app: "talk/room1", name: "alice").refusal == .credentialWrong)
    }

    @Test func theQueryOfTheAppIsReadToo() throws {
        let address = try StreamAddress(app: "live?\(TestCredential.signed("cam1"))", name: "cam1")
        let request = AdmissionRequest(.rtmpPublish, action: .publish, address: address, remote: nil, session: 1)
        #expect(self.door.rules.check(request, nowSeconds: Doorkeeper.now).pass?.isVerified == true)
        let split = try StreamAddress(app: "live?txTime=7FFFFFFF", name: "test?txSecret=9992881f06990a8449c77a1a3e2a5e2b")
        #expect(
            self.door.rules.check(.init(.rtmpPlay, action: .play, address: split, remote: nil, session: 1), nowSeconds: Doorkeeper.now).pass
                != nil)
    }

    @Test func percentEncodedValuesAreDecoded() throws {
        // "9" is %39, "7" is %37.
        #expect(try self.door.ask("tx%53ecret=%39992881f06990a8449c77a1a3e2a5e2b&txTime=%37FFFFFFF").pass != nil)
        #expect(try self.door.ask("txSecret=%2539992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF").refusal == .credentialWrong)
    }

    /// The play key allows no publishing; publish keys also allow playing.
    @Test(arguments: [nil, "the key of players"]) func playingHasAKeyOfItsOwn(_ playKey: String?) throws {
        let ring = KeyRing(
            key: "the push key", backupKey: "the old key", playKey: playKey, jwtKey: TestCredential.keys.jwtKey, webhookKey: "hook-key")
        let door = Doorkeeper(ring)
        #expect(!ring.publishKeys.contains(ring.playKey))
        for (key, mayPush) in [(ring.playKey, false), ("the push key", true), ("the old key", true)] {
            #expect(try door.ask(TestCredential.signed(key: key), action: .play).pass != nil)
            #expect(try (door.ask(TestCredential.signed(key: key), action: .publish).pass != nil) == mayPush)
        }
        // During a key change, play URLs from the old key stay valid.
        let before = KeyRing(key: "the old key", backupKey: nil, playKey: playKey, jwtKey: ring.jwtKey, webhookKey: "hook-key")
        #expect(try door.ask(TestCredential.signed(key: before.playKey), action: .play).pass != nil)
        #expect(try door.ask(TestCredential.signed(key: before.playKey), action: .publish).refusal == .credentialWrong)
    }

    /// A new key is added; the old one stays as backup while its URLs live, then goes.
    @Test func keysAreChangedWithoutCuttingURLs() throws {
        let old = TestCredential.signed(key: "the old key")
        let new = TestCredential.signed(key: "the new key", withSHA256: true)
        func ring(_ key: String, _ backup: String?) -> KeyRing {
            KeyRing(key: key, backupKey: backup, jwtKey: TestCredential.keys.jwtKey, webhookKey: "hook-key")
        }
        let before = Doorkeeper(ring("the old key", nil))
        #expect(try before.ask(old).pass != nil)
        #expect(try before.ask(new).refusal == .credentialWrong)
        for during in [Doorkeeper(ring("the new key", "the old key")), Doorkeeper(ring("the old key", "the new key"))] {
            #expect(try during.ask(old).pass != nil)
            #expect(try during.ask(new).pass != nil)
            #expect(try during.ask(TestCredential.signed(key: "a third key")).refusal == .credentialWrong)
        }
        let after = Doorkeeper(ring("the new key", nil))
        #expect(try after.ask(old).refusal == .credentialWrong)
        #expect(try after.ask(new).pass != nil)
    }

    /// The clock is read anew each time: a step changes the answer, and a step back restores it.
    @Test func theClockMayStep() throws {
        let seconds: Int64 = 1_800_000_000
        let query = TestCredential.signed(txTime: TxSecret.text(ofSeconds: seconds))
        let steps: [(Int64, CloseReason?)] = [
            (seconds - 1, nil), (seconds, .credentialExpired), (seconds - 1, nil), (seconds + 1, .credentialExpired), (0, nil), (-1, nil),
            (.min, nil), (.max, .credentialExpired), (seconds - 86_400, nil),
        ]
        for (now, expected) in steps { #expect(try self.door.ask(query, at: now).refusal == expected, "at \(now)") }
    }

    @Test func rankIsTheTime() throws {
        let older = try self.door.ask(TestCredential.signed(txTime: "70000000")).get()
        let newer = try self.door.ask(TestCredential.signed(txTime: "70000001")).get()
        #expect(older.identity == newer.identity)
        #expect(older.rank < newer.rank)
    }

    @Test(arguments: [
        ("00000000", 0 as Int64?), ("5C271099", 1_546_064_025), ("5c271099", 1_546_064_025), ("FFFFFFFF", 4_294_967_295),
        ("00000001", 1), ("0", nil), ("7FFFFFF", nil), ("07FFFFFFF", nil), ("5C271099 ", nil), ("7FFFFFFFFFFFFFFF", nil), ("", nil),
        ("g0000000", nil), (" 1234567", nil), ("1234567 ", nil), ("１2345", nil), ("-1234567", nil), ("+1234567", nil), ("0x123456", nil),
    ])
    func times(_ text: String, _ seconds: Int64?) {
        #expect(TxSecret.seconds(text) == seconds)
    }

    /// Eight digits for any time: small times would have fewer.
    @Test(arguments: [(0, "00000000"), (1, "00000001"), (1_546_064_025, "5C271099"), (4_294_967_296, "FFFFFFFF"), (-5, "00000000")])
    func writtenTimes(_ seconds: Int64, _ text: String) {
        #expect(TxSecret.text(ofSeconds: seconds) == text)
    }

    /// The hashed text has no separators. However it is split into key, name and time,
    /// a signature opens only the signed stream, until the signed time.
    @Test(arguments: [ServerConfig.Credentials.Hash.md5, .sha256], ["room12", "room1/alice", "abcdef0123456789", "7FFFFFFF"])
    func noOtherCutOpensAStream(_ hash: ServerConfig.Credentials.Hash, _ name: String) throws {
        let time = "7B000000"
        let secret = TxSecret.signature(key: TestCredential.keys.key, streamName: name, txTime: time, hash: hash)
        let signed = Array(name + time)
        var opened: [String] = []
        for border in 0...signed.count {
            let (otherName, otherTime) = (String(signed[..<border]), String(signed[border...]))
            guard !otherName.isEmpty, !otherName.hasSuffix("/") else { continue }
            // Also an empty time, and times that one more digit brings to a valid length.
            for sent in [otherTime, "0" + otherTime, otherTime + "0"] {
                for action in [AdmissionRequest.Action.publish, .play] {
                    let answer = try Doorkeeper().ask("txSecret=\(secret)&txTime=\(sent)", name: otherName, action: action)
                    if answer.pass != nil { opened.append("\(action) \(otherName) \(sent)") }
                }
            }
        }
        #expect(opened == ["publish \(name) \(time)", "play \(name) \(time)"])
    }

    /// The border between key and name: a server does not start when one key begins with another.
    @Test func keysThatBeginAlikeAreRefused() throws {
        var config = ServerConfig()
        config.credentials.jwtKey = TestCredential.keys.jwtKey
        config.webhooks.key = "a key of webhooks"
        func load(_ key: String, _ backup: String?, _ play: String?) throws -> KeyRing {
            var config = config
            config.credentials.key = key
            config.credentials.backupKey = backup
            config.credentials.playKey = play
            return try KeyRing.load(config: config)
        }
        _ = try load("a key of ours", "another key", "a key of players")
        // The same key twice opens nothing new.
        _ = try load("a key of ours", "a key of ours", nil)
        for (key, backup, play) in [
            ("a key of ours", "a key of ours1", nil), ("a key of ours1", "a key of ours", nil),
            ("a key of ours", nil, "a key of ours and more"),
        ] as [(String, String?, String?)] {
            let error = #expect(throws: KeyFileError.self) { try load(key, backup, play) }
            let message = error?.description ?? ""
            #expect(message.contains("credentials.key") && message.contains("begins with") && !message.contains("ours"), "\(message)")
        }
    }
}
