import RoomRegistry
import Testing

@testable import Rooms

/// The index of recordings: rows and events share a transaction, across restarts.
@Suite struct RoomRegistryRecordingTests {
    private static func withRegistry(
        _ change: (inout RoomRegistry.Settings) -> Void = { _ in }, _ body: (TestRegistry) async throws -> Void
    ) async throws {
        let test = try TestRegistry(change)
        defer { test.remove() }
        try await test.registry.start()
        try await body(test)
        await test.registry.stop()
    }

    private static let path = StreamPath(app: "live", name: "cam1")

    private static func recording(
        _ id: String, task: String = "t1", part: Int = 1, path: StreamPath = path, room: String? = "cam1", at: Int64 = TestRegistry.start
    ) -> Recording {
        Recording(
            id: id, task: RecordingTask(id: task, path: path, roomID: room.map(RoomID.init(stored:)), slot: room == nil ? 0 : 1),
            part: part,
            file: "\(path)/\(id).mp4", startedAt: at,
            media: MediaSummary(width: 1_280, height: 720, videoCodec: "avc1.64001f", audioCodec: "mp4a.40.2"))
    }

    private static func outcome(_ end: RecordingEnd, bytes: Int64 = 1_000, at: Int64 = TestRegistry.start + 5_000) -> RecordingOutcome {
        RecordingOutcome(end: end, endedAt: at, durationMs: 5_000, bytes: bytes, droppedFrames: 2)
    }

    private static func makeRoom(_ test: TestRegistry) async throws {
        var new = NewRoom(policy: RoomPolicy())
        new.id = RoomID(stored: "cam1")
        _ = try await test.registry.create(new, by: .server)
    }

    /// A caller that waits for a row is notified when it will never be stored.
    @Test func aRowThatIsNotTakenIsTold() async throws {
        try await Self.withRegistry { test in
            try await Self.makeRoom(test)
            for isStored in [true, false] {
                // An id can be stored only once.
                let told = await withCheckedContinuation { done in
                    test.registry.recordingBegan(Self.recording("a")) { done.resume(returning: $0) }
                }
                #expect(told == isStored)
            }
        }
    }

    /// A failed recording whose file is gone uses no space. It stays failed for its first reason.
    @Test func whatIsLostTakesNoRoom() async throws {
        try await Self.withRegistry { test in
            try await Self.makeRoom(test)
            let registry = test.registry
            registry.recordingBegan(Self.recording("a")) { _ in }
            registry.recordingEnded("a", Self.outcome(.diskFull))
            registry.recordingLost("a", .fileMissing, bytes: 0)
            let stored = try await Self.stored("a", test)
            #expect(stored.state == .failed && stored.reason == .diskFull && stored.bytes == 0)
            #expect(try await registry.recordingDeleted("a")?.bytes == 0)
            let kinds = try await registry.events(after: 0, room: nil, limit: 100).map(\.kind).filter { $0 == .recordFailed }
            #expect(kinds.count == 1)
        }
    }

    /// An ordered recording ends when its end is reported, not when the server stops.
    @Test func anOrderOutlivesTheServer() async throws {
        try await Self.withRegistry { test in
            try await Self.makeRoom(test)
            let registry = test.registry
            let made = Self.recording("a")
            registry.recordingOrdered(RecordingOrder(task: made.task, startedAt: TestRegistry.start))
            registry.recordingBegan(made) { _ in }
            registry.recordingStarted("a")
            try await registry.closeLeftRecordings()
            registry.recordingTaskEnded(made.task, .serverShutdown, wasStarted: true)
            #expect(try await Self.stored("a", test).state == .finishing)
            let left = RecordingOrder(task: made.task, startedAt: TestRegistry.start, parts: 1, isStarted: true)
            #expect(try await registry.recordingOrders() == [left])
            registry.recordingTaskEnded(made.task, .streamEnded, wasStarted: true)
            _ = try await registry.recordingDeleted("none")
            #expect(try await registry.recordingOrders().isEmpty)
            let kinds = try await registry.events(after: 0, room: nil, limit: 100).map(\.kind).filter { $0 == .recordEnded }
            #expect(kinds == [.recordEnded])
        }
    }

