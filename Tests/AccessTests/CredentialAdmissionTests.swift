import Foundation
import NIOCore
import RTMP
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Access
@testable import ServerConfiguration

@Suite struct CredentialAdmissionTests {
    @Test(arguments: [
        ("127.0.0.1", true), ("127.9.9.9", true), ("::1", true), ("::ffff:127.0.0.1", true), ("203.0.113.9", false), ("10.0.0.1", false),
        ("::ffff:203.0.113.9", false), ("2001:db8::1", false), ("0.0.0.0", false),
    ])
    func withoutACredentialTheAddressDecides(_ remote: String, _ isOpen: Bool) throws {
        for action in [AdmissionRequest.Action.publish, .play] {
            let answer = try Doorkeeper().ask("", action: action, from: remote)
            #expect(answer.refusal == (isOpen ? nil : .credentialMissing))
            if isOpen { #expect(answer.pass == AdmissionPass(identity: "address \(remote)", user: nil, isVerified: false, parameters: "")) }
        }
    }

    @Test func pushAndPlayHaveListsOfTheirOwn() throws {
        let door = Doorkeeper { config in
            config.access.publishFrom = []
            config.access.playFrom = CIDR.any
        }
        #expect(try door.ask("", action: .play).pass != nil)
        let refused = try door.ask("", action: .publish, from: "127.0.0.1")
        #expect(refused.refusal == .credentialMissing)
        #expect(refused.message.contains("access.publishFrom") && refused.message.contains("127.0.0.1"))
        #expect(refused.message.contains("txSecret") && refused.message.contains("token"))
    }

    /// A hook makes credentials optional; a wrong one is refused before the hook is asked.
    @Test func aHookIsAWayInOfItsOwn() throws {
        let door = Doorkeeper { $0.hooks.onPublish = "http://127.0.0.1:9/" }
        let pass = try door.ask("user=alice").get()
        #expect(!pass.isVerified && pass.room == nil && pass.identity == "query user=alice")
        #expect(try door.ask("", from: nil).pass != nil)
        #expect(try door.ask("", action: .play).refusal == .credentialMissing, "no hook for that")
        #expect(try door.ask("txSecret=00&txTime=7FFFFFFF").refusal == .credentialWrong)
        #expect(try door.ask("txTime=7FFFFFFF").refusal == .credentialMissing, "half a signed URL")
        #expect(try door.ask("token=a.b.c").refusal == .credentialWrong)
        let players = Doorkeeper { $0.hooks.onPlay = "http://127.0.0.1:9/" }
        #expect(try players.ask("", action: .play).pass?.isVerified == false)
        #expect(try players.ask("").refusal == .credentialMissing)
    }

    @Test func aPeerWithoutAnAddressNeedsACredential() throws {
        let door = Doorkeeper { $0.access.publishFrom = CIDR.any }
        #expect(try door.ask("", from: nil).refusal == .credentialMissing)
        #expect(try door.ask(TestCredential.signed(), from: nil).pass != nil)
        let socket = AdmissionRequest(
            .rtmpPublish, action: .publish, address: try StreamAddress(app: "live", name: "test"),
            remote: try SocketAddress(unixDomainSocketPath: "/x"), session: 1)
        #expect(door.rules.check(socket, nowSeconds: 0).refusal == .credentialMissing)
    }

    @Test func theQueryIsAnIdentityWhereNoCredentialIsNeeded() throws {
        let pass = try Doorkeeper().ask("device=7&mode=hd", from: "127.0.0.1").get()
        #expect(pass.identity == "query device=7&mode=hd")
        #expect(pass.rank == 0 && !pass.isVerified && pass.room == nil)
        #expect(pass.parameters == "device=7&mode=hd")
    }

    @Test(arguments: [
        ("user=alice", "alice" as String?), ("uid=42", "42"), ("user=alice&uid=42", "alice"), ("uid=42&user=alice", "alice"),
        ("user=", nil), ("user", nil), ("user=a%20b", nil), ("user=a%6Cice", "alice"), ("user=a/b&uid=ok", "ok"),
        ("user=" + String(repeating: "a", count: 65), nil), ("User=alice", nil), ("user=ål", nil),
    ])
    func theQueryMayNameAUserWhereNoCredentialIsNeeded(_ query: String, _ user: String?) throws {
        #expect(try Doorkeeper().ask(query, from: "127.0.0.1").get().user == user)
    }

    @Test func aSignedURLNamesNoUser() throws {
        // The signature covers stream and time: the URL's holder could append any user.
        #expect(try Doorkeeper().ask(TestCredential.signed() + "&user=alice", from: "127.0.0.1").get().user == nil)
    }

    @Test(arguments: [
        ("a=b", "a=b"), ("", ""), ("a", "***"), ("a=", "a="), ("a=b&c=d&a=e", "a=b&c=d&a=e"), ("&&a=b&", "a=b"), ("a=b=c", "a=b=c"),
        ("a=%zz", "a=%zz"), ("token=x", "token=***"), ("TOKEN=x", "TOKEN=***"), ("tok%65n=x", "tok%65n=***"), ("jwt=x&b=1", "jwt=***&b=1"),
        ("b=1&key=k&secret=s&pass=p&password=w&ticket=t", "b=1&key=***&secret=***&pass=***&password=***&ticket=***"),
        ("txSecret=f85a&txTime=5C27", "txSecret=***&txTime=***"), ("sign=1&signature=2&apikey=3", "sign=***&signature=***&apikey=***"),
        // Recognised by its form, under any name.
        ("x=eyJhbGciOiJIUzI1NiJ9.e30.abc", "x=***"), ("eyJhbGciOiJIUzI1NiJ9.e30.abc", "***"),
    ])
    func credentialsAreTakenOutOfQueries(_ query: String, _ shown: String) {
        #expect(CredentialParameters.standard.redact(query) == shown)
    }

    /// A back end's own `token` reaches its hook, where the server's tokens have another name; shown under that, they are checked as before.
    @Test func tokensUnderAnotherName() throws {
        let door = Doorkeeper {
            $0.credentials.tokenParameters = ["et"]
            $0.access.publishFrom = CIDR.loopback
        }
        let token = TestCredential.token(#"{"exp":1795260000,"act":["publish"],"stream":"live/test"}"#)
        #expect(try door.ask("token=theirs&jwt=theirs", from: "127.0.0.1").get().isVerified == false)
        #expect(try door.ask("token=theirs&et=\(token)").get().isVerified)
        #expect(try door.ask("et=\(token)x", from: "127.0.0.1").refusal == .credentialWrong)
        #expect(try door.ask("token=\(token)").refusal == .credentialMissing)
        #expect(try door.ask("").message.contains("?et=…"))
        let known = door.rules.parameters
        #expect(known.redactOwn("token=theirs&ET=ours") == "token=theirs&ET=***")
        #expect(known.redact("token=theirs&et=ours") == "token=***&et=***", "neither is for the log")
    }

    /// Without names there are no tokens.
    @Test func tokensCanBeSwitchedOff() throws {
        let door = Doorkeeper { $0.credentials.tokenParameters = [] }
        #expect(try door.ask("token=\(TestCredential.token(#"{"exp":1795260000,"act":["publish"]}"#))").refusal == .credentialMissing)
        #expect(try door.ask(TestCredential.signed()).get().isVerified)
    }

    @Test func parametersShowNoCredential() throws {
        let signed = try Doorkeeper().ask("a=b&\(TestCredential.signed())&key=hidden").get()
        #expect(signed.parameters == "a=b&txSecret=***&txTime=***&key=***")
        let open = try Doorkeeper().ask("a=b&password=hidden", from: "127.0.0.1").get()
        #expect(open.parameters == "a=b&password=***")
    }

    /// Invalid credentials, which must not open a door or end the process.
    @Test(.seeded) func hostileQueries() throws {
        let door = Doorkeeper()
        var queries = [
            String(repeating: "a", count: 10_240), String(repeating: "%", count: 10_240), String(repeating: "&", count: 10_240),
            String(repeating: "=", count: 10_240), String(repeating: "txSecret=&", count: 1_000), String(repeating: "%00", count: 3_000),
            "txSecret=" + String(repeating: "f", count: 10_240) + "&txTime=7FFFFFFF",
            "txSecret=x&txTime=" + String(repeating: "F", count: 10_240),
            "token=" + String(repeating: "a.", count: 5_000), "jwt=" + String(repeating: "é", count: 5_000),
            "%", "%4", "%zz", "%%%41", "%C3%28=%FF", "txSecret=%", "txSecret=%F0%9F&txTime=%", "token=%E2%80%8B", "\u{202E}txSecret=a",
            "txSecret[]=9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF", "txSecret=9992881f06990a8449c77a1a3e2a5e2b;txTime=7FFFFFFF",
            "?txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF", "txSecret =9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF",
            "txSecret=9992881f06990a8449c77a1a3e2a5e2b%00&txTime=7FFFFFFF", "txSecret=9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF%00",
            "txSecret%00=9992881f06990a8449c77a1a3e2a5e2b&txTime=7FFFFFFF", "' OR 1=1 --", "../../etc/passwd", "${jndi:ldap://x}",
        ]
        var random = TestRandom()
        let pieces = ["txSecret", "txTime", "token", "jwt", "=", "&", "%", "%41", "7FFFFFFF", "é", "\u{0}", ".", "eyJ", "user", "?", "+"]
        for _ in 0..<2_000 {
            queries.append((0..<Int.random(in: 1...20, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined())
        }
        let reasons: Set<CloseReason> = [.credentialMissing, .credentialNoTime, .credentialWrong]
        for query in queries {
            for action in [AdmissionRequest.Action.publish, .play] {
                let answer = try door.ask(query, action: action)
                #expect(answer.refusal.map(reasons.contains) == true, "\(query)")
                #expect(answer.message.utf8.count < 400)
            }
            // Redacting it must not trap either.
            _ = CredentialParameters.standard.redact(query)
            _ = CredentialParameters.standard.redactOwn(query)
        }
    }

    @Test(arguments: [
        ("abc", "abc"), ("a%62c", "abc"), ("%41%4a%4A", "AJJ"), ("%", "%"), ("%4", "%4"), ("%4g", "%4g"), ("%%41", "%A"), ("a+b", "a+b"),
        ("%E2%82%AC", "€"), ("%FF", "%FF"), ("a%FFb%41", "a%FFb%41"), ("%00", "\u{0}"), ("€%41", "€A"), ("", ""),
    ])
    func percentDecoding(_ text: String, _ decoded: String) {
        #expect(QueryParameters.decode(text[...]) == decoded)
    }
}
