import Testing

@testable import RoomRegistry
@testable import Rooms
@testable import Support

/// Names in the store have one spelling, and what is refused is refused by its bytes.
@Suite struct NameSpellingTests {
    private static let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")

    @Test func `a ban, a token and a key of another spelling are refused in words`() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        for path in [StreamPath(app: "live", name: Self.decomposed), StreamPath(app: Self.decomposed, name: "cam")] {
            let error = await fieldError { try await test.registry.forbid(path, untilMs: test.now + 60_000, reason: "", by: Actor("test")) }
            #expect(error?.rule.contains("is not in Unicode Normalization Form C") == true)
        }
        let error = await fieldError { try await test.registry.createToken(name: Self.decomposed, role: .ops) }
        #expect(error?.field == "name" && error?.rule.contains("is not in Unicode Normalization Form C") == true)
        _ = try await test.registry.createToken(name: Self.composed, role: .ops)
        #expect(try await test.registry.bans(after: nil, limit: 10).total == 0)
    }

    @Test func `a kick and a ban hold for a name's bytes`() {
        let kicks = KickTable()
        let room = RoomID(stored: "cafe")
        kicks.apply([(Kick(roomID: room, user: Self.composed, until: 10), [StreamPath(app: "live", name: Self.composed)])], now: 0)
        #expect(kicks.until(Self.composed, room: room, now: 1) == 10 && kicks.until(Self.decomposed, room: room, now: 1) == nil)
        #expect(kicks.until(Self.composed, path: "live/\(Self.composed)", now: 1) == 10)
        #expect(kicks.until(Self.composed, path: "live/\(Self.decomposed)", now: 1) == nil)
        let plays = PlayTable()
        plays.apply([.banned(StreamPath(app: "live", name: Self.composed), BanTerms(untilMs: .max, reason: ""))])
        #expect(plays.refusal("live/\(Self.composed)") == .forbidden && plays.refusal("live/\(Self.decomposed)") == nil)
    }
}
