package import Rooms
import Synchronization

/// One-time permissions to open the event feed, for clients that cannot send an Authorization header (browsers). In memory: a restart
/// ends them all. Any thread.
package final class TicketOffice: Sendable {
    /// Whom a ticket, or a token itself, lets in.
    package struct Holder: Sendable, Equatable {
        package let tokenID: Int64
        package let role: TokenRole
        /// The only room whose events it is good for; nil: all.
        package let room: String?

        package init(tokenID: Int64, role: TokenRole, room: String?) {
            self.tokenID = tokenID
            self.role = role
            self.room = room
        }
    }

    package struct Ticket: Sendable, Equatable {
        /// Secret.
        package let text: String
        /// Milliseconds since 1970.
        package let expiresAt: Int64
    }

    private struct Entry {
        let holder: Holder
        /// Steady clock.
        let expiresAt: Int64
    }

    private struct State {
        var tickets: [String: Entry] = [:]
        var perToken: [Int64: Int] = [:]
        /// In the order of issue, which is that of expiry.
        var order: [(text: String, expiresAt: Int64)] = []
        var next = 0
    }

    package static let lifetimeMs: Int64 = 60_000
    /// Unused ones at a time, of all tokens and of one.
    package static let limit = 10_000
    package static let limitPerToken = 1_000

    /// Milliseconds that never leap: a ticket's minute is over in a minute, whatever the wall clock does.
    private let steadyMs: @Sendable () -> Int64
    /// Milliseconds since 1970, for those who are told when.
    private let wallMs: @Sendable () -> Int64
    private let state = Mutex(State())

    package convenience init() { self.init(steadyMs: { LoopSweeper.nowMs }, wallMs: { WallClock.ms }) }

    package init(steadyMs: @escaping @Sendable () -> Int64, wallMs: @escaping @Sendable () -> Int64) {
        self.steadyMs = steadyMs
        self.wallMs = wallMs
    }

    /// Nil: too many are unused.
    package func issue(to holder: Holder) -> Ticket? {
        let now = self.steadyMs()
        let text = SecretText.random()
        return self.state.withLock { state in
            Self.dropExpired(&state, now)
            guard state.tickets.count < Self.limit, state.perToken[holder.tokenID, default: 0] < Self.limitPerToken else { return nil }
            let expiresAt = now + Self.lifetimeMs
            state.tickets[text] = Entry(holder: holder, expiresAt: expiresAt)
            state.perToken[holder.tokenID, default: 0] += 1
            state.order.append((text, expiresAt))
            return Ticket(text: text, expiresAt: self.wallMs() + Self.lifetimeMs)
        }
    }

    /// Whose it was; nil when it is not known, used or too old. It is good for nothing afterwards.
    package func redeem(_ text: String) -> Holder? {
        let now = self.steadyMs()
        return self.state.withLock { state in
            guard let entry = Self.remove(text, &state) else { return nil }
            return now < entry.expiresAt ? entry.holder : nil
        }
    }

    /// Unused and not expired.
    package var count: Int {
        let now = self.steadyMs()
        return self.state.withLock { state in
            Self.dropExpired(&state, now)
            return state.tickets.count
        }
    }

    private static func remove(_ text: String, _ state: inout State) -> Entry? {
        guard let entry = state.tickets.removeValue(forKey: text) else { return nil }
        let left = state.perToken[entry.holder.tokenID, default: 1] - 1
        state.perToken[entry.holder.tokenID] = left > 0 ? left : nil
        return entry
    }

    private static func dropExpired(_ state: inout State, _ now: Int64) {
        while state.next < state.order.count, state.order[state.next].expiresAt <= now {
            _ = self.remove(state.order[state.next].text, &state)
            state.next += 1
        }
        // Used ones stay in the order until their time: bound what is kept of them.
        if state.next > 1_000 || state.order.count > 2 * self.limit {
            state.order = state.order[state.next...].filter { state.tickets[$0.text] != nil }
            state.next = 0
        }
    }
}