    @Test func aRowGoesFromRecordingToFinished() async throws {
        try await Self.withRegistry { test in
            try await Self.makeRoom(test)
            let registry = test.registry
            let made = Self.recording("a")
            registry.recordingBegan(made) { _ in }
            registry.recordingStarted("a")
            var stored = try await Self.stored("a", test)
            #expect(stored.state == .recording && stored.reason == nil && stored.endedAt == nil && stored.media == made.media)
            #expect(stored.task == made.task && stored.file == made.file && stored.part == 1 && stored.row > 0)
            registry.recordingEnded("a", Self.outcome(.stopped))
            stored = try await Self.stored("a", test)
            #expect(stored.state == .finishing && stored.reason == .stopped && stored.bytes == 1_000 && stored.droppedFrames == 2)
            #expect(try await registry.unfinishedRecordings(after: 0, limit: 10).map(\.id) == ["a"])
            registry.recordingTaskEnded(made.task, .stopped, wasStarted: true)
            registry.recordingFinished("a", bytes: 1_100, durationMs: 5_040, isSeekable: true)
            stored = try await Self.stored("a", test)
            #expect(stored.state == .finished && stored.isSeekable && stored.bytes == 1_100 && stored.durationMs == 5_040)
            #expect(try await registry.recordingBytes() == 1_100)
            // Further reports change nothing and send no event.
            registry.recordingEnded("a", Self.outcome(.diskFull))
            registry.recordingFinished("a", bytes: 1, durationMs: nil, isSeekable: false)
            registry.recordingLost("a", .fileMissing, bytes: 0)
            stored = try await Self.stored("a", test)
            #expect(stored.bytes == 1_100 && stored.reason == .stopped && stored.state == .finished)
            let events = test.events.filter { $0.kind.rawValue.hasPrefix("record.") }
            #expect(events.map(\.kind) == [.recordStarted, .recordEnded, .recordFinished])
            #expect(events.allSatisfy { $0.roomID?.rawValue == "cam1" } && test.events.map(\.number) == [1, 2, 3, 4])
            #expect(events[2].data.contains(#""recordingId":"a""#) && events[2].data.contains(#""bytes":1100"#))
            #expect(events[1].data.contains(#""files":1"#))
        }
    }

    private static func stored(_ id: String, _ test: TestRegistry) async throws -> Recording {
        await test.settle()
        return try #require(try await test.registry.recording(id))
    }

    @Test func failuresAreToldAtOnce() async throws {
        try await Self.withRegistry { test in
            try await Self.makeRoom(test)
            test.registry.recordingBegan(Self.recording("a")) { _ in }
            test.registry.recordingEnded("a", Self.outcome(.quotaExceeded))
            #expect(try await Self.stored("a", test).state == .failed)
            #expect(test.kinds.last == .recordFailed)
            // Its index may still be moved to the front. It stays failed, and no further event is sent.
            test.registry.recordingFinished("a", bytes: 900, durationMs: nil, isSeekable: true)
            let stored = try await Self.stored("a", test)
            #expect(stored.state == .failed && stored.isSeekable && stored.bytes == 900)
            #expect(test.kinds.filter { $0 == .recordFailed }.count == 1 && !test.kinds.contains(.recordFinished))

            // A task that never had a file.
            test.registry.recordingTaskEnded(Self.recording("b", task: "t2").task, .diskFull, wasStarted: false)
            // A task with nothing to report.
            test.registry.recordingTaskEnded(Self.recording("c", task: "t3").task, .streamEnded, wasStarted: false)
            await test.settle()
            #expect(test.kinds.filter { $0 == .recordFailed }.count == 2 && !test.kinds.contains(.recordEnded))
        }
    }

    @Test func aKillLeavesNoneRunning() async throws {
        let first = try TestRegistry()
        defer { first.remove() }
        try await first.registry.start()
        try await Self.makeRoom(first)
        for id in ["a", "b", "c"] { first.registry.recordingBegan(Self.recording(id, task: "t\(id)")) { _ in } }
        first.registry.recordingEnded("b", Self.outcome(.split))
        first.registry.recordingEnded("c", Self.outcome(.stopped))
        first.registry.recordingFinished("c", bytes: 5, durationMs: 5, isSeekable: true)
        await first.settle()
        let next = try await first.restarted()
        next.pass(60_000)
        try await next.registry.closeLeftRecordings()
        #expect(try await next.registry.unfinishedRecordings(after: 0, limit: 10).map(\.id) == ["a", "b"])
        let left = try await Self.stored("a", next)
        #expect(left.reason == .serverRestart && left.endedAt == next.now)
        #expect(try await Self.stored("b", next).reason == .split)
        #expect(next.kinds.filter { $0 == .recordEnded }.count == 1)
        // A second time it adds nothing.
        try await next.registry.closeLeftRecordings()
        #expect(next.kinds.filter { $0 == .recordEnded }.count == 1)
        next.registry.recordingLost("a", .empty, bytes: 0)
        #expect(try await Self.stored("a", next).state == .failed)
        #expect(next.kinds.last == .recordFailed)
        await next.registry.stop()
        await first.registry.stop()
    }

