import Foundation
import RTMP
import ServerTestSupport
import Support
import Testing

@testable import Access

@Suite struct CredentialTokenTests {
    private let door = Doorkeeper()

    /// Made by Python: hmac.new(key, b64(header) + "." + b64(claims), "sha256"), key "0123456789abcdef0123456789abcdef"; claims
    /// {"room":"cam1","sub":"alice","act":["publish","play"],"exp":2000000000}.
    private static let foreign =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyb29tIjoiY2FtMSIsInN1YiI6ImFsaWNlIiwiYWN0IjpbInB1Ymxpc2giLCJwbGF5Il0sImV4cCI6MjAwMDAwMDAwMH0"
        + ".4bbdXTQKSPCNqewfLJeaztwQ5RMMoLrQD_SKg5aVdbs"
    /// Made likewise; claims {"room":"cam1","sub":"alice","act":"play","exp":2000000000.5,"nbf":1000000000}.
    private static let foreignPlay =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyb29tIjoiY2FtMSIsInN1YiI6ImFsaWNlIiwiYWN0IjoicGxheSIsImV4cCI6MjAwMDAwMDAwMC41LCJuYmYiOjEwMDAw"
        + "MDAwMDB9.ekRX3V0gX2rFRVOQSerlpEY2Hw1fznyWhlRQOjLyxTs"

