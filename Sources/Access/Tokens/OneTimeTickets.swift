package import Support
import Synchronization

/// The grant of a ticket. The number of unused tickets per `ticketOwner` is limited. In a cluster the encoded grant is in the ticket.
package protocol TicketHolder: Sendable {
    associatedtype Owner: Hashable & Sendable
    /// Differs from that of other holders; tickets of one kind are none of another.
    static var ticketKind: String { get }
    var ticketOwner: Owner { get }
    /// What a sealed ticket holds.
    var ticketContent: [JSONValue.Member] { get }
    /// Nil for the content of another version.
    init?(ticketContent: JSONValue)
}

package struct OneTimeTicket: Sendable, Equatable {
    /// Bytes of a ticket's text, at most. That of a server which is alone has 43; one that holds its grant has some hundred.
    package static let longest = 8_192

    /// Secret.
    package let text: String
    /// Milliseconds since 1970.
    package let expiresAt: Int64
}

/// Issues tickets that open something once, within a minute. They are for clients that cannot send an Authorization header (browsers' WebSockets), so
/// that no lasting credential stands in a URL. Any thread.
///
/// A server that is alone keeps them in memory: a restart invalidates them all. With a cluster's key each server accepts those of all others, once:
/// ``SealedTickets`` says what differs.
package final class OneTimeTickets<Holder: TicketHolder>: Sendable {
    private struct Entry {
        let holder: Holder
        /// Steady clock.
        let expiresAt: Int64
    }

    private struct State {
        var tickets: [String: Entry] = [:]
        var perOwner: [Holder.Owner: Int] = [:]
        /// In order of issue, which is also the order of expiry.
        var order: [(text: String, expiresAt: Int64)] = []
        var next = 0
    }

    package static var lifetimeMs: Int64 { 60_000 }
    /// Most unused tickets at a time, in total and per owner.
    package static var limit: Int { 10_000 }
    package static var limitPerOwner: Int { 1_000 }

    /// Milliseconds of a steady clock, so that changes of the wall clock do not affect a ticket's lifetime.
    private let steadyMs: @Sendable () -> Int64
    /// Milliseconds since 1970, for the expiry that clients see.
    private let wallMs: @Sendable () -> Int64
    private let state = Mutex(State())
    /// Nil for a server that is alone.
    private let sealed: SealedTickets<Holder>?

    package convenience init(_ cluster: ClusterKey? = nil) {
        self.init(cluster, steadyMs: { LoopSweeper.nowMs }, wallMs: { WallClock.ms })
    }

    package init(_ cluster: ClusterKey? = nil, steadyMs: @escaping @Sendable () -> Int64, wallMs: @escaping @Sendable () -> Int64) {
        self.sealed = cluster.map { SealedTickets($0) }
        self.steadyMs = steadyMs
        self.wallMs = wallMs
    }

    /// Returns nil if the owner has too many unused tickets. If all owners together have, the one with the most loses its oldest: nobody
    /// can keep others from theirs.
    package func issue(to holder: Holder) -> OneTimeTicket? {
        if let sealed = self.sealed { return sealed.issue(to: holder, wallMs: self.wallMs()) }
        let now = self.steadyMs()
        let text = SecretText.random()
        return self.state.withLock { state in
            Self.dropExpired(&state, now)
            guard state.perOwner[holder.ticketOwner, default: 0] < Self.limitPerOwner else { return nil }
            if state.tickets.count >= Self.limit { Self.dropSomeOfMost(&state) }
            let expiresAt = now + Self.lifetimeMs
            state.tickets[text] = Entry(holder: holder, expiresAt: expiresAt)
            state.perOwner[holder.ticketOwner, default: 0] += 1
            state.order.append((text, expiresAt))
            return OneTimeTicket(text: text, expiresAt: self.wallMs() + Self.lifetimeMs)
        }
    }

    /// Uses up the ticket and returns its holder. Nil if it is unknown, used or expired.
    package func redeem(_ text: String) -> Holder? {
        if let sealed = self.sealed { return sealed.redeem(text, steadyMs: self.steadyMs(), wallMs: self.wallMs()) }
        let now = self.steadyMs()
        return self.state.withLock { state in
            guard let entry = Self.remove(text, &state) else { return nil }
            return now < entry.expiresAt ? entry.holder : nil
        }
    }

    /// Tickets that are unused and not expired; 0 in a cluster, which does not count them.
    package var count: Int {
        let now = self.steadyMs()
        return self.state.withLock { state in
            Self.dropExpired(&state, now)
            return state.tickets.count
        }
    }

    private static func remove(_ text: String, _ state: inout State) -> Entry? {
        guard let entry = state.tickets.removeValue(forKey: text) else { return nil }
        let left = state.perOwner[entry.holder.ticketOwner, default: 1] - 1
        state.perOwner[entry.holder.ticketOwner] = left > 0 ? left : nil
        return entry
    }

    /// Drops the oldest of the owner with the most: an eighth at once, since finding them reads all tickets.
    private static func dropSomeOfMost(_ state: inout State) {
        guard let (most, count) = state.perOwner.max(by: { $0.value < $1.value }) else { return }
        var left = max(1, count / 8)
        for (text, _) in state.order[state.next...] where state.tickets[text]?.holder.ticketOwner == most {
            _ = self.remove(text, &state)
            left -= 1
            if left == 0 { return }
        }
    }

    private static func dropExpired(_ state: inout State, _ now: Int64) {
        while state.next < state.order.count, state.order[state.next].expiresAt <= now {
            _ = self.remove(state.order[state.next].text, &state)
            state.next += 1
        }
        // Used tickets stay in `order` until they expire, so bound its length.
        if state.next > 1_000 || state.order.count > 2 * self.limit {
            state.order = state.order[state.next...].filter { state.tickets[$0.text] != nil }
            state.next = 0
        }
    }
}
