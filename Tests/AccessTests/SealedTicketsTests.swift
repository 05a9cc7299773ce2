import Support
import Synchronization
import Testing

@testable import Access

/// Tickets that any server of a cluster accepts.
@Suite struct SealedTicketsTests {
    struct Visitor: TicketHolder, Equatable {
        static var ticketKind: String { "visitors" }
        var ticketOwner: Int64
        var name: String

        init(ticketOwner: Int64, name: String = "Ann / Ünal") { (self.ticketOwner, self.name) = (ticketOwner, name) }

        var ticketContent: [JSONValue.Member] { Content.members(self.ticketOwner, self.name) }
        init?(ticketContent: JSONValue) {
            guard let content = Content.read(ticketContent) else { return nil }
            (self.ticketOwner, self.name) = content
        }
    }

    private enum Content {
        static func members(_ owner: Int64, _ name: String) -> [JSONValue.Member] {
            [.init(name: "owner", value: .integer(owner)), .init(name: "name", value: .string(name))]
        }

        static func read(_ json: JSONValue) -> (Int64, String)? {
            json.integer("owner").flatMap { owner in json.string("name").map { (owner, $0) } }
        }
    }

    /// The same content for another purpose.
    struct Guest: TicketHolder, Equatable {
        static var ticketKind: String { "guests" }
        var ticketOwner: Int64
        var name: String

        var ticketContent: [JSONValue.Member] { Content.members(self.ticketOwner, self.name) }
        init?(ticketContent: JSONValue) {
            guard let content = Content.read(ticketContent) else { return nil }
            (self.ticketOwner, self.name) = content
        }
    }

    private typealias Tickets = OneTimeTickets<Visitor>
    private static let (key, other) = ("a-key-of-a-cluster-0123456789abcdef", "another-key-of-a-cluster-0123456789")

    /// The clocks of one server, which a test moves.
    final class Clock: Sendable {
        private let times = Mutex<(steady: Int64, wall: Int64)>((5_000, 1_795_255_200_000))
        func advance(_ by: Int64) { self.times.withLock { $0 = ($0.steady + by, $0.wall + by) } }
        func setBack(_ by: Int64) { self.times.withLock { $0.wall -= by } }

        func office<Holder: TicketHolder>(
            _ key: String, previous: String? = nil, _ type: Holder.Type = Visitor.self
        ) -> OneTimeTickets<Holder> {
            OneTimeTickets(
                ClusterKey(current: key, previous: previous), steadyMs: { self.times.withLock { $0.steady } },
                wallMs: { self.times.withLock { $0.wall } })
        }
    }

    private let clock = Clock()
    private let holder = Visitor(ticketOwner: 1)

    @Test func aTicketOfOneServerIsGoodAtAnotherOnce() throws {
        let (here, there) = (self.clock.office(Self.key), self.clock.office(Self.key))
        let ticket = try #require(here.issue(to: self.holder))
        #expect(ticket.expiresAt == 1_795_255_260_000)
        #expect(ticket.text.wholeMatch(of: /[A-Za-z0-9_-]+/) != nil)
        #expect(!ticket.text.contains("Ann"))
        #expect(there.redeem(ticket.text) == self.holder)
        #expect(there.redeem(ticket.text) == nil, "used")
        // The servers do not ask each other.
        #expect(here.redeem(ticket.text) == self.holder)
        #expect(here.redeem(ticket.text) == nil)
        #expect(here.issue(to: self.holder)?.text != ticket.text)
        #expect(here.count == 0)
    }

