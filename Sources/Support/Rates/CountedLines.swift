import Synchronization

/// Limits log lines by kind: at most 20 a second for each kind and, if a line has a host, 20 in ten seconds for each kind and host.
/// Suppressed lines are counted, by host if there is one, so that a client that keeps retrying cannot hide others. Any thread.
package final class CountedLines<Kind: Hashable & Sendable>: Sendable {
    package struct Held: Sendable {
        package let kind: Kind
        /// Nil for lines without a host, and for the sum of hosts that are not named.
        package let host: HostKey?
        package let count: Int

        fileprivate var name: String { self.host?.description ?? "" }
    }

    private struct Key: Hashable {
        let kind: Kind
        let host: HostKey
    }

    private struct Window {
        let startMs: Int64
        var lines = 0
        /// Suppressed lines.
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
        var byHost: [Key: Window] = [:]
        /// The present second.
        var all: [Kind: Window] = [:]
        /// Lines suppressed by the limit per second in windows that have ended, and lines of hosts that a report does not name.
        var others: [Kind: Int] = [:]
    }

    private let state = Mutex(State())

    package static var mostLines: Int { 20 }
    package static var hostMs: Int64 { 10_000 }
    /// Pairs of kind and host. Beyond them, new ones are subject to the limit per kind only.
    private static var mostHosts: Int { 1_000 }
    /// Hosts that a report names.
    private static var mostNamed: Int { 20 }

    package init() {}

    /// Whether this line is written. Counts it otherwise. `host`: nil if it does not matter.
    package func pass(_ kind: Kind, from host: HostKey?, nowMs: Int64) -> Bool {
        self.state.withLock { state in
            if let key = host.map({ Key(kind: kind, host: $0) }),
                state.byHost.count < Self.mostHosts || state.byHost[key] != nil
            {
                guard state.byHost[key, default: Window(startMs: nowMs)].pass() else { return false }
            }
            if let last = state.all[kind], nowMs - last.startMs >= 1_000 {
                state.others[kind, default: 0] += last.held
                state.all[kind] = nil
            }
            return state.all[kind, default: Window(startMs: nowMs)].pass()
        }
    }

    /// Removes and returns the counts of suppressed lines: from windows that have ended, or from all windows if `nowMs` is nil (at shutdown). Only
    /// the hosts with the highest counts are named.
    package func popHeld(nowMs: Int64?) -> [Held] {
        self.state.withLock { state in
            let isOver = { (window: Window, ms: Int64) in nowMs.map { $0 - window.startMs >= ms } ?? true }
            var found: [Held] = []
            for (key, window) in state.byHost where isOver(window, Self.hostMs) {
                state.byHost[key] = nil
                if window.held > 0 { found.append(Held(kind: key.kind, host: key.host, count: window.held)) }
            }
            for (kind, window) in state.all where isOver(window, 1_000) {
                state.all[kind] = nil
                state.others[kind, default: 0] += window.held
            }
            found.sort { ($0.count, $1.name) > ($1.count, $0.name) }
            for held in found.dropFirst(Self.mostNamed) { state.others[held.kind, default: 0] += held.count }
            defer { state.others = [:] }
            return found.prefix(Self.mostNamed)
                + state.others.filter { $0.value > 0 }.map { Held(kind: $0.key, host: nil, count: $0.value) }
        }
    }
}
