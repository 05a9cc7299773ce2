import Rooms
import Testing

/// Rooms in the field, from the first call to the last event.
@Suite struct RoomRulesScenarioTests {
    /// A URL's expiry is no input: a running push meets only the room's own deadlines.
    @Test func aPushOutlivesItsURL() throws {
        var work = try RoomAtWork()
        work.room.policy.urlLifetimeMs = 60_000
        work.room.policy.maxDurationMs = 30 * 86_400_000
        try work.push(5, at: 1)
        #expect(work.deadline == 2_592_001)
        #expect(try work.settle(at: 86_400).isEmpty)
        #expect(work.description == "live/media [5*] 2592001")
    }

    @Test func aDroppedDeviceMayReturnAndAForbiddenOneMayNot() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .pushEnded(slot: 1, sequence: 5, .dropped))
        #expect(work.description == "interrupted/dropped [-] room.interrupted 40")
        try work.push(6, at: 12)
        #expect(work.description == "live/media [6*] room.resumed 3601")

        try work.at(20, .forbid(untilMs: RoomAtWork.at(100), reason: "bad"))
        try work.at(20, .pushEnded(slot: 1, sequence: 6, .forbidden))
        #expect(work.description == "forbidden/forbidden [-] 100")
        #expect(
            work.refusal(at: 99, .pushAdmitted(slot: 1, sequence: 7)) == .wrongState(.forbidden, allowed: [.created, .live, .interrupted]))
        #expect(try work.settle(at: 99).isEmpty)
        #expect(try work.settle(at: 100) == [.roomUnforbidden])
        // A new push is needed, and gets the full time. Nothing from before the ban counts.
        #expect(work.description == "created/resumeTime [-] 400")
        try work.push(8, at: 399)
        #expect(work.description == "live/media [8*] room.live 3999")
    }

    @Test func aLongBanEndsNeitherByOldHeartbeatsNorByTheOwnersAbsence() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(2, .heartbeat(sender: "cam"))
        try work.at(3, .memberLeft(user: "olga"))
        let week: Int64 = 7 * 86_400
        try work.at(4, .forbid(untilMs: RoomAtWork.at(week), reason: ""))
        #expect(try work.settle(at: week) == [.roomUnforbidden])
        #expect(work.deadline == week + 200)
        #expect(try work.settle(at: week + 200) == [.roomExpired])
        #expect(work.room.reason == .ownerOffline)
    }

    @Test func aKilledPublisherComesBackWithinGrace() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(100, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(work.events == [.roomInterrupted] && work.cuts.isEmpty)
        #expect(try work.settle(at: 129).isEmpty)
        try work.at(129, .pushAdmitted(slot: 1, sequence: 6))
        #expect(work.effects.isEmpty && work.room.state == .interrupted)
        try work.at(129, .mediaArrived(slot: 1, sequence: 6))
        #expect(work.effects == [.event(.roomResumed, from: .interrupted)])
        #expect(work.room.instance == 1 && work.room.slots[0].sequence == 6)
    }

    @Test func aKilledPublisherThatStaysAwayEndsTheRoom() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(100, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        try work.at(130, .tick)
        #expect(work.description == "expired/graceOver [-] room.expired cut:-:roomEnded+viewers 1130")
        #expect(work.room.endedAt == RoomAtWork.at(130))
        try work.at(131, .reopen)
        try work.push(6, at: 131)
        #expect(work.room.instance == 2 && work.events == [.roomLive])
        try work.at(132, .close)
        try work.at(1_131, .tick)
        #expect(work.effects.isEmpty)
        try work.at(1_132, .tick)
        #expect(work.effects == [.delete])
    }

    @Test func aRoomThatNeverStartsExpiresAndCutsThePushWithoutMedia() throws {
        var work = try RoomAtWork()
        try work.at(290, .pushAdmitted(slot: 1, sequence: 5))
        #expect(try work.settle(at: 299).isEmpty)
        try work.at(300, .tick)
        #expect(work.description == "expired/neverStarted [-] room.expired cut:5:roomEnded+viewers 1300")
    }

    @Test func heartbeatsThatStopDoNotEndAnActiveStream() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        for second in [Int64(2), 17, 32] { try work.at(second, .heartbeat(sender: "cam")) }
        #expect(try work.settle(at: 3_000).isEmpty)
        #expect(work.room.state == .live)
        // Once the stream is away, missed heartbeats count, but the device has its grace period first.
        try work.at(3_100, .mediaIdle(slot: 1, sequence: 5))
        #expect(work.deadline == 3_130)
        #expect(try work.settle(at: 3_129).isEmpty)
        #expect(try work.settle(at: 3_130) == [.roomExpired])
        #expect(work.room.reason == .heartbeatLost)
    }

    @Test func heartbeatsThatGoOnKeepASilentRoom() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .mediaIdle(slot: 1, sequence: 5))
        for second in stride(from: Int64(11), to: 101, by: 15) { try work.at(second, .heartbeat(sender: "cam")) }
        #expect(work.deadline == 110)
        #expect(try work.settle(at: 110) == [.roomExpired])
        #expect(work.room.reason == .graceOver)
    }

    @Test func heartbeatsThatStopEndARoomThatWaits() throws {
        var work = try RoomAtWork()
        #expect(work.deadline == 300)
        try work.at(100, .heartbeat(sender: nil))
        #expect(work.deadline == 145)
        #expect(try work.settle(at: 145) == [.roomExpired])
        #expect(work.room.reason == .heartbeatLost)
    }

    @Test func whatWasDueFirstGivesTheReason() throws {
        var early = try RoomAtWork()
        try early.at(200, .heartbeat(sender: nil))
        var late = try RoomAtWork()
        try late.at(260, .heartbeat(sender: nil))
        try early.at(9_000, .tick)
        try late.at(9_000, .tick)
        #expect(early.room.reason == .heartbeatLost && late.room.reason == .neverStarted)
    }

    @Test func pauseSilenceAndDeadSocketDiffer() throws {
        var live = try RoomAtWork()
        try live.push(5, at: 1)
        var paused = live
        try paused.at(10, .pauseAnnounced(slot: 1))
        var silent = live
        try silent.at(10, .mediaIdle(slot: 1, sequence: 5))
        var dead = live
        try dead.at(10, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        var done = live
        try done.at(10, .pushEnded(slot: 1, sequence: 5, .clientStopped))
        #expect([paused, silent, dead, done].map(\.room.reason) == [.paused, .mediaIdle, .publisherLost, .stopped])
        #expect([paused, silent, dead, done].map(\.deadline) == [130, 110, 40, 13])
        #expect([paused, silent, dead, done].map(\.events) == Array(repeating: [.roomInterrupted], count: 4))

        // Their sockets die: silence becomes loss, a pause stays a pause. Neither is another transition.
        try silent.at(50, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(silent.description == "interrupted/publisherLost [-] 80")
        try paused.at(50, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(paused.description == "interrupted/paused [-] 130")
        var latePaused = live
        try latePaused.at(10, .pauseAnnounced(slot: 1))
        try latePaused.at(120, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(latePaused.description == "interrupted/paused [-] 150")
        // A pause that ends in time: the same push continues.
        var resumed = live
        try resumed.at(10, .pauseAnnounced(slot: 1))
        try resumed.at(100, .mediaArrived(slot: 1, sequence: 5))
        #expect(resumed.description == "live/media [5*] room.resumed 3601")
    }

    @Test func aPauseThatLastsTooLongCutsThePublisher() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .pauseAnnounced(slot: nil))
        try work.at(130, .tick)
        #expect(work.description == "expired/graceOver [-] room.expired cut:5:mediaIdle+viewers 1130")
    }

    /// A room that ends by silence cuts its push for that silence. A call that closes the room cuts it for the close.
    @Test func aSilenceThatLastsTooLongCutsThePublisherForIt() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .mediaIdle(slot: 1, sequence: 5))
        var closed = work
        try work.at(110, .tick)
        #expect(work.description == "expired/graceOver [-] room.expired cut:5:mediaIdle+viewers 1110")
        try closed.at(50, .close)
        #expect(closed.description == "closed/closed [-] room.closed cut:5:roomEnded+viewers 1050")
    }

    @Test func maximumDurationEndsLiveAndInterruptedRooms() throws {
        var live = try RoomAtWork()
        try live.push(5, at: 1)
        var interrupted = live
        try live.at(3_601, .tick)
        #expect(live.description == "expired/maxDuration [-] room.expired cut:5:roomEnded+viewers 4601")
        try interrupted.at(3_590, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        try interrupted.at(3_601, .tick)
        #expect(interrupted.description == "expired/maxDuration [-] room.expired cut:-:roomEnded+viewers 4601")
    }

    @Test func renewalsMoveTheEnd() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(3_000, .renew(byMs: nil))
        #expect(work.deadline == 6_600)
        try work.at(3_100, .mediaIdle(slot: 1, sequence: 5))
        try work.at(3_110, .renew(byMs: 500_000))
        #expect(work.deadline == 3_700)
        // The renewal holds when the socket dies too, but not for the next interruption.
        try work.at(3_120, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(work.description == "interrupted/publisherLost [-] 3700")
        try work.push(6, at: 3_130)
        try work.at(3_140, .pushEnded(slot: 1, sequence: 6, .connectionLost))
        #expect(work.deadline == 3_170)
    }

    // MARK: - The owner

    @Test func theOwnersAbsenceIsToldOnceAndEndsTheRoomLater() throws {
        var work = try RoomAtWork()
        work.room.policy.neverStartedMs = 9_000_000
        try work.at(1, .memberJoined(user: "olga"))
        #expect(work.effects.isEmpty)
        try work.at(10, .memberLeft(user: "olga"))
        #expect(work.events == [.ownerOffline])
        try work.at(11, .memberLeft(user: "olga"))
        #expect(work.effects.isEmpty)
        try work.at(100, .memberJoined(user: "olga"))
        #expect(work.events == [.ownerOnline])
        try work.at(101, .memberJoined(user: "olga"))
        #expect(work.effects.isEmpty)
        try work.at(200, .memberLeft(user: "olga"))
        #expect(try work.settle(at: 399).isEmpty)
        #expect(try work.settle(at: 400) == [.roomExpired])
        #expect(work.room.reason == .ownerOffline)
    }

    @Test func theOwnersHeartbeatsStopping() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .heartbeat(sender: "olga"))
        try work.at(20, .heartbeat(sender: "cam"))
        #expect(try work.settle(at: 54).isEmpty)
        #expect(try work.settle(at: 55) == [.ownerOffline])
        #expect(work.room.ownerAwaySince == RoomAtWork.at(55))
        try work.at(60, .heartbeat(sender: "olga"))
        #expect(work.events == [.ownerOnline])
        // Joining alone is presence without heartbeats, so none can be missed.
        #expect(try work.settle(at: 105) == [.ownerOffline])
        try work.at(110, .memberJoined(user: "olga"))
        #expect(work.events == [.ownerOnline])
        #expect(try work.settle(at: 3_000).isEmpty)
    }

    @Test func joiningIsASignOfLifeLikeAHeartbeat() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .heartbeat(sender: "olga"))
        try work.at(40, .memberJoined(user: "olga"))
        #expect(work.effects.isEmpty && work.deadline == 85)
    }

    @Test func anAbsentOwnerDoesNotEndAnActiveStream() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .memberLeft(user: "olga"))
        #expect(try work.settle(at: 3_000).isEmpty)
        try work.at(3_000, .pauseAnnounced(slot: 1))
        // The owner is long gone, but the device still has its grace period.
        #expect(work.deadline == 3_030)
        #expect(try work.settle(at: 3_030) == [.roomExpired])
        #expect(work.room.reason == .ownerOffline)
    }

    @Test func roomsWithoutOwnerKnowNoAbsence() throws {
        var work = try RoomAtWork()
        work.room.owner = nil
        try work.at(1, .heartbeat(sender: nil))
        try work.at(2, .memberLeft(user: ""))
        #expect(work.effects.isEmpty && work.room.ownerSeenAt == nil && work.room.ownerAwaySince == nil)
    }
}