    @Test(arguments: ["token", "jwt"])
    func tokensOfOthersAreRead(_ parameter: String) throws {
        for action in [AdmissionRequest.Action.publish, .play] {
            let pass = try self.door.ask("\(parameter)=\(Self.foreign)", name: "cam1", action: action).get()
            #expect(
                pass
                    == AdmissionPass(
                        identity: "user alice", user: "alice", room: "cam1", isVerified: true, parameters: "\(parameter)=***"))
        }
        #expect(try self.door.ask("\(parameter)=\(Self.foreignPlay)", name: "cam1", action: .play, at: 2_000_000_000).pass != nil)
        #expect(
            try self.door.ask("\(parameter)=\(Self.foreignPlay)", name: "cam1", action: .play, at: 2_000_000_001).refusal
                == .credentialExpired)
        #expect(
            try self.door.ask("\(parameter)=\(Self.foreignPlay)", name: "cam1", action: .play, at: 999_999_999).refusal == .credentialWrong)
        #expect(try self.door.ask("\(parameter)=\(Self.foreignPlay)", name: "cam1", action: .publish).refusal == .credentialWrong)
    }

    /// RFC 7515 A.1: another implementation's signature, with its own key and text.
    @Test func signatureVector() {
        let key: [UInt8] = [
            3, 35, 53, 75, 43, 15, 165, 188, 131, 126, 6, 101, 119, 123, 166, 143, 90, 179, 40, 230, 240, 84, 201, 40, 169, 15, 132, 178,
            210, 80,
            46, 191, 211, 251, 90, 146, 210, 6, 71, 239, 150, 138, 180, 195, 119, 98, 61, 34, 61, 46, 33, 114, 5, 46, 79, 8, 192, 205, 154,
            245,
            103, 208, 128, 163,
        ]
        let text =
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        #expect(SignedToken.signature(of: text, keyBytes: key) == "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    }

    /// App, stream name, and whether the room "cam1" holds the stream.
    @Test(arguments: [
        ("live", "cam1", true), ("live", "cam1-2", true), ("live", "cam1-8", true), ("live", "cam1-1", false), ("live", "cam1-9", false),
        ("live", "cam1-10", false), ("live", "cam1-02", false), ("live", "cam1-", false), ("live", "cam1-2-2", false),
        ("live", "cam2", false),
        ("live", "cam", false), ("live", "CAM1", false), ("event", "cam1", false), ("live", "cam1/x", false), ("live", "x/cam1", false),
        ("live/cam1", "x", false),
    ])
    func aRoomsTokenOpensItsStreams(_ app: String, _ name: String, _ opens: Bool) throws {
        let answer = try self.door.ask("token=\(Self.foreign)", app: app, name: name)
        #expect(answer.refusal == (opens ? nil : .credentialWrong))
    }

    /// Claims beside `exp`, the action, and whether they allow it on live/cam1.
    @Test(arguments: [
        (#""room":"cam1","act":["publish"]"#, AdmissionRequest.Action.publish, true), (#""room":"cam1","act":["publish"]"#, .play, false),
        (#""room":"cam1","act":"publish""#, .publish, true), (#""room":"cam1","act":["play"]"#, .publish, false),
        (#""room":"cam1","act":[]"#, .play, false), (#""room":"cam1","act":["PUBLISH"]"#, .publish, false),
        (#""room":"cam1","act":{"publish":true}"#, .publish, false), (#""room":"cam1","act":5"#, .publish, false),
        (#""room":"cam1","role":"publisher""#, .publish, true), (#""room":"cam1","role":"host""#, .publish, true),
        (#""room":"cam1","role":"Owner""#, .publish, true), (#""room":"cam1","role":"anchor""#, .play, true),
        (#""room":"cam1","role":"device""#, .publish, true), (#""room":"cam1","role":"viewer""#, .play, true),
        (#""room":"cam1","role":"viewer""#, .publish, false), (#""room":"cam1","role":"audience""#, .publish, false),
        (#""room":"cam1","role":"emperor""#, .play, false),
        // `act` is narrower than `role` and prevails.
        (#""room":"cam1","role":"publisher","act":["play"]"#, .publish, false),
        // Neither claim: play only.
        (#""room":"cam1""#, .play, true), (#""room":"cam1""#, .publish, false),
        (#""stream":"live/cam1","act":["publish"]"#, .publish, true), (#""stream":"live/cam2","act":["publish"]"#, .publish, false),
        (#""stream":"cam1","act":["publish"]"#, .publish, false), (#""stream":"*","act":["publish"]"#, .publish, false),
        (#""stream":"live/cam1","room":"cam1","act":["publish"]"#, .publish, true),
        (#""stream":"live/cam1","room":"cam2","act":["publish"]"#, .publish, false),
        (#""stream":"live/cam2","room":"cam1","act":["publish"]"#, .publish, false),
        (#""act":["publish","play"]"#, .publish, false), (#""room":"","act":["publish"]"#, .publish, false),
        (#""room":"../cam1","act":["publish"]"#, .publish, false), (#""room":5,"act":["publish"]"#, .publish, false),
        (#""room":null,"stream":"live/cam1","act":["publish"]"#, .publish, true),
        (#""room":"cam1","sub":5,"act":["publish"]"#, .publish, false),
        (#""room":"cam1","more":{"of":["theirs"]},"aud":"x","act":["publish"]"#, .publish, true),
    ])
    func claims(_ claims: String, _ action: AdmissionRequest.Action, _ allowed: Bool) throws {
        let answer = try self.door.ask("token=\(TestCredential.token("{\(claims),\"exp\":2000000000}"))", name: "cam1", action: action)
        #expect(answer.refusal == (allowed ? nil : .credentialWrong), "\(answer.message)")
    }

    @Test func whoItIs() throws {
        func pass(_ claims: String) throws -> AdmissionPass {
            try self.door.ask("token=\(TestCredential.token("{\(claims),\"exp\":2000000000,\"act\":[\"publish\"]}"))", name: "cam1").get()
        }
        #expect(try pass(#""room":"cam1","sub":"alice""#).identity == "user alice")
        #expect(try pass(#""room":"cam1","sub":"alice""#).rank == 0)
        #expect(try pass(#""room":"cam1""#).identity == "jwt room cam1")
        #expect(try pass(#""room":"cam1""#).user == nil)
        #expect(try pass(#""stream":"live/cam1""#).identity == "jwt stream live/cam1")
        #expect(try pass(#""stream":"live/cam1""#).room == nil)
        #expect(try pass(#""room":"cam1","sub":"""#).identity == "jwt room cam1")
        // Other systems' subjects may be wider than our user ids: they only distinguish publishers.
        let wide = try pass(#""room":"cam1","sub":"auth0|alice@example.com""#)
        #expect(wide.identity == "user auth0|alice@example.com" && wide.user == nil)
    }

    /// Values of `exp` and `nbf`, and the refusal at Doorkeeper.now.
    @Test(arguments: [
        ("", CloseReason.credentialWrong as CloseReason?), (#""exp":1795255201"#, nil), (#""exp":1795255200"#, .credentialExpired),
        (#""exp":1795255200.5"#, nil), (#""exp":0"#, .credentialExpired), (#""exp":-1"#, .credentialExpired),
        (#""exp":null"#, .credentialWrong),
        (#""exp":"2000000000""#, .credentialWrong), (#""exp":1e300"#, .credentialWrong),
        (#""exp":1e999"#, .credentialWrong), (#""exp":99999999999999999999999"#, .credentialWrong), (#""exp":-1e300"#, .credentialWrong),
        (#""exp":NaN"#, .credentialWrong), (#""exp":Infinity"#, .credentialWrong), (#""exp":253402300799"#, nil),
        (#""exp":253402300800"#, .credentialWrong), (#""exp":2000000000,"iat":1e300"#, .credentialWrong),
        (#""exp":2000000000,"iat":-1e19"#, .credentialWrong), (#""exp":2000000000,"iat":1795255000"#, nil),
        (#""exp":2000000000,"nbf":-1e300"#, .credentialWrong), (#""exp":true"#, .credentialWrong),
        (#""exp":[2000000000]"#, .credentialWrong),
        (#""exp":2000000000,"nbf":1795255200"#, nil), (#""exp":2000000000,"nbf":1795255201"#, .credentialWrong),
        (#""exp":2000000000,"nbf":1e300"#, .credentialWrong), (#""exp":2000000000,"nbf":"x""#, .credentialWrong),
        (#""exp":1,"nbf":1795255201"#, .credentialExpired),
    ])
    func times(_ claims: String, _ reason: CloseReason?) throws {
        let all = ["\"room\":\"cam1\"", claims].filter { !$0.isEmpty }.joined(separator: ",")
        #expect(try self.door.ask("token=\(TestCredential.token("{\(all)}"))", name: "cam1", action: .play).refusal == reason)
    }

    private static let good = #"{"room":"cam1","act":["publish","play"],"exp":2000000000}"#

    @Test func theClaimsOfTheseTestsAreGood() throws {
        #expect(try self.door.ask("token=\(TestCredential.token(Self.good))", name: "cam1").pass != nil)
    }

    /// Headers that must not pass with valid claims, signed with the server's key.
    @Test(arguments: [
        #"{"alg":"none"}"#, #"{"alg":"None","typ":"JWT"}"#, #"{"alg":""}"#, #"{"alg":null}"#, "{}", #"{"typ":"JWT"}"#, #"{"alg":"hs256"}"#,
        #"{"alg":"HS384"}"#, #"{"alg":"HS512"}"#, #"{"alg":"RS256"}"#, #"{"alg":"ES256"}"#, #"{"alg":["HS256"]}"#, #"{"alg":1}"#,
        #"{"alg":"HS256","crit":["exp"]}"#, #"{"alg":"HS256","crit":[]}"#, "[]", "5", "", "\"HS256\"", "{\"alg\":\"HS256\"", "nonsense",
    ])
    func headers(_ header: String) throws {
        #expect(try self.door.ask("token=\(TestCredential.token(header: header, Self.good))", name: "cam1").refusal == .credentialWrong)
    }

    @Test func algorithmTricks() throws {
        let parts = TestCredential.token(Self.good).split(separator: ".").map(String.init)
        let none = SecretText.base64URL(Array(#"{"alg":"none"}"#.utf8))
        let attacks = [
            "\(none).\(parts[1]).", "\(none).\(parts[1])", "\(none).\(parts[1]).\(parts[2])", "\(parts[0]).\(parts[1]).", "..", "...", ".",
            "",
            "\(parts[0]).\(parts[1])", "\(parts[0])..\(parts[2])", ".\(parts[1]).\(parts[2])",
            "\(parts[0]).\(parts[1]).\(parts[2]).\(parts[2])",
            // Wrong keys: none, the txSecret key, the webhooks' key, the right one with a space.
            TestCredential.token(Self.good, key: ""), TestCredential.token(Self.good, key: TestCredential.keys.key),
            TestCredential.token(Self.good, key: TestCredential.keys.webhookKey),
            TestCredential.token(Self.good, key: TestCredential.keys.jwtKey + " "),
            // A key inside the token itself.
            TestCredential.token(
                header: #"{"alg":"HS256","jwk":{"kty":"oct","k":"AAAA"},"kid":"../../dev/null"}"#, Self.good, key: "\0\0\0"),
            // Padding, and the other alphabet of base64.
            "\(parts[0]).\(parts[1]).\(parts[2])=", "\(parts[0])=.\(parts[1]).\(parts[2])",
            " \(parts[0]).\(parts[1]).\(parts[2])", "Bearer \(parts[0]).\(parts[1]).\(parts[2])",
        ]
        for attack in attacks {
            let query = "token=\(attack.replacing(" ", with: "%20").replacing("\0", with: "%00"))"
            for remote in [Doorkeeper.remote, "127.0.0.1"] {
                #expect(try self.door.ask(query, name: "cam1", from: remote).refusal == .credentialWrong, "\(attack)")
            }
        }
    }

    /// 256 bits in 43 characters: the last has two spare bits, which base64 decoders ignore.
    @Test func aSignatureHasOneSpelling() throws {
        let token = TestCredential.token(Self.good)
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        let passing = try alphabet.filter { last in
            try self.door.ask("token=\(token.dropLast())\(last)", name: "cam1").pass != nil
        }
        #expect(passing == String(token.suffix(1)))
    }

    @Test func cutOrChangedAtAnyByteItIsRefused() throws {
        let token = Array(TestCredential.token(Self.good).utf8)
        for index in token.indices {
            let cut = String(decoding: token[..<index], as: UTF8.self)
            #expect(try self.door.ask("token=\(cut)", name: "cam1", from: "127.0.0.1").refusal == .credentialWrong)
            var changed = token
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(
                try self.door.ask("token=\(String(decoding: changed, as: UTF8.self))", name: "cam1", from: "127.0.0.1").refusal
                    == .credentialWrong)
        }
    }

    /// Claims cut at each byte and signed with the right key: the decoder refuses them without trapping.
    @Test func signedGarbageIsRefused() throws {
        let claims = Array(#"{"room":"cam1","act":["publish"],"sub":"\u00e9","exp":2000000000}"#.utf8)
        for end in 0..<claims.count {
            let text = String(decoding: claims[..<end], as: UTF8.self)
            #expect(try self.door.ask("token=\(TestCredential.token(text))", name: "cam1").refusal == .credentialWrong)
        }
        for text in [String(repeating: "[", count: 2_500), String(repeating: "{\"a\":", count: 500), "\u{0}", "null", "2000000000"] {
            #expect(try self.door.ask("token=\(TestCredential.token(text))", name: "cam1").refusal == .credentialWrong)
        }
        let notText = "\(SecretText.base64URL(Array(#"{"alg":"HS256"}"#.utf8))).\(SecretText.base64URL([0xFF, 0xFE, 0x7B]))"
        let signature = SignedToken.signature(of: notText, key: TestCredential.keys.jwtKey)
        #expect(try self.door.ask("token=\(notText).\(signature)", name: "cam1").refusal == .credentialWrong)
    }

    @Test func hugeTokensAreNotLookedInto() throws {
        func claims(_ bytes: Int) -> String { #"{"room":"cam1","exp":2000000000,"x":""# + String(repeating: "x", count: bytes) + "\"}" }
        let large = TestCredential.token(claims(2_900))
        #expect(large.utf8.count <= SignedToken.maxBytes)
        #expect(try self.door.ask("token=\(large)", name: "cam1", action: .play).pass != nil)
        let huge = try self.door.ask("token=\(TestCredential.token(claims(3_100)))", name: "cam1", action: .play)
        #expect(huge.refusal == .credentialWrong && huge.message.contains("expected 4096 at most"))
        #expect(try self.door.ask("token=\(String(repeating: ".", count: 90_000))", name: "cam1").refusal == .credentialWrong)
    }

    @Test func aShortKeyMakesAndAcceptsNothing() throws {
        var keys = TestCredential.keys
        keys.jwtKey = String(repeating: "k", count: 31)
        let token = TestCredential.token(Self.good, key: keys.jwtKey)
        #expect(try Doorkeeper(keys).ask("token=\(token)", name: "cam1").refusal == .credentialWrong)
        #expect(throws: KeyFileError.self) { try AccessToken(expires: 2_000_000_000).signed(with: keys) }
    }

    @Test func noSecretInAnyMessage() throws {
        let token = TestCredential.token(Self.good)
        for (name, action) in [("cam2", AdmissionRequest.Action.publish), ("cam2", .play)] {
            let message = try self.door.ask("token=\(token)", name: name, action: action).message
            #expect(!message.isEmpty && !message.contains(token) && !message.contains("cam1"))
        }
    }
}
