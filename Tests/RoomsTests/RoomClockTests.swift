import Foundation
import RoomTestSupport
import Testing

@testable import Rooms

@Suite struct RoomClockTests {
    private static let start = TestClocks.start
    private static let week: Int64 = 7 * 86_400_000

    @Test func ordinaryTimeIsTheWallClocks() {
        let clocks = TestClocks()
        let clock = clocks.clock()
        #expect(clock.now() == Self.start)
        clocks.pass(123_456)
        #expect(clock.now() == Self.start + 123_456)
        #expect(clock.finding() == nil)
    }

    /// Steps of up to a minute are slewed by a tenth. Room time never stands still.
    @Test(arguments: [45_000, 60_000, -45_000, -60_000, 7, -7] as [Int64])
    func smallStepsAreSlewed(_ step: Int64) {
        let clocks = TestClocks()
        let clock = clocks.clock()
        clocks.leap(step)
        var last = clock.now()
        #expect(last == Self.start, "nothing at once")
        for second in 1...601 {
            clocks.pass(1_000)
            let now = clock.now()
            #expect((900...1_100).contains(now - last), "\(now - last) ms in second \(second)")
            last = now
        }
        #expect(last == clocks.wallMs)
        #expect(clock.finding() == nil)
    }

    /// A reading after a long silence does not jump.
    @Test func aLateLookCorrectsLittle() {
        let clocks = TestClocks()
        let clock = clocks.clock()
        clocks.leap(50_000)
        clocks.pass(3_600_000)
        #expect(clock.now() == Self.start + 3_600_000 + 1_000)
        // Leaves no correction over for the next reading.
        clocks.pass(9)
        #expect(clock.now() == Self.start + 3_600_009 + 1_000)
        clocks.pass(1)
        #expect(clock.now() == Self.start + 3_600_010 + 1_001)
    }

    /// Fractions of a millisecond of correction add up. Time without a difference builds up no credit.
    @Test func correctionsArePaidForByTheMillisecond() {
        let clocks = TestClocks()
        let clock = clocks.clock()
        clocks.leap(100)
        var now = Self.start
        for (passed, corrected) in [(9, 0), (1, 1), (15, 1), (5, 1), (9, 0), (1, 1)] as [(Int64, Int64)] {
            clocks.pass(passed)
            now += passed + corrected
            #expect(clock.now() == now)
        }
        clocks.pass(960)
        #expect(clock.now() == clocks.wallMs)
        clocks.pass(100_000)
        now = clock.now()
        #expect(now == clocks.wallMs)
        clocks.leap(-500)
        #expect(clock.now() == now, "nothing at once")
        clocks.pass(100)
        #expect(clock.now() == now + 90)
    }

    /// The clock is set again while a leap is held. Up to a minute counts as the same leap, more as another one.
    @Test(arguments: [(60_000, true), (-60_000, true), (60_001, false), (-60_001, false)] as [(Int64, Bool)])
    func aLeapMayBeCorrected(by ms: Int64, isSame: Bool) {
        let clocks = TestClocks()
        let clock = clocks.clock()
        clocks.leap(Self.week)
        #expect(clock.finding() == .leapt(byMs: Self.week, adoptsAt: Self.start + 600_000))
        clocks.pass(300_000)
        clocks.leap(ms)
        #expect(clock.finding() == (isSame ? nil : .leapt(byMs: Self.week + ms, adoptsAt: Self.start + 900_000)))
        clocks.pass(300_000)
        #expect(clock.adopt() == (isSame ? Self.week + ms : nil))
        clocks.pass(300_000)
        #expect(clock.adopt() == (isSame ? nil : Self.week + ms))
    }

