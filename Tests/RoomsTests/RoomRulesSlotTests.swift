import Rooms
import Testing

/// Rooms with two cameras, and stream names with several pushes.
@Suite struct RoomRulesSlotTests {
    private func twoLive() throws -> RoomAtWork {
        var work = try RoomAtWork(slots: 2)
        try work.push(5, slot: 1, at: 1)
        try work.push(6, slot: 2, at: 2)
        #expect(work.description == "live/media [5*] [6*] 3601")
        return work
    }

    @Test func theRoomIsLiveWhileAnyStreamRuns() throws {
        var work = try self.twoLive()
        try work.at(10, .mediaIdle(slot: 1, sequence: 5))
        #expect(work.description == "live/media [5] [6*] 3601")
        try work.at(11, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(work.description == "live/media [-] [6*] 3601")
        try work.at(12, .pushEnded(slot: 2, sequence: 6, .clientStopped))
        // Camera 1's grace, begun at 11, is longer than the clean stop's 3 s.
        #expect(work.description == "interrupted/stopped [-] [-] room.interrupted 41")
        try work.push(7, slot: 1, at: 20)
        #expect(work.description == "live/media [7*] [-] room.resumed 3601")
    }

    @Test func viewersWaitForTheirSlotWhileTheRoomIsLiveAndThenForTheRoom() throws {
        var work = try self.twoLive()
        func waits() -> [Room.Wait?] { work.room.slots.map(work.room.wait(for:)) }
        #expect(waits() == [nil, nil])
        try work.at(11, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(waits().map { $0?.untilMs } == [RoomAtWork.at(41), nil] && waits().map { $0?.endsRoom } == [false, nil])
        // No allowance of others is in it: the room ends at its own time.
        try work.at(12, .pushEnded(slot: 2, sequence: 6, .clientStopped))
        #expect(waits().allSatisfy { $0?.untilMs == RoomAtWork.at(41) && $0?.endsRoom == true })
        try work.push(7, slot: 1, at: 20)
        #expect(waits()[0] == nil)
    }

    @Test func aWaitThatWasOverLongAgoDoesNotShortenTheInterruption() throws {
        var work = try self.twoLive()
        try work.at(10, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        try work.at(1_000, .pushEnded(slot: 2, sequence: 6, .connectionLost))
        #expect(work.description == "interrupted/publisherLost [-] [-] room.interrupted 1030")
    }

    @Test func onePausedCameraKeepsTheRoomWaitingForIt() throws {
        var work = try self.twoLive()
        try work.at(10, .pauseAnnounced(slot: 1))
        #expect(work.description == "live/media [5] [6*] 3601")
        try work.at(20, .pushEnded(slot: 2, sequence: 6, .connectionLost))
        #expect(work.description == "interrupted/publisherLost [5] [-] room.interrupted 130")
    }

    @Test func aPauseByTheAPIIsOneTransition() throws {
        var work = try self.twoLive()
        try work.at(10, .pauseAnnounced(slot: nil))
        #expect(work.description == "interrupted/paused [5] [6] room.interrupted 130")
        try work.at(11, .mediaArrived(slot: 2, sequence: 6))
        #expect(work.description == "live/media [5] [6*] room.resumed 3601")
    }

    @Test func aPauseIsNotAboutAStreamThatWentBefore() throws {
        var work = try self.twoLive()
        try work.at(10, .pushEnded(slot: 2, sequence: 6, .clientStopped))
        try work.at(20, .pauseAnnounced(slot: nil))
        #expect(work.room.slots[1].awayReason == .stopped)
        #expect(work.room.slots[0].awayReason == .paused)
    }

    @Test func aForbiddenCameraLeavesTheRoomToTheOther() throws {
        var work = try self.twoLive()
        try work.at(10, .forbidSlot(1, untilMs: RoomAtWork.at(400), reason: "face"))
        #expect(work.description == "live/media [-] [6*] stream.forbidden:1 cut:5:forbidden+viewers 400")
        #expect(
            work.refusal(at: 11, .pushAdmitted(slot: 1, sequence: 8))
                == .slotForbidden(1, untilMs: RoomAtWork.at(400), reason: "face"))
        try work.at(11, .forbidSlot(1, untilMs: RoomAtWork.at(500), reason: "face"))
        #expect(work.description == "live/media [-] [6*] stream.forbidden:1 500")
        try work.at(11, .forbidSlot(1, untilMs: RoomAtWork.at(400), reason: "face"))
        #expect(work.refusal(at: 11, .resumeSlot(2)) == .slotNotForbidden(2))
        // A push that slipped past its cut.
        try work.at(12, .mediaArrived(slot: 1, sequence: 8))
        #expect(work.description == "live/media [-] [6*] cut:8:forbidden 400")
        try work.at(13, .resumeSlot(1))
        #expect(work.description == "live/media [-] [6*] stream.resumed:1 3601")
        try work.push(9, slot: 1, at: 14)
        #expect(work.description == "live/media [9*] [6*] 3601")
    }

    @Test func theRoomIsForbiddenWithItsLastCameraAndFreeWithItsFirst() throws {
        var work = try self.twoLive()
        try work.at(10, .forbidSlot(1, untilMs: RoomAtWork.at(400), reason: "face"))
        try work.at(20, .forbidSlot(2, untilMs: RoomAtWork.at(300), reason: "plate"))
        #expect(work.description == "forbidden/forbidden [-] [-] stream.forbidden:2 room.forbidden cut:6:forbidden+viewers 300")
        #expect(work.room.forbiddenUntil == RoomAtWork.at(300) && work.room.forbidReason == "plate")
        try work.at(300, .tick)
        #expect(work.description == "created/resumeTime [-] [-] stream.resumed:2 room.unforbidden 400")
        #expect(work.refusal(at: 301, .pushAdmitted(slot: 1, sequence: 8)) != nil)
        try work.at(301, .pushAdmitted(slot: 2, sequence: 9))
        try work.at(400, .tick)
        #expect(work.description == "created/resumeTime [-] [9] stream.resumed:1 600")
    }

    @Test func oneTickLiftsAllBansThatAreOver() throws {
        var work = try self.twoLive()
        try work.at(10, .forbidSlot(1, untilMs: RoomAtWork.at(100), reason: ""))
        try work.at(20, .forbid(untilMs: RoomAtWork.at(90), reason: "all"))
        // The longer ban of camera 1 is kept.
        #expect(work.room.slots.map(\.forbiddenUntil) == [RoomAtWork.at(100), RoomAtWork.at(90)])
        #expect(
            work.description
                == "forbidden/forbidden [-] [-] stream.forbidden:2 room.forbidden cut:-:forbidden+viewers cut:6:forbidden+viewers 90")
        try work.at(150, .tick)
        #expect(work.description == "created/resumeTime [-] [-] stream.resumed:1 stream.resumed:2 room.unforbidden 450")
    }

    /// A forbidden room's ban gets another end and reason, later or earlier, and each of its streams has an event. A longer ban of one stream is kept.
    @Test func aRoomsBanChanges() throws {
        var work = try self.twoLive()
        try work.at(10, .forbidSlot(1, untilMs: RoomAtWork.at(300), reason: "face"))
        try work.at(20, .forbid(untilMs: RoomAtWork.at(90), reason: "all"))
        try work.at(30, .forbid(untilMs: RoomAtWork.at(200), reason: "still"))
        #expect(work.description == "forbidden/forbidden [-] [-] stream.forbidden:2 200")
        #expect(work.room.slots.map(\.forbidReason) == ["face", "still"] && work.room.forbidReason == "still")
        try work.at(31, .forbid(untilMs: RoomAtWork.at(200), reason: "still"))
        #expect(work.description == "forbidden/forbidden [-] [-] 200")
        try work.at(32, .forbid(untilMs: RoomAtWork.at(400), reason: "more"))
        #expect(work.description == "forbidden/forbidden [-] [-] stream.forbidden:1 stream.forbidden:2 400")
        try work.at(33, .forbid(untilMs: RoomAtWork.at(80), reason: "less"))
        #expect(work.description == "forbidden/forbidden [-] [-] stream.forbidden:1 stream.forbidden:2 80")
        try work.at(80, .tick)
        #expect(work.description == "created/resumeTime [-] [-] stream.resumed:1 stream.resumed:2 room.unforbidden 380")
    }

    @Test func ofTwoBansThatEndTogetherTheFirstGivesTheReason() throws {
        var work = try self.twoLive()
        try work.at(10, .forbidSlot(1, untilMs: RoomAtWork.at(100), reason: "face"))
        try work.at(20, .forbid(untilMs: RoomAtWork.at(100), reason: "all"))
        #expect(work.room.slots.map(\.forbidReason) == ["face", "all"])
    }

    @Test func resumingOneCameraOfAForbiddenRoomFreesThatOne() throws {
        var work = try self.twoLive()
        try work.at(10, .forbid(untilMs: RoomAtWork.at(400), reason: ""))
        try work.at(20, .resumeSlot(2))
        #expect(work.description == "created/resumed [-] [-] stream.resumed:2 room.unforbidden 320")
        #expect(work.room.slots.map(\.isForbidden) == [true, false])
    }

    @Test func forbiddingTheCameraThatRunsInterrupts() throws {
        var work = try RoomAtWork(slots: 2)
        try work.push(5, slot: 1, at: 1)
        try work.at(10, .forbidSlot(1, untilMs: RoomAtWork.at(400), reason: ""))
        #expect(work.description == "interrupted/dropped [-] [-] stream.forbidden:1 room.interrupted cut:5:forbidden+viewers 40")
        // The server's restart does not lengthen it.
        try work.at(20, .serverStarted)
        #expect(work.deadline == 40)
        try work.at(40, .tick)
        #expect(work.room.reason == .graceOver)
    }

    @Test func theOtherCameraHasItsGraceWhenOneIsForbidden() throws {
        var work = try self.twoLive()
        try work.at(5, .pushEnded(slot: 2, sequence: 6, .clientStopped))
        try work.at(100, .forbidSlot(1, untilMs: RoomAtWork.at(4_000), reason: ""))
        #expect(work.description == "interrupted/dropped [-] [-] stream.forbidden:1 room.interrupted cut:5:forbidden+viewers 130")
    }

    @Test func bansOutliveTheRoomsEnd() throws {
        var work = try self.twoLive()
        try work.at(10, .forbidSlot(1, untilMs: RoomAtWork.at(5_000), reason: ""))
        try work.at(20, .expire)
        #expect(work.deadline == 1_020)
        var forgotten = work
        try forgotten.at(1_020, .tick)
        // Still forbidden when the room is deleted: its name stays forbidden.
        #expect(forgotten.effects == [.delete] && forgotten.room.slots.map(\.isForbidden) == [true, false])
        var reopened = work
        try reopened.at(30, .reopen)
        #expect(reopened.room.slots.map(\.isForbidden) == [true, false])
        try work.at(40, .forbidSlot(2, untilMs: RoomAtWork.at(6_000), reason: "also"))
        #expect(work.refusal(at: 50, .reopen) == .slotForbidden(1, untilMs: RoomAtWork.at(5_000), reason: ""))
        try work.at(60, .resumeSlot(2))
        try work.at(61, .resumeSlot(1))
        #expect(work.description == "expired/expired [-] [-] stream.resumed:1 1020")
    }

    // MARK: - One name, several pushes

    @Test func aTakeoverInterruptsNothing() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .pushAdmitted(slot: 1, sequence: 9))
        #expect(work.description == "live/media [5 9*] 3601")
        try work.at(10, .pushEnded(slot: 1, sequence: 5, .takenOver))
        #expect(work.description == "live/media [9*] 3601")
        try work.at(11, .mediaArrived(slot: 1, sequence: 9))
        #expect(work.description == "live/media [9*] 3601")
        // Reports of the replaced push are stale for good.
        try work.at(12, .mediaIdle(slot: 1, sequence: 5))
        try work.at(12, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        #expect(work.description == "live/media [9*] 3601")
        try work.at(13, .pushEnded(slot: 1, sequence: 9, .connectionLost))
        #expect(work.description == "interrupted/publisherLost [-] room.interrupted 43")
    }

