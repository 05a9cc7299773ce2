import Talk
import Testing

@testable import Access
@testable import Talkback

/// The role that a credential gives.
@Suite struct TalkRoleTests {
    /// The owner's name gives the role of host if the credential is verified. A role in it, or another user, overrides that.
    @Test(arguments: [
        ("owner" as String?, nil as String?, true, TalkRole.host), (nil, nil, true, .host), ("owner", "guest", true, .guest),
        ("owner", "viewer", true, .guest), ("owner", "cohost", true, .coHost), ("eve", nil, true, .guest), ("eve", "host", true, .host),
        ("owner", nil, false, .guest), (nil, nil, false, .guest), ("eve", nil, false, .guest),
    ])
    func roles(_ user: String?, _ role: String?, _ isVerified: Bool, _ expected: TalkRole) {
        let pass = AdmissionPass(identity: "x", user: user, role: role, isVerified: isVerified, parameters: "")
        #expect(TalkRole(pass, id: "owner", owner: "owner") == expected)
        if expected == .host, role == nil { #expect(TalkRole(pass, id: "owner", owner: nil) == .guest) }
    }
}
