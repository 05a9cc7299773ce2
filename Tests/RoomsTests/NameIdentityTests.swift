import Support
import Testing

@testable import Rooms

/// Two spellings of one text, which Swift's strings take for equal, are two names.
@Suite struct NameIdentityTests {
    private static let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")

    @Test func `names are compared by their bytes`() {
        let (one, other) = (StreamPath(app: "live", name: Self.composed), StreamPath(app: "live", name: Self.decomposed))
        #expect(one != other && one == StreamPath("live/caf\u{E9}") && Set([one, other]).count == 2)
        #expect(StreamPath(app: Self.composed, name: "x") != StreamPath(app: Self.decomposed, name: "x"))
        #expect(RoomID(stored: Self.composed) != RoomID(stored: Self.decomposed) && RoomID(stored: "K") != RoomID(stored: "\u{212A}"))
        let claims = [Self.composed, Self.decomposed].map { PushClaim(identity: $0, rank: 0, takeover: .sameIdentity) }
        #expect(claims[0] != claims[1])
    }

    /// A token for the app "K" does not reach one that is called KELVIN SIGN.
    @Test func `a token's apps are compared by their bytes`() {
        let scope = TokenScope(apps: ["K"], rooms: [])
        #expect(scope.holds(app: "K") && !scope.holds(app: "\u{212A}") && !scope.holds(StreamPath(app: "\u{212A}", name: "x")))
    }

    @Test func `a name has one spelling`() throws {
        try RoomLimits.checkName(Self.composed, "name", longest: 64)
        let error = #expect(throws: FieldError.self) { try RoomLimits.checkName(Self.decomposed, "name", longest: 64) }
        #expect(error?.field == "name" && error?.rule.contains("is not in Unicode Normalization Form C") == true)
        #expect(throws: FieldError.self) { try RoomLimits.checkName("", "name", longest: 64) }
        #expect(throws: FieldError.self) { try RoomLimits.checkName("abcde", "name", longest: 4) }
        #expect(throws: FieldError.self) { try RoomLimits.checkName("a\u{200B}", "name", longest: 4) }
    }
}
