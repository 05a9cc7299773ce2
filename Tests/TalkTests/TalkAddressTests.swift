import Talk
import Testing

@Suite struct TalkAddressTests {
    @Test func names() throws {
        let alice = try ParticipantID("alice")
        let table: [(String, TalkAddress)] = [
            ("mix", .mix), ("mix-alice", .mixWithout(alice)), ("alice", .voice(alice)),
            ("mixer", .voice(try ParticipantID("mixer"))), ("Mix", .voice(try ParticipantID("Mix"))),
            ("mix_a", .voice(try ParticipantID("mix_a"))), ("-", .voice(try ParticipantID("-"))),
            ("mix--", .mixWithout(try ParticipantID("-"))),
            (String(repeating: "z", count: 64), .voice(try ParticipantID(String(repeating: "z", count: 64)))),
        ]
        for (name, address) in table {
            #expect(try TalkAddress(name) == address)
            #expect(address.name == name && "\(address)" == name)
        }
        #expect(try TalkAddress("alice").publisher() == alice)
    }

    @Test(
        arguments: [
            ("", .empty), ("mix-", .missingParticipant), ("mix-mix", .reserved("mix")), ("mix-mix-a", .reserved("mix-a")),
            ("a b", .badCharacter(at: 1)), ("é", .badCharacter(at: 0)), ("mix-a/b", .badCharacter(at: 5)), ("a\u{0}", .badCharacter(at: 1)),
            ("a.b", .badCharacter(at: 1)), ("ａ", .badCharacter(at: 0)),
            (String(repeating: "z", count: 65), .tooLong(found: 65, max: 64)),
            ("mix-" + String(repeating: "z", count: 65), .tooLong(found: 65, max: 64)),
        ] as [(String, TalkAddressError)])
    func refused(_ name: String, _ error: TalkAddressError) {
        #expect(throws: error) { try TalkAddress(name) }
        #expect(!"\(error)".isEmpty)
    }

    @Test func onlyVoicesArePublished() {
        #expect(throws: TalkAddressError.notPublishable("mix")) { try TalkAddress.mix.publisher() }
        #expect(throws: TalkAddressError.notPublishable("mix-a")) { try TalkAddress("mix-a").publisher() }
        #expect(throws: TalkAddressError.reserved("mix-a")) { try ParticipantID("mix-a") }
    }

    @Test func ticks() {
        #expect(TalkFormat.microseconds(tick: 3) == 64_000 && TalkFormat.milliseconds(tick: 3) == 64)
        #expect((0..<4).map { TalkFormat.milliseconds(tick: $0) } == [0, 21, 42, 64])
        #expect(TalkFormat.microseconds(tick: .max) > 0 && TalkFormat.milliseconds(tick: .min) < 0)
    }
}
