import Synchronization

/// Limits the log's lines about refused clients: five of each address in ten seconds, and twenty a second in all. The rest are counted by address,
/// so that one client that tries again and again hides no other. Any thread.
package final class RefusalLines<Kind: Hashable & Sendable>: Sendable {
    package struct Held: Sendable {
        package let kind: Kind
        /// Nil for those of many addresses.
        package let address: String?
        package let count: Int
    }

    private struct Window {
        let startMs: Int64
        var lines = 0
        /// Refusals without a line of their own.
        var held: [Kind: Int] = [:]
    }

    private struct State {
        var byAddress: [String: Window] = [:]
        var all = Window(startMs: .min)
        /// Those that the limit for all held back.
        var others: [Kind: Int] = [:]
    }

    private let state = Mutex(State())

    package static var linesOfAddress: Int { 5 }
    package static var addressMs: Int64 { 10_000 }
    package static var linesPerSecond: Int { 20 }
    /// Further addresses are only limited as all are.
    private static var mostAddresses: Int { 1_000 }
    /// Addresses that a report names.
    private static var mostNamed: Int { 20 }

    package init() {}

    /// Whether this refusal has a line of its own.
    package func pass(_ kind: Kind, from address: String, nowMs: Int64) -> Bool {
        self.state.withLock { state in
            if nowMs - state.all.startMs >= 1_000 || state.all.startMs == .min { state.all = Window(startMs: nowMs) }
            let hasPlace = state.byAddress.count < Self.mostAddresses || state.byAddress[address] != nil
            if hasPlace {
                var window = state.byAddress[address] ?? Window(startMs: nowMs)
                defer { state.byAddress[address] = window }
                guard window.lines < Self.linesOfAddress else {
                    window.held[kind, default: 0] += 1
                    return false
                }
                window.lines += 1
            }
            guard state.all.lines < Self.linesPerSecond else {
                state.others[kind, default: 0] += 1
                return false
            }
            state.all.lines += 1
            return true
        }
    }

    /// What had no line, of windows that are over, or of all at the server's end (nil). The addresses with the most come by name.
    package func takeHeld(nowMs: Int64?) -> [Held] {
        self.state.withLock { state in
            var found: [Held] = []
            for (address, window) in state.byAddress where nowMs.map({ $0 - window.startMs >= Self.addressMs }) ?? true {
                state.byAddress[address] = nil
                found += window.held.map { Held(kind: $0.key, address: address, count: $0.value) }
            }
            found.sort { ($0.count, $1.address ?? "") > ($1.count, $0.address ?? "") }
            for held in found.dropFirst(Self.mostNamed) { state.others[held.kind, default: 0] += held.count }
            defer { state.others = [:] }
            return found.prefix(Self.mostNamed) + state.others.map { Held(kind: $0.key, address: nil, count: $0.value) }
        }
    }
}
