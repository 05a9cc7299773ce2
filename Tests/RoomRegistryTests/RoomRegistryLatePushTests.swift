import Testing

@testable import RoomRegistry
@testable import Rooms

/// Reports of pushes that others have displaced.
@Suite struct RoomRegistryLatePushTests {
    /// A room remembers only some of many pushes that compete for a name. A push that it has forgotten is cut when its media arrives after the room's
    /// end, and does not count as begun.
    @Test func mediaAfterTheEndBeginsNothing() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        try await test.goLive("live/cam1")
        var knocks: [PushGrant] = []
        for _ in 0..<6 { knocks.append(try await test.push("live/cam1", from: "192.0.2.9").get()) }
        try await test.apply(.close, "cam1")
        let (kinds, cuts) = (test.kinds, test.cuts)
        let first = try #require(knocks.first).sequence
        test.registry.mediaArrived(first, MediaSummary())
        await test.settle()
        #expect(test.cuts == cuts + ["live/cam1 \(first.rawValue) roomEnded"])
        #expect(test.kinds == kinds && kinds.count { $0 == .streamBegin } == 1)
    }

    /// Only the newest push announces a pause: another one's client no longer knows what the stream does.
    @Test func theNewestPushAloneAnnouncesAPause() async throws {
        let test = try TestRegistry()
        defer { test.remove() }
        try await test.create("cam1")
        let first = try await test.goLive("live/cam1")
        let second = try await test.push("live/cam1").get()
        test.registry.pauseAnnounced(first.sequence)
        await test.settle()
        #expect(try await test.registry.room("cam1").state == .live)
        test.registry.pauseAnnounced(second.sequence)
        await test.settle()
        #expect(try await test.registry.room("cam1").reason == .paused)
    }
}
