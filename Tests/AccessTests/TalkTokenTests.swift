import ServerTestSupport
import Support
import Testing

@testable import Access

/// The voice that a token opens.
@Suite struct TalkTokenTests {
    /// Claims besides `exp`, and whether they allow speaking as r1/ann.
    @Test(arguments: [
        (#""room":"r1","role":"guest","sub":"ann""#, true), (#""talk":"r1","role":"guest","sub":"ann""#, true),
        (#""room":"r1","role":"host","sub":"ann""#, true), (#""room":"r1","act":["publish"],"sub":"ann""#, true),
        (#""stream":"talk/r1/ann","act":["publish"]"#, true), (#""stream":"talk/r1/ann","act":["publish"],"sub":"eve@example.com""#, true),
        (#""room":"r1","role":"guest""#, false), (#""room":"r1","role":"guest","sub":"""#, false),
        (#""room":"r1","role":"guest","sub":"eve@example.com""#, false), (#""talk":"r1","role":"cohost""#, false),
        (#""room":"r1","role":"host""#, false), (#""room":"r1","act":["publish"]"#, false),
        (#""room":"r1","role":"guest","sub":"eve""#, false), (#""room":"r1","role":"guest","sub":"nn""#, false),
        (#""stream":"talk/r1/eve","act":["publish"]"#, false), (#""stream":"talk/r1/ann","act":["publish"],"sub":"eve""#, false),
    ])
    func tokensToSpeakWith(_ claims: String, _ allowed: Bool) throws {
        let query = "token=\(TestCredential.token("{\(claims),\"exp\":2000000000}"))"
        let answer = try Doorkeeper().ask(query, app: "talk", name: "r1/ann")
        #expect(answer.refusal == (allowed ? nil : .credentialWrong), "\(answer.message)")
        // Listening needs no name.
        guard !claims.contains("act"), !claims.contains("stream") else { return }
        #expect(try Doorkeeper().ask(query, app: "talk", name: "r1/mix", action: .play).pass != nil)
    }

    /// The part of a name's query that differs from the app's.
    @Test(arguments: [
        ("", "", "", false), ("a=b", "", "a=b", false), ("token=x", "", "token=x", true), ("token=x", "token=x", "", false),
        ("token=x&a=b", "token=x&c=d", "a=b", false), ("token=x&token=y", "token=x", "token=y", true),
        ("txSecret=1&txTime=2", "txSecret=1&txTime=2", "", false),
        ("txSecret=1&txTime=2&txSecret=3&txTime=2", "txSecret=1&txTime=2", "txSecret=3&txTime=2", true),
        ("txSecret=1&txTime=2&a=b&txSecret=1&txTime=2", "txSecret=1&txTime=2", "a=b", false),
        // The same time alone is not the same credential.
        ("txSecret=3&txTime=2", "txSecret=1&txTime=2", "txSecret=3&txTime=2", true), ("txTime=2", "txSecret=1&txTime=2", "txTime=2", true),
        ("jwt=x", "token=x", "jwt=x", true), ("tok%65n=x", "token=y", "tok%65n=x", true), ("user=eve", "token=x", "user=eve", false),
    ])
    func ownCredentials(_ query: String, _ other: String, _ rest: String, _ hasCredential: Bool) {
        let own = CredentialParameters.standard.own(of: query, beside: other)
        #expect(own.query == rest && own.hasCredential == hasCredential)
    }
}
