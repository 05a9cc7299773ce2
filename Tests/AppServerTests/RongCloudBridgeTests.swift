import Apps
import Logging
import ServerConfiguration
import ServerTestSupport
import Support
import Synchronization
import TestSupport
import Testing

@testable import AppServer

/// The bridge's queue, with requests that a test answers.
@Suite struct RongCloudBridgeTests {
    /// Holds requests back until it is opened, then answers them all. Any thread.
    private final class Gate: Sendable {
        private struct State {
            var isOpen = false
            var paths: [String] = []
            var bodies: [String] = []
        }

        private let state = Mutex(State())
        var paths: [String] { self.state.withLock { $0.paths } }
        var bodies: [String] { self.state.withLock { $0.bodies } }
        func open() { self.state.withLock { $0.isOpen = true } }

        func post(_ url: String, _ body: [UInt8]) async throws -> (status: Int, body: [UInt8]) {
            self.state.withLock {
                $0.paths.append(url)
                $0.bodies.append(String(decoding: body, as: UTF8.self))
            }
            while !self.state.withLock({ $0.isOpen }) { try await Task.sleep(for: .milliseconds(5)) }
            return (200, Array(#"{"code":200,"token":"t"}"#.utf8))
        }
    }

    private let gate = Gate()
    private let lines = LogLines()
    private let counters = AppCounters()

    private func bridge() throws -> RongCloudBridge {
        var config = ServerConfig().apps.rongcloud
        (config.host, config.appKey, config.secret) = ("https://cloud.example", "key", "a-long-secret")
        let log = Logger(label: "test", factory: { [lines = self.lines] _ in CollectingLogHandler(lines: lines) })
        return try RongCloudBridge(
            config, post: { [gate = self.gate] url, _, body, _ in try await gate.post(url, body) }, counters: self.counters, log: log
        ).orThrow()
    }

    /// A class of two, and a message from one to the other.
    private func world() throws -> (Classroom, Gathering.Effect) {
        var room = Classroom(createdAtMs: 0)
        for id in ["u0", "u1"] {
            _ = try room.apply(.join(id: id, name: "n", isAudience: false, disableCamera: false), nowMs: 0)
            _ = try room.apply(.connect(id: id, name: "n", role: "", .remote(id == "u0" ? 1 : 2)), nowMs: 0)
        }
        return (room, .send(.notified(from: "u0", object: "SC:DRMsg", content: .null, atMs: 0), to: [.remote(2)]))
    }

    private func change(
        _ room: Classroom, _ effects: [Gathering.Effect], id: String = "class-m", kind: String = GatheringKinds.classroom,
        receipt: FollowUpReceipt? = nil
    ) -> GatheringRunner.AppliedChange {
        .init(id: id, kind: kind, former: room, effects: effects, receipt: receipt)
    }

    /// A thousand messages of a class may wait; calls that change its group always find room.
    @Test func theBound() async throws {
        let (bridge, (room, message)) = (try self.bridge(), try self.world())
        bridge.applied(self.change(room, [message]))
        // The first is under way, and waits no more.
        try await eventually("the first call") { self.gate.paths.count == 1 }
        bridge.applied(self.change(room, Array(repeating: message, count: 1_000)))
        #expect(self.counters.current.rongCloudDropped == 0)
        bridge.applied(self.change(room, Array(repeating: message, count: 7)))
        #expect(self.counters.current.rongCloudDropped == 7)
        // Another class has a queue of its own.
        bridge.applied(self.change(room, [message], id: "class-other"))
        try await eventually("the other class's call") { self.gate.paths.count == 2 }
        let (member, receipt) = (try room.gathering.member("u1").orThrow(), FollowUpReceipt())
        bridge.applied(self.change(room, [.left(member, .kicked)], receipt: receipt))
        #expect(receipt.isExpected && self.counters.current.rongCloudDropped == 7)
        self.gate.open()
        #expect(await self.lines.comes("Calls of RongCloud were given up", "calls=7", "class=class-m"))
        try #require(await receipt.outcome(within: .seconds(60))).get()
        #expect(self.gate.paths.count == 1_003 && self.gate.paths.last == "https://cloud.example/group/quit.json")
        #expect(self.lines.all.count == 1 && self.counters.current.rongCloudFailed == 0)
        // Nothing is left behind; the next call begins anew.
        bridge.applied(self.change(room, [message]))
        try await eventually("one more") { self.gate.paths.count == 1_004 }
    }

    /// In the order of the changes, also across commands.
    @Test func theOrder() async throws {
        let (bridge, (room, _)) = (try self.bridge(), try self.world())
        self.gate.open()
        for index in 0..<200 {
            let text = Gathering.Effect.send(
                .notified(from: "u0", object: "SC:DRMsg", content: .integer(Int64(index)), atMs: 0), to: [.remote(2)])
            bridge.applied(self.change(room, [text]))
        }
        try await eventually("all calls") { self.gate.bodies.count == 200 }
        #expect(self.gate.bodies.enumerated().allSatisfy { $1.contains("&content=\($0)&") })
    }

    @Test func otherKindsAndWaiting() async throws {
        let (bridge, (room, message)) = (try self.bridge(), try self.world())
        bridge.applied(self.change(room, [message], kind: GatheringKinds.plain))
        #expect(self.gate.paths.isEmpty)
        // Nothing to wait for.
        let none = await FollowUpReceipt().outcome(within: .seconds(60))
        if case .some = none { Issue.record("nothing was expected") }
        let receipt = FollowUpReceipt()
        receipt.expect()
        let late = await receipt.outcome(within: .milliseconds(10))
        if case .some = late { Issue.record("it came too early") }
        // The first outcome counts.
        receipt.resolve(.failure(ClassroomCode.leaveRoom.refusal()))
        receipt.resolve(.success(()))
        let outcome = await receipt.outcome(within: .seconds(60))
        #expect(throws: ClassroomCode.leaveRoom.refusal()) { try outcome?.get() }
        let log = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        #expect(RongCloudBridge(ServerConfig().apps.rongcloud, post: { _, _, _, _ in (200, []) }, counters: self.counters, log: log) == nil)
    }
}
