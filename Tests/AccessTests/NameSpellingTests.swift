import Foundation
@testable import Outbound
import RTMP
import ServerTestSupport
import Support
import Testing

@testable import Access

/// Credentials name streams, rooms and users in one spelling.
@Suite struct NameSpellingTests {
    /// Claims besides `exp` with a name in another spelling than Normalization Form C, and the claim that the refusal names.
    @Test(arguments: [
        (#""stream":"live/cafe\u0301""#, "stream"), (#""room":"\u212Aamera""#, "room"),
        (#""stream":"live/caf\u00e9","sub":"jose\u0301""#, "sub"),
        (#""talk":"\u212A","stream":"live/caf\u00e9""#, "talk"),
    ])
    func `a token with a name in another spelling opens nothing`(_ claims: String, _ claim: String) throws {
        let query = "token=\(TestCredential.token("{\(claims),\"act\":[\"publish\",\"play\"],\"exp\":2000000000}"))"
        for action in AdmissionRequest.Action.allCases {
            let answer = try Doorkeeper().ask(query, name: "caf\u{E9}", action: action)
            #expect(answer.refusal == .credentialWrong)
            #expect(answer.message.contains("The token's \(claim) is not in Unicode Normalization Form C: write "), "\(answer.message)")
        }
    }

    /// Even if a stream with such a name were let in: the claim is compared by its bytes.
    @Test func `a claim is compared by its bytes`() throws {
        let address = try StreamAddress(app: "live", name: "caf\u{E9}")
        let token = AccessToken(expires: 2_000_000_000, stream: "live/cafe\u{301}", act: ["play"])
        let error = #expect(throws: AdmissionRefusal.self) { try token.check(.play, address) }
        #expect(error?.reason == .credentialWrong)
        try AccessToken(expires: 2_000_000_000, stream: "live/caf\u{E9}", act: ["play"]).check(.play, address)
        #expect(AccessToken.opens("Kamera", app: "live", name: "Kamera"))
        #expect(!AccessToken.opens("Kamera", app: "live", name: "\u{212A}amera"))
    }

    @Test(arguments: [(#""room":"cafe\u0301","name":"Ann""#, "room"), (#""room":"caf\u00e9","name":"Jose\u0301""#, "name")])
    func `so does a channel's token`(_ claims: String, _ claim: String) throws {
        let text = TestCredential.token("{\(claims),\"aud\":\"channel\",\"sub\":\"ann\",\"kind\":\"mesh\",\"exp\":2000000000}")
        let error = #expect(throws: AdmissionRefusal.self) {
            try ChannelToken(verifying: text, keys: TestCredential.keys, nowSeconds: Doorkeeper.now)
        }
        #expect(error?.message.contains("The token's \(claim) is not in Unicode Normalization Form C") == true)
    }

    @Test func `a hook's id has one spelling`() throws {
        let body = { (id: String) in OutboundAnswer(status: 200, body: Array(#"{"code":0,"id":"\#(id)"}"#.utf8)) }
        _ = try HookAnswer(body("caf\u{E9}"))
        let error = #expect(throws: HookAnswer.Problem.self) { try HookAnswer(body("cafe\u{301}")) }
        #expect(error?.description.contains("the id in its answer is not in Unicode Normalization Form C") == true)
    }
}