    @Test func aPushWithMediaHasReplacedTheOldOneEvenBeforeItsEndIsTold() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.push(9, at: 10)
        #expect(work.description == "live/media [9*] 3601")
        try work.at(11, .pushEnded(slot: 1, sequence: 9, .connectionLost))
        #expect(work.description == "interrupted/publisherLost [-] room.interrupted 41")
        try work.at(12, .pushEnded(slot: 1, sequence: 5, .takenOver))
        try work.at(12, .mediaArrived(slot: 1, sequence: 5))
        #expect(work.description == "interrupted/publisherLost [-] 41")
    }

    @Test func aSuccessorThatDiesBeforeItsMediaInterrupts() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .pushAdmitted(slot: 1, sequence: 9))
        try work.at(10, .pushEnded(slot: 1, sequence: 5, .takenOver))
        try work.at(20, .pushEnded(slot: 1, sequence: 9, .connectionLost))
        #expect(work.description == "interrupted/publisherLost [-] room.interrupted 50")
    }

    @Test func aPushThatTheRelayTurnsAwayLeavesTheHolderInPlace() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .pushAdmitted(slot: 1, sequence: 9))
        try work.at(10, .pushEnded(slot: 1, sequence: 9, .refused))
        #expect(work.description == "live/media [5*] 3601")
        try work.at(20, .mediaIdle(slot: 1, sequence: 5))
        #expect(work.description == "interrupted/mediaIdle [5] room.interrupted 120")
    }

    @Test func theHoldersFirstMediaCountsWhileAnotherKnocks() throws {
        var work = try RoomAtWork()
        try work.at(1, .pushAdmitted(slot: 1, sequence: 5))
        try work.at(2, .pushAdmitted(slot: 1, sequence: 9))
        try work.at(2, .mediaArrived(slot: 1, sequence: 5))
        #expect(work.description == "live/media [5 9*] room.live 3602")
        try work.at(3, .pushEnded(slot: 1, sequence: 9, .refused))
        #expect(work.description == "live/media [5*] 3602")
    }

    @Test func anyNumberOfKnocksNeitherGrowsTheRoomNorUnseatsTheHolder() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        for sequence in Int64(10)..<200 { try work.at(2, .pushAdmitted(slot: 1, sequence: sequence)) }
        #expect(work.room.slots[0].earlier == [5, 196, 197, 198] && work.room.slots[0].sequence == 199)
        for sequence in Int64(10)..<200 { try work.at(3, .pushEnded(slot: 1, sequence: sequence, .refused)) }
        #expect(work.description == "live/media [5*] 3601")
    }

    @Test func allOfAFoughtOverNameIsCut() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .pushAdmitted(slot: 1, sequence: 9))
        try work.at(10, .close)
        #expect(work.description == "closed/closed [-] room.closed cut:5:roomEnded cut:9:roomEnded+viewers 1010")
    }

    @Test func knockingDoesNotProlongAnInterruption() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .pushEnded(slot: 1, sequence: 5, .connectionLost))
        for second in Int64(11)..<39 {
            try work.at(second, .pushAdmitted(slot: 1, sequence: second))
            try work.at(second, .pushEnded(slot: 1, sequence: second, .connectionLost))
        }
        #expect(work.description == "interrupted/publisherLost [-] 40")
    }

    @Test func aSilentPushThatIsReplacedAndItsSuccessorLostEndsWithGrace() throws {
        var work = try RoomAtWork()
        try work.push(5, at: 1)
        try work.at(10, .mediaIdle(slot: 1, sequence: 5))
        try work.at(20, .pushAdmitted(slot: 1, sequence: 9))
        try work.at(20, .pushEnded(slot: 1, sequence: 5, .takenOver))
        #expect(work.description == "interrupted/mediaIdle [9] 110")
        try work.at(30, .pushEnded(slot: 1, sequence: 9, .connectionLost))
        #expect(work.description == "interrupted/publisherLost [-] 60")
    }
}
