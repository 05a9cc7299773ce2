import Apps
import HTTPServer
import PortlessTestSupport
import Rooms
import ServerTestSupport
import Support
import Synchronization
import TestSupport
import Testing

@testable import AppServer

/// The line of a gathering's commands, held up by a change that a test ends.
@Suite struct GatheringRunnerTests {
    /// The codes of refused commands, by sender, and the number of those carried out.
    private final class Answers: Sendable {
        private let codes = Mutex<[ConnectionID: [String]]>([:])

        func of(_ sender: ConnectionID) -> [String] { self.codes.withLock { $0[sender] ?? [] } }
        func receive(_ outcome: GatheringRunner.Outcome, of sender: ConnectionID) {
            self.codes.withLock { codes in
                switch outcome {
                case .success: codes[sender, default: []].append("ok")
                case .failure(let failure): codes[sender, default: []].append(failure.code)
                }
            }
        }
    }

    /// A member that sends faster than its commands are carried out fills its own part of the line, in number or in bytes; others have theirs, and
    /// an operator's end passes everything.
    @Test func aLineThatIsFull() async throws {
        try await PortlessServer.run { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"r"}"#)
            let isHeld = Mutex(true)
            let hasBegun = Mutex(false)
            let runner = GatheringRunner(
                id: "plain-r", kind: GatheringKinds.plain, room: try RoomID(checking: "r"),
                Gathering(limits: GatheringLimits(members: 10, offlineMs: 60_000)), isStored: false, createdAtMs: 0, rooms: server.rooms,
                limits: LimitHits(),
                mute: { _, _, _ in
                    hasBegun.withLock { $0 = true }
                    while isHeld.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(5)) }
                },
                whenChanged: { _ in }, whenOver: { $0.stop() })
            let answers = Answers()
            let (ann, bob, cat) = (ConnectionID.remote(1), ConnectionID.remote(2), ConnectionID.remote(3))
            func say(_ sender: ConnectionID, _ name: String, bytes: Int) {
                var command = GatheringRunner.Command(input: .command(from: name, to: nil, content: .null)) {
                    answers.receive($0, of: sender)
                }
                (command.sender, command.bytes) = (sender, bytes)
                #expect(runner.submit(command))
            }
            for (id, name) in [(ann, "ann"), (bob, "bob"), (cat, "cat")] {
                _ = try await runner.outcome(of: .init(input: .connect(id: name, name: name, role: "", id))).get()
            }
            runner.submit(.init({ (_, _) throws(GatheringRefusal) in [.mute("ann", true)] }))
            try await eventually("the change that holds it up") { hasBegun.withLock { $0 } }

            for _ in 0..<600 { say(ann, "ann", bytes: 100) }
            #expect(answers.of(ann) == Array(repeating: "unavailable", count: 100))
            for _ in 0..<30 { say(bob, "bob", bytes: 100 << 10) }
            #expect(answers.of(bob) == Array(repeating: "unavailable", count: 9), "2 MiB are 21 of these, the last one begun within them")
            say(cat, "cat", bytes: 100)
            #expect(answers.of(cat).isEmpty, "it waits")

            let anOperator = ConnectionID.remote(4)
            runner.submit(.init(input: .end(reason: "ended")) { answers.receive($0, of: anOperator) }, isUrgent: true)
            isHeld.withLock { $0 = false }
            try await eventually("an answer for everybody") { answers.of(ann).count == 600 && answers.of(cat).count == 1 }
            #expect(answers.of(anOperator) == ["ok"])
            #expect(answers.of(cat) == ["ended"] && answers.of(ann).suffix(500).allSatisfy { $0 == "ended" })
        }
    }
}