    @Test(arguments: [Self.week, -Self.week, 60_001, -60_001]) func aLeapIsFollowedWhenItHasHeld(_ leap: Int64) {
        let clocks = TestClocks()
        let clock = clocks.clock()
        clocks.leap(leap)
        #expect(clock.now() == Self.start)
        clocks.pass(1_000)
        // Counted from the first reading that saw it.
        #expect(clock.finding() == .leapt(byMs: leap, adoptsAt: Self.start + 600_000))
        #expect(clock.finding() == nil, "told once")
        clocks.pass(598_999)
        #expect(clock.finding() == nil && clock.adopt() == nil)
        #expect(clock.now() == Self.start + 599_999)
        clocks.pass(1)
        #expect(clock.finding() == .held)
        #expect(clock.now() == Self.start + 600_000, "followed only by adopting")
        #expect(clock.adopt() == leap)
        #expect(clock.now() == clocks.wallMs)
        #expect(clock.finding() == nil && clock.adopt() == nil)
        // And back.
        clocks.leap(-leap)
        #expect(clock.finding() == .leapt(byMs: -leap, adoptsAt: Self.start + leap + 1_200_000))
        clocks.pass(600_000)
        #expect(clock.adopt() == -leap)
        #expect(clock.now() == Self.start + 1_200_000)
    }

    @Test func tenSecondsOfAWeekDoNothing() {
        let clocks = TestClocks()
        let clock = clocks.clock()
        clocks.leap(Self.week)
        #expect(clock.finding() == .leapt(byMs: Self.week, adoptsAt: Self.start + 600_000))
        clocks.pass(10_000)
        clocks.leap(-Self.week)
        #expect(clock.finding() == nil)
        clocks.pass(3_600_000)
        #expect(clock.finding() == nil && clock.adopt() == nil)
        #expect(clock.now() == Self.start + 3_610_000)
    }

    /// A clock that goes on leaping is never believed.
    @Test func anotherLeapHoldsAnew() {
        let clocks = TestClocks()
        let clock = clocks.clock()
        for leap in 1...20 {
            clocks.leap(Self.week)
            let adoptsAt = Self.start + Int64(leap - 1) * 500_000 + 600_000
            #expect(clock.finding() == .leapt(byMs: Self.week * Int64(leap), adoptsAt: adoptsAt))
            clocks.pass(500_000)
            #expect(clock.finding() == nil && clock.adopt() == nil)
        }
        clocks.pass(100_000)
        #expect(clock.adopt() == 20 * Self.week)
    }

    // MARK: - Start

    @Test func theSameRunOfTheMachineGoesOnByItsClock() {
        let before = TestClocks()
        let mark = before.clock().mark()
        // Stopped for an hour, during which the clock is set.
        let clocks = TestClocks(wall: Self.start + 3_600_000 + Self.week, steady: before.steadyMs + 3_600_000)
        let clock = clocks.clock()
        clock.resume(from: mark, newestMs: mark.roomMs)
        #expect(clock.now() == Self.start + 3_600_000)
        #expect(clock.finding() == .leapt(byMs: Self.week, adoptsAt: Self.start + 4_200_000))
        clocks.pass(600_000)
        #expect(clock.adopt() == Self.week)
    }

    /// A start in the mark's own millisecond continues it. A mark from the steady clock's future does not count.
    @Test(arguments: [(0, 0), (-1, Self.week)] as [(Int64, Int64)])
    func aMarkThatIsNoOlderIsOfThisRun(steadyLater: Int64, roomLater: Int64) {
        let before = TestClocks()
        let mark = before.clock().mark()
        let clock = TestClocks(wall: Self.start + Self.week, steady: before.steadyMs + steadyLater).clock()
        clock.resume(from: mark, newestMs: nil)
        #expect(clock.now() == Self.start + roomLater)
    }

    @Test func anotherRunOfTheMachineGoesByTheWallClock() {
        let mark = TestClocks().clock().mark()
        for boot in ["boot-2", nil] {
            let clock = TestClocks(wall: Self.start + Self.week, steady: 60_000_000, boot: boot).clock()
            clock.resume(from: mark, newestMs: mark.roomMs)
            #expect(clock.now() == Self.start + Self.week)
            #expect(clock.finding() == nil)
        }
    }

