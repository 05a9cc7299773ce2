import Support
import Synchronization
import Testing

@testable import Access

/// Tickets: good once, for a minute, and not without number.
@Suite struct OneTimeTicketsTests {
    struct Visitor: TicketHolder, Equatable {
        static var ticketKind: String { "visitors" }
        var ticketOwner: Int64

        init(ticketOwner: Int64) { self.ticketOwner = ticketOwner }

        var ticketContent: [JSONValue.Member] { [.init(name: "owner", value: .integer(self.ticketOwner))] }
        init?(ticketContent: JSONValue) {
            guard let owner = ticketContent.integer("owner") else { return nil }
            self.ticketOwner = owner
        }
    }

    private typealias Tickets = OneTimeTickets<Visitor>

    /// A clock that a test moves.
    final class Clock: Sendable {
        private let ms = Mutex<Int64>(1_795_255_200_000)
        fileprivate var office: OneTimeTickets<Visitor> {
            let now: @Sendable () -> Int64 = { self.ms.withLock { $0 } }
            return OneTimeTickets<Visitor>(steadyMs: now, wallMs: now)
        }
        func advance(_ by: Int64) { self.ms.withLock { $0 += by } }
    }

    private let clock = Clock()
    private let holder = Visitor(ticketOwner: 1)

    @Test func aTicketIsGoodOnce() throws {
        let office = self.clock.office
        let ticket = try #require(office.issue(to: self.holder))
        #expect(ticket.expiresAt == 1_795_255_260_000)
        // At least 128 bits.
        #expect(ticket.text.utf8.count >= 22)
        #expect(office.redeem(ticket.text) == self.holder)
        #expect(office.redeem(ticket.text) == nil)
        #expect(office.redeem("") == nil)
    }

    @Test func aTicketIsGoodForAMinute() throws {
        let office = self.clock.office
        let first = try #require(office.issue(to: self.holder))
        self.clock.advance(59_999)
        let second = try #require(office.issue(to: self.holder))
        #expect(office.count == 2)
        self.clock.advance(1)
        #expect(office.count == 1)
        #expect(office.redeem(first.text) == nil)
        #expect(office.redeem(second.text) == self.holder)
    }

    @Test func theyDiffer() {
        let office = self.clock.office
        let texts = (0..<500).compactMap { _ in office.issue(to: self.holder)?.text }
        #expect(Set(texts).count == 500)
    }

    @Test func theirNumberIsBounded() throws {
        let office = self.clock.office
        var last: OneTimeTicket?
        for _ in 0..<Tickets.limitPerOwner { last = office.issue(to: self.holder) }
        #expect(last != nil)
        #expect(office.issue(to: self.holder) == nil, "one token takes them all")
        // A used ticket makes room, and so does time.
        #expect(office.redeem(try #require(last).text) != nil)
        #expect(office.issue(to: self.holder) != nil)
        #expect(office.issue(to: self.holder) == nil)
        self.clock.advance(Tickets.lifetimeMs)
        #expect(office.count == 0)
        #expect(office.issue(to: self.holder) != nil)
    }

    /// Owners who together take all that there are take nothing from one who has a few, and keep nobody out.
    @Test func ownersWithManyGiveWayToOthers() throws {
        let office = self.clock.office
        let honest = (0..<3).compactMap { _ in office.issue(to: Visitor(ticketOwner: 0)) }
        for owner in Int64(1)...10 { for _ in 0..<Tickets.limitPerOwner { _ = office.issue(to: Visitor(ticketOwner: owner)) } }
        #expect(office.count > Tickets.limit - Tickets.limitPerOwner / 4 && office.count <= Tickets.limit)
        let late = try #require(office.issue(to: Visitor(ticketOwner: 99)))
        #expect(office.count <= Tickets.limit)
        #expect((honest + [late]).compactMap { office.redeem($0.text)?.ticketOwner } == [0, 0, 0, 99])
    }

    /// Used tickets leave nothing behind.
    @Test func manyOneAfterAnother() throws {
        let office = self.clock.office
        for _ in 0..<50_000 {
            let ticket = try #require(office.issue(to: self.holder))
            #expect(office.redeem(ticket.text) != nil)
        }
        #expect(office.count == 0)
    }
}
