import Testing

@testable import Relay

/// Two spellings of one text, which Swift's strings take for equal, are two names.
@Suite struct NameIdentityTests {
    private static let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")

    @Test func `another spelling of an identity takes nothing over`() throws {
        var state = StreamState()
        var items: [StreamState.Item] = []
        let first = try state.claim(PublisherIdentity("user \(Self.composed)"), nowMs: 0, items: &items).token
        #expect(throws: ClaimRefusal.nameTaken) {
            try state.claim(PublisherIdentity("user \(Self.decomposed)", rank: 9), nowMs: 1, items: &items)
        }
        #expect(state.publisherToken == first)
        #expect(try state.claim(PublisherIdentity("user \(Self.composed)"), nowMs: 2, items: &items).replaced == first)
        #expect(PublisherIdentity(Self.composed) != PublisherIdentity(Self.decomposed))
    }

    @Test func `each spelling is a stream of its own`() async throws {
        try await RelayHarness.run { relay in
            let stream = try await relay.acquire("live/\(Self.composed)")
            #expect(relay.registry.find("live/\(Self.composed)") === stream && relay.registry.find("live/\(Self.decomposed)") == nil)
            #expect(try await relay.acquire("live/\(Self.decomposed)") !== stream && relay.registry.count == 2)
        }
    }
}