    /// A machine that lost its time never starts before what is stored. The real time is followed once it holds.
    @Test func neverBeforeWhatIsStored() {
        let clocks = TestClocks(wall: 1_000, boot: "boot-2")
        let clock = clocks.clock()
        clock.resume(from: nil, newestMs: Self.start)
        #expect(clock.now() == Self.start)
        #expect(clock.finding() == .leapt(byMs: 1_000 - Self.start, adoptsAt: Self.start + 600_000))
        // The time arrives from the network.
        clocks.leap(Self.start + 5_000)
        clocks.pass(1_000)
        #expect(clock.finding() == nil)
        #expect((Self.start + 1_000...Self.start + 1_200).contains(clock.now()))
    }

    /// A node of a cluster goes by the database's clock; its own may be a day off.
    @Test func anotherMachinesClockIsFollowed() {
        let clocks = TestClocks(wall: Self.start + 86_400_000)
        let clock = clocks.clock()
        #expect(clock.aheadOfWallMs == nil)
        clock.follow(offsetMs: Self.start - clocks.steadyMs)
        clock.resume(from: nil, newestMs: nil)
        #expect(clock.now() == Self.start && clock.aheadOfWallMs == -86_400_000)
        clocks.leap(-86_400_000)
        clocks.pass(1_000)
        #expect(clock.now() == Self.start + 1_000 && clock.aheadOfWallMs == 0 && clock.finding() == nil)
    }

    @Test func theSystemsClocksAreMilliseconds() throws {
        #if os(Linux)
        // Seconds with two decimals, suspended time included.
        func uptimeMs() throws -> Double {
            let text = try String(contentsOfFile: "/proc/uptime", encoding: .utf8)
            return try #require(text.split(separator: " ").first.flatMap { Double($0) }) * 1_000
        }
        let before = try uptimeMs()
        let steady = Double(RoomClock.Sources.system.steadyMs())
        #expect((before - 20...(try uptimeMs()) + 20).contains(steady))
        #endif
        let since = Int64(Date().timeIntervalSince1970 * 1_000)
        let wall = RoomClock.Sources.system.wallMs()
        // It may be set back while this runs, but not by much.
        #expect((since - 1_000...Int64(Date().timeIntervalSince1970 * 1_000) + 1_000).contains(wall))
    }

    @Test func theRealOneIsRight() {
        let clock = RoomClock()
        let first = clock.now()
        #expect(first > 1_700_000_000_000)
        #expect(clock.now() >= first)
        #expect(clock.mark().bootID?.isEmpty == false)
    }
}

@Suite struct RetentionShareTests {
    private static let hour: Int64 = 3_600_000

    @Test func aTenthAnHour() {
        var share = RetentionShare()
        let week = 7 * 24 * Self.hour
        #expect(share.allowance(held: 95, retentionMs: week, steadyMs: 0) == 10)
        share.spend(4)
        #expect(share.allowance(held: 91, retentionMs: week, steadyMs: 1_000) == 6)
        share.spend(6)
        #expect(share.allowance(held: 85, retentionMs: week, steadyMs: Self.hour - 1) == 0)
        #expect(share.allowance(held: 85, retentionMs: week, steadyMs: Self.hour) == 9)
        // Small remainders go too, in time.
        #expect(share.allowance(held: 1, retentionMs: week, steadyMs: 3 * Self.hour) == 1)
    }

    /// Short retentions are not held back: otherwise more would arrive than may go.
    @Test func whatIsKeptForShortIsNotHeldBack() {
        var share = RetentionShare()
        #expect(share.allowance(held: 1_000, retentionMs: 4 * Self.hour, steadyMs: 0) == 500)
        #expect(share.allowance(held: 1_000, retentionMs: 2 * Self.hour, steadyMs: 0) == 1_000)
        #expect(share.allowance(held: 1_000, retentionMs: 1, steadyMs: 0) == 1_000)
        #expect(share.allowance(held: .max / 2, retentionMs: 1, steadyMs: 0) == .max / 2)
    }
}
