import Rooms
import Testing

/// Rooms across a server crash, or a step of its clock.
@Suite struct RoomRulesRestartTests {
    @Test func aLiveRoomHasItsGraceFromTheServersStart() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(1_000, .serverStarted)
        #expect(work.description == "interrupted/serverRestart [-] room.interrupted 1030")
        // And again from the next start, if the server crashes at once.
        try work.at(1_500, .serverStarted)
        #expect(work.description == "interrupted/serverRestart [-] 1530")
        try work.push(6, at: 1_529)
        #expect(work.description == "live/media [6*] room.resumed 3601")
    }

    @Test func anAbsentOwnerDoesNotCostTheDeviceItsGraceAfterARestart() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .memberLeft(user: "olga"))
        try work.at(1_000, .serverStarted)
        #expect(work.deadline == 1_030)
        try work.at(1_500, .serverStarted)
        #expect(work.deadline == 1_530)
    }

    @Test func aServerThatSaysGoodbyeIsARestartToo() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(100, .pushEnded(slot: 1, sequence: 5, .serverShutdown))
        try work.at(500, .serverStarted)
        #expect(work.description == "interrupted/serverRestart [-] 530")
    }

    /// Another node ends the push of a lost one; if the whole cluster starts anew meanwhile, the device has its grace from there.
    @Test func aLostNodesRoomSaysSoAndHasItsGraceFromTheNextStart() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(100, .pushEnded(slot: 1, sequence: 5, .nodeLost))
        #expect(work.description == "interrupted/nodeLost [-] room.interrupted 130")
        try work.at(120, .serverStarted)
        #expect(work.description == "interrupted/serverRestart [-] 150")
    }

    @Test func deadlinesThatPassedMeanwhileAreApplied() throws {
        var never = try RoomAtWork()
        try never.at(5_000, .serverStarted)
        #expect(try never.settle(at: 5_000) == [.roomExpired])
        #expect(never.room.reason == .neverStarted)

        var lost = try RoomAtWork()
        try lost.push(5, at: 1)
        var long = lost
        try lost.at(10, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        try lost.at(41, .serverStarted)
        #expect(try lost.settle(at: 41) == [.roomExpired])
        #expect(lost.room.reason == .graceOver)

        try long.at(5_000, .serverStarted)
        #expect(long.events == [.roomInterrupted])
        #expect(try long.settle(at: 5_000) == [.roomExpired])
        #expect(long.room.reason == .maxDuration)

        var forbidden = try RoomAtWork()
        try forbidden.at(1, .forbid(untilMs: RoomAtWork.at(2), reason: ""))
        try forbidden.at(5_000, .serverStarted)
        #expect(try forbidden.settle(at: 5_000) == [.roomUnforbidden])
        #expect(forbidden.deadline == 5_300)

        var ended = try RoomAtWork()
        try ended.at(1, .close)
        try ended.at(5_000, .serverStarted)
        try ended.at(5_000, .tick)
        #expect(ended.effects == [.delete])
    }

    @Test func heartbeatsThatNobodyCouldSendAreNotMissed() throws {
        var work = try RoomAtWork()
        work.room.policy.neverStartedMs = 9_000_000
        try work.at(1, .heartbeat(sender: "olga"))
        try work.at(5_000, .serverStarted)
        #expect(work.deadline == 5_045)
    }

    @Test func aSilentPublisherCutOffByTheRestartHasGraceUnlessItsTimeWasOver() throws {
        var silent = try RoomAtWork()
        try silent.push(5, at: 1)
        try silent.at(10, .mediaIdle(slot: 1, sequence: 5))
        var over = silent
        try silent.at(105, .serverStarted)
        #expect(silent.description == "interrupted/mediaIdle [-] 135")
        try over.at(111, .serverStarted)
        #expect(over.description == "interrupted/mediaIdle [-] 110")
    }

    @Test func anEarlierRestartDoesNotProlongALaterInterruption() throws {
        var work = try RoomAtWork(slots: 2)
        try work.push(5, slot: 1, at: 1)
        try work.at(10, .serverStarted)
        try work.push(6, slot: 2, at: 20)
        try work.at(100, .pushEnded(slot: 2, sequence: 6, .connectionLost))
        try work.at(120, .serverStarted)
        #expect(work.description == "interrupted/publisherLost [-] [-] 130")
    }

    // MARK: - Clocks

    @Test func aClockThatStepsBackEndsNothing() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 100)
        try work.at(200, .heartbeat(sender: "olga"))
        for input: RoomInput in [
            .tick, .mediaIdle(slot: 1, sequence: 5), .tick, .heartbeat(sender: "cam"), .tick, .pauseAnnounced(slot: nil), .tick,
        ] {
            try work.at(-5_000, input)
            #expect(work.events.allSatisfy { $0 != .roomExpired })
        }
        #expect(work.room.state == .interrupted)
        try work.at(-9_000, .mediaArrived(slot: 1, sequence: 5))
        #expect(work.events == [.roomResumed])
        // The interruption is measured by the clock that began it.
        try work.at(-9_000, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(try work.settle(at: -8_971).isEmpty)
        #expect(try work.settle(at: -8_970) == [.roomExpired])
    }

    @Test(arguments: [Int64.min, .min + 1, 0, .max - 1, .max]) func extremeTimesDoNotTrap(_ now: Int64) throws {
        var rooms: [Room] = []
        for (_, past, _, _) in RoomRulesTableTests.tables.map({ ($0.name, $0.past, $0.before, $0.lines) }) {
            var work = try RoomAtWork()
            for (second, input) in past { try work.at(second, input) }
            rooms.append(work.room)
        }
        let numbers: [Int64] = [.min, -1, 0, 1, .max]
        let inputs =
            RoomRulesTableTests.inputs.map(\.input) + numbers.map { .renew(byMs: $0) } + numbers.map { .forbid(untilMs: $0, reason: "") }
            + numbers.map { .forbidSlot(1, untilMs: $0, reason: "") }
        for room in rooms {
            for first in inputs {
                for second in [RoomInput.tick, .renew(byMs: .max), .serverStarted, .pauseAnnounced(slot: nil), .resume, .reopen] {
                    var changed = room
                    _ = try? RoomRules.apply(first, to: &changed, now: now)
                    _ = try? RoomRules.apply(second, to: &changed, now: now)
                    _ = RoomRules.nextDeadline(of: changed)
                }
            }
        }
    }

    @Test func negativeRenewalsShortenNothing() throws {
        var work = try RoomAtWork()
        try work.at(1, .renew(byMs: -50_000))
        #expect(work.deadline == 300)
        try work.at(2, .renew(byMs: .max))
        #expect(RoomRules.nextDeadline(of: work.room) == .max)
    }
}