    @Test func streamsWithoutRoomsHaveThemToo() async throws {
        try await Self.withRegistry { test in
            let made = Self.recording("a", room: nil)
            test.registry.recordingBegan(made) { _ in }
            test.registry.recordingStarted("a")
            // Also of a room that no longer exists.
            test.registry.recordingBegan(Self.recording("b", task: "t2", room: "gone")) { _ in }
            test.registry.recordingStarted("b")
            let stored = try await Self.stored("a", test)
            #expect(stored.task.roomID == nil)
            #expect(test.kinds == [.recordStarted, .recordStarted])
            #expect(test.events.allSatisfy { $0.roomID == nil && $0.number == 0 })
        }
    }

    @Test func listsAreReadPageByPage() async throws {
        try await Self.withRegistry { test in
            let other = StreamPath(app: "live", name: "cam2")
            for index in 0..<25 {
                test.registry.recordingBegan(
                    Self.recording(
                        "r\(index)", task: "t\(index)", path: index % 5 == 0 ? other : Self.path, room: index % 5 == 0 ? "cam2" : "cam1")
                ) { _ in }
                if index < 10 { test.registry.recordingEnded("r\(index)", Self.outcome(.stopped, at: TestRegistry.start + Int64(index))) }
                if index < 6 { test.registry.recordingFinished("r\(index)", bytes: 10, durationMs: 5, isSeekable: true) }
            }
            await test.settle()
            var query = RecordingQuery()
            query.limit = 10
            var seen: [String] = []
            while true {
                let page = try await test.registry.recordings(query)
                seen += page.map(\.id)
                guard page.count == 10 else { break }
                query.after = page.last?.row
            }
            #expect(seen == (0..<25).reversed().map { "r\($0)" })
            func ids(_ change: (inout RecordingQuery) -> Void) async throws -> [String] {
                var query = RecordingQuery()
                change(&query)
                return try await test.registry.recordings(query).map(\.id)
            }
            let others = ["r20", "r15", "r10", "r5", "r0"]
            #expect(try await ids { $0.room = "cam2" } == others)
            #expect(try await ids { ($0.app, $0.name) = ("live", "cam2") } == others)
            #expect(try await ids { $0.app = "live" }.count == 25)
            #expect(try await ids { $0.app = "other" }.isEmpty)
            #expect(try await ids { ($0.room, $0.state) = ("cam2", .finished) } == ["r5", "r0"])
            #expect(try await ids { $0.state = .finishing } == ["r9", "r8", "r7", "r6"])

            // Retention lists what has ended, oldest first; deleted rows go with the history.
            let old = try await test.registry.recordings(endedBefore: TestRegistry.start + 3, limit: 10)
            #expect(old.map(\.id) == ["r0", "r1", "r2"])
            #expect(try await test.registry.recordingDeleted("r0")?.bytes == 10)
            // Deleted already, being finished, being written.
            for id in ["r0", "r9", "r20"] {
                let none = try await test.registry.recordingDeleted(id)
                #expect(none == nil, "\(id)")
            }
            #expect(try await ids { $0.room = "cam2" } == others.dropLast())
            #expect(try await ids { $0.state = .deleted } == ["r0"])
            #expect(try await test.registry.recordingBytes() == 50 + 4_000)
            await test.advance(8 * 86_400_000)
            let (forgotten, kept) = (try await test.registry.recording("r0"), try await test.registry.recording("r1"))
            #expect(forgotten == nil && kept != nil)
        }
    }

    /// A target gets only the events that it takes.
    @Test func bothKindsOfTargetsHear() async throws {
        try await Self.withRegistry({
            $0.webhooks = [
                WebhookTarget(url: "http://a.example/", format: .earshot), WebhookTarget(url: "http://b.example/", format: .vendor),
            ]
            $0.notifies = { $0.format == .earshot || $1 == .recordStarted }
        }) { test in
            try await Self.makeRoom(test)
            test.registry.recordingBegan(Self.recording("a")) { _ in }
            test.registry.recordingStarted("a")
            await test.settle()
            let deliveries = try await test.registry.deliveries(state: .pending, room: nil, before: nil, limit: 10)
            #expect(deliveries.filter { $0.target.format == .vendor }.map(\.event.kind) == [.recordStarted])
            #expect(deliveries.filter { $0.target.format == .earshot }.count == 2)
        }
    }
}
