import Media
import NIOCore
import Testing

@testable import Links

/// What a pull does with frames, answers and ends, in any order.
@Suite struct PullMachineTests {
    private static var frame: Frame { get throws { try Frame(kind: .audio, timestamp: 0, payload: ByteBuffer(bytes: [0xAF, 1, 0])) } }

    /// A machine whose publisher has the number 7, and whose first frame came with it.
    private static func publishing() throws -> PullMachine<Int> {
        var machine = PullMachine<Int>()
        guard case .open(let run) = try machine.received(Self.frame) else { throw Unexpected() }
        #expect(machine.opened(7, run: run, nowMs: 1_000)?.count == 1)
        return machine
    }

    private struct Unexpected: Error {}

    @Test func framesWaitForTheRoomAndThenGoOn() throws {
        var machine = PullMachine<Int>()
        guard case .open(let run) = try machine.received(Self.frame), case .wait = try machine.received(Self.frame) else {
            throw Unexpected()
        }
        #expect(machine.opened(7, run: run, nowMs: 0)?.count == 2)
        guard case .publish(7) = try machine.received(Self.frame) else { throw Unexpected() }
        #expect(machine.connectionEnded() == 7)
        #expect(machine.publisher == nil && machine.mayStart)
        guard case .open(let next) = try machine.received(Self.frame) else { throw Unexpected() }
        #expect(next != run)
    }

    @Test func aLateAnswerDoesNotApplyToTheNextConnection() throws {
        var machine = PullMachine<Int>()
        guard case .open(let run) = try machine.received(Self.frame) else { throw Unexpected() }
        #expect(machine.connectionEnded() == nil)
        #expect(machine.opened(7, run: run, nowMs: 0) == nil)
        #expect(!machine.isCurrent(run))
        guard case .open = try machine.received(Self.frame) else { throw Unexpected() }
        #expect(machine.opened(7, run: run, nowMs: 0) == nil, "the next one's room is still being asked")
    }

    @Test func aHoldIsOverAtItsTimeAndGrows() throws {
        var machine = try Self.publishing()
        var waits: [Int64] = []
        for _ in 0..<3 {
            #expect(machine.hold("forbidden", nowMs: 0, random: 0.5) == true)
            #expect(machine.heldFor == "forbidden" && !machine.mayStart && machine.publisher == nil)
            #expect(machine.connectionEnded() == nil)
            #expect(machine.heldFor == "forbidden", "the end of its connection does not end the hold")
            guard case .wait = try machine.received(Self.frame) else { throw Unexpected() }
            let wait = try #require(
                (0..<600_000).first { nowMs in
                    var later = machine
                    return later.goesOn(nowMs: Int64(nowMs))
                })
            waits.append(Int64(wait))
            #expect(machine.goesOn(nowMs: Int64(wait)) == true)
            #expect(machine.goesOn(nowMs: Int64(wait)) == false, "once")
        }
        #expect(waits == waits.sorted() && Set(waits).count == 3, "\(waits)")
    }

    /// A pull that published for long begins with the shortest wait.
    @Test func aLongStayForgetsFormerHolds() throws {
        func wait(afterStayMs stay: Int64) throws -> Int64 {
            var machine = PullMachine<Int>()
            for _ in 0..<4 {
                #expect(machine.hold("x", nowMs: 0, random: 0.5) == true)
                #expect(machine.goesOn(nowMs: .max) == true)
            }
            guard case .open(let run) = try machine.received(Self.frame) else { throw Unexpected() }
            #expect(machine.opened(7, run: run, nowMs: 0) != nil)
            #expect(machine.hold("x", nowMs: stay, random: 0.5) == true)
            return try #require(
                (stay..<stay + 600_000).first { nowMs in
                    var later = machine
                    return later.goesOn(nowMs: nowMs)
                }) - stay
        }
        #expect(try wait(afterStayMs: 3_600_000) < wait(afterStayMs: 1))
    }

    @Test func aDeletedPullDoesNothingMore() throws {
        var machine = try Self.publishing()
        #expect(machine.delete() == 7)
        #expect(machine.isDeleted && !machine.mayStart && machine.publisher == nil)
        #expect(machine.hold("x", nowMs: 0, random: 0) == false)
        #expect(machine.goesOn(nowMs: .max) == false)
        #expect(machine.connectionEnded() == nil && machine.isDeleted)
        guard case .wait = try machine.received(Self.frame) else { throw Unexpected() }
    }
}
