import Synchronization

/// Limits lines of the log of several kinds: twenty a second of each kind, and where an address matters twenty of each address in ten seconds. The
/// rest are counted, by address where it matters, so that one client that tries again and again hides no other. Any thread.
package final class CountedLines<Kind: Hashable & Sendable>: Sendable {
    package struct Held: Sendable {
        package let kind: Kind
        /// Nil where it does not matter, and for those of many addresses.
        package let address: String?
        package let count: Int
    }

    private struct Key: Hashable {
        let kind: Kind
        let address: String
    }

    private struct Window {
        let startMs: Int64
        var lines = 0
        /// Those without a line of their own.
        var held = 0

        mutating func pass() -> Bool {
            guard self.lines < CountedLines.mostLines else {
                self.held += 1
                return false
            }
            self.lines += 1
            return true
        }
    }

    private struct State {
        var byAddress: [Key: Window] = [:]
        /// The present second.
        var all: [Kind: Window] = [:]
        /// Those that a second that is over held back, and those of addresses that a report does not name.
        var others: [Kind: Int] = [:]
    }

    private let state = Mutex(State())

    package static var mostLines: Int { 20 }
    package static var addressMs: Int64 { 10_000 }
    /// Further addresses are only limited as all are.
    private static var mostAddresses: Int { 1_000 }
    /// Addresses that a report names.
    private static var mostNamed: Int { 20 }

    package init() {}

    /// Whether this one has a line of its own. `address`: nil where it does not matter.
    package func pass(_ kind: Kind, from address: String?, nowMs: Int64) -> Bool {
        self.state.withLock { state in
            if let key = address.map({ Key(kind: kind, address: $0) }),
                state.byAddress.count < Self.mostAddresses || state.byAddress[key] != nil
            {
                guard state.byAddress[key, default: Window(startMs: nowMs)].pass() else { return false }
            }
            if let last = state.all[kind], nowMs - last.startMs >= 1_000 {
                state.others[kind, default: 0] += last.held
                state.all[kind] = nil
            }
            return state.all[kind, default: Window(startMs: nowMs)].pass()
        }
    }

    /// What had no line, of windows that are over, or of all at the server's end (nil). The addresses with the most come by name.
    package func takeHeld(nowMs: Int64?) -> [Held] {
        self.state.withLock { state in
            let isOver = { (window: Window, ms: Int64) in nowMs.map { $0 - window.startMs >= ms } ?? true }
            var found: [Held] = []
            for (key, window) in state.byAddress where isOver(window, Self.addressMs) {
                state.byAddress[key] = nil
                if window.held > 0 { found.append(Held(kind: key.kind, address: key.address, count: window.held)) }
            }
            for (kind, window) in state.all where isOver(window, 1_000) {
                state.all[kind] = nil
                state.others[kind, default: 0] += window.held
            }
            found.sort { ($0.count, $1.address ?? "") > ($1.count, $0.address ?? "") }
            for held in found.dropFirst(Self.mostNamed) { state.others[held.kind, default: 0] += held.count }
            defer { state.others = [:] }
            return found.prefix(Self.mostNamed)
                + state.others.filter { $0.value > 0 }.map { Held(kind: $0.key, address: nil, count: $0.value) }
        }
    }
}