    /// A spelling of the same bytes is the same ticket. The last character of base64 may hold bits that count for nothing.
    @Test func anotherSpellingIsNoOtherTicket() throws {
        let office = self.clock.office(Self.key)
        let ticket = try #require(office.issue(to: self.holder))
        #expect(office.redeem(ticket.text) == self.holder)
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        for last in alphabet { #expect(office.redeem(ticket.text.dropLast() + String(last)) == nil) }
        for end in ["=", "==", "\n", " "] { #expect(office.redeem(ticket.text + end) == nil) }
    }

    @Test func aTicketIsGoodForAMinute() throws {
        let (here, there) = (self.clock.office(Self.key), self.clock.office(Self.key))
        let tickets = try (0..<2).map { _ in try #require(here.issue(to: self.holder)) }
        self.clock.advance(59_999)
        #expect(there.redeem(tickets[0].text) == self.holder)
        self.clock.advance(1)
        #expect(there.redeem(tickets[1].text) == nil)
    }

    /// Each byte counts.
    @Test func aChangedTicketIsNone() throws {
        let (office, fresh) = (self.clock.office(Self.key), self.clock.office(Self.key))
        let text = try #require(office.issue(to: self.holder)).text
        // The last character may differ in bits that count for nothing.
        for index in text.indices.dropLast() {
            let changed = text[..<index] + (text[index] == "A" ? "B" : "A") + text[text.index(after: index)...]
            #expect(fresh.redeem(String(changed)) == nil)
        }
        for garbled in [
            "", "A", "AA", "====", "%", "é", "\0", String(text.dropLast(4)), text + "AAAA", String(repeating: "A", count: 43),
            String(repeating: "A", count: 8_192), String(repeating: "A", count: 1 << 20), text + text,
        ] { #expect(fresh.redeem(garbled) == nil) }
        #expect(fresh.redeem(text) == self.holder, "no attempt uses it up")
    }

    @Test func ticketsOfOthersAreNone() throws {
        let office = self.clock.office(Self.key)
        let ticket = try #require(office.issue(to: self.holder))
        #expect(self.clock.office(Self.other).redeem(ticket.text) == nil, "another cluster's")
        #expect(self.clock.office(Self.key, Guest.self).redeem(ticket.text) == nil, "of another kind")
        let alone = Tickets(steadyMs: { 0 }, wallMs: { 0 })
        #expect(alone.redeem(ticket.text) == nil)
        #expect(office.redeem(try #require(alone.issue(to: self.holder)).text) == nil)
    }

    @Test func ticketsByThePreviousKeyAreGood() throws {
        let (old, new) = (self.clock.office(Self.key), self.clock.office(Self.other, previous: Self.key))
        let ticket = try #require(old.issue(to: self.holder))
        #expect(new.redeem(ticket.text) == self.holder)
        #expect(new.redeem(ticket.text) == nil)
        #expect(old.redeem(try #require(new.issue(to: self.holder)).text) == nil, "new ones are by the current key")
    }

    /// Other servers' clocks may be a little wrong. Set back by a little, this one's does not make a used ticket good again.
    @Test func clocksThatDiffer() throws {
        let (early, late) = (Clock(), Clock())
        early.advance(30_000)
        let ahead = try #require(early.office(Self.key).issue(to: self.holder))
        let office = late.office(Self.key)
        #expect(office.redeem(ahead.text) == self.holder)
        early.advance(1)
        #expect(office.redeem(try #require(early.office(Self.key).issue(to: self.holder)).text) == nil, "31 seconds ahead")
        late.advance(89_999)
        late.setBack(60_000)
        #expect(office.redeem(ahead.text) == nil)
    }

    /// What is remembered is bounded, per owner and in all, and forgotten after the time that a ticket may be valid.
    @Test func memoryIsBounded() throws {
        typealias Sealed = SealedTickets<Visitor>
        let office = Sealed(ClusterKey(current: Self.key, previous: nil))
        func use(_ owner: Int64, at ms: Int64) -> Bool {
            let ticket = office.issue(to: Visitor(ticketOwner: owner, name: ""), wallMs: ms)
            return ticket.flatMap { office.redeem($0.text, steadyMs: ms, wallMs: ms) } != nil
        }
        for count in 0..<Sealed.limitPerOwner { #expect(use(1, at: 1_000_000), "\(count)") }
        #expect(!use(1, at: 1_000_000), "one owner takes them all")
        #expect(use(2, at: 1_000_000))
        let first = try #require(office.issue(to: self.holder, wallMs: 1_000_000 + Sealed.memoryMs))
        let later = 1_000_000 + Sealed.memoryMs
        #expect(office.redeem(first.text, steadyMs: later, wallMs: later) != nil, "time makes room")
        #expect(office.remembered == Sealed.limitPerOwner + 2)
        #expect(use(1, at: 1_000_000 + 2 * Sealed.memoryMs))
        #expect(office.remembered == 2, "the first ones are forgotten")
        #expect(use(1, at: 1_000_000 + 9 * Sealed.memoryMs))
        #expect(office.remembered == 1)
    }

    /// What some owners use leaves room for others.
    @Test func ownersWithManyLeaveRoomForOthers() {
        typealias Sealed = SealedTickets<Visitor>
        var all = 0
        var perOwner: [Int] = []
        for _ in 0..<40 {
            var own = 0
            while Sealed.hasSpace(own: own, all: all) { (own, all) = (own + 1, all + 1) }
            perOwner.append(own)
        }
        #expect(perOwner.first == Sealed.limitPerOwner && perOwner.allSatisfy { $0 >= 100 }, "\(perOwner)")
        #expect(!Sealed.hasSpace(own: 0, all: Sealed.limit) && Sealed.hasSpace(own: 0, all: Sealed.limit - 1))
    }

    /// As long as it is valid, an id is remembered, whenever it came.
    @Test func aUsedTicketStaysUsed() throws {
        typealias Sealed = SealedTickets<Visitor>
        for begin in stride(from: Int64(0), to: 2 * Sealed.memoryMs, by: 7_000) {
            let office = Sealed(ClusterKey(current: Self.key, previous: nil))
            let opener = try #require(office.issue(to: self.holder, wallMs: 1_000_000))
            #expect(office.redeem(opener.text, steadyMs: 1_000_000, wallMs: 1_000_000) != nil)
            let now = 1_000_000 + begin
            // From a server whose clock is ahead as far as it may be.
            let ticket = try #require(office.issue(to: self.holder, wallMs: now + Sealed.leadMs))
            #expect(office.redeem(ticket.text, steadyMs: now, wallMs: now) != nil)
            for ms in stride(from: now, through: now + Sealed.memoryMs, by: 1_000) {
                #expect(office.redeem(ticket.text, steadyMs: ms, wallMs: ms) == nil)
            }
        }
    }
}
