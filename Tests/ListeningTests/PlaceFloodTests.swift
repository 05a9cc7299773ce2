import NIOCore
import Support
import TestSupport
import Testing

@testable import Listening

/// Strangers in any number, who open, greet, play and leave as they like: one honest publisher always gets in, and nobody who pushes or plays is
/// shed for them.
@Suite struct PlaceFloodTests {
    /// The table, and what it must say, counted plainly.
    private struct Crowd {
        var table: PlaceTable
        let limits: PlaceTable.Limits
        let hosts: [HostKey]
        var random: TestRandom
        var open: [PlaceTable.ID: (host: HostKey, isHeld: Bool)] = [:]
        /// Connections of strangers, oldest first: a table has no order that a seed repeats.
        var strangers: [PlaceTable.ID] = []
        var next: PlaceTable.ID = 1
        var step: Int64 = 0
        private var deeds = 0

        init(hosts: Int, _ part: Int) throws {
            var random = TestRandom(part)
            let total = Int.random(in: 8...200, using: &random)
            self.limits = PlaceTable.Limits(
                total: total, perHost: Int.random(in: 1...total, using: &random), reserved: Int.random(in: 2...total / 2, using: &random))
            self.table = PlaceTable(self.limits, choice: .busiest)
            self.hosts = try (0..<hosts).map { index in
                // IPv6 hosts come from anywhere in their /64.
                try Self.address(index, suffix: UInt16.random(in: 1...(.max), using: &random))
            }.map { HostKey.of($0) }
            self.random = random
        }

        private static func address(_ index: Int, suffix: UInt16) throws -> SocketAddress {
            guard index % 2 == 0 else {
                let network = String(index, radix: 16)
                return try SocketAddress(ipAddress: "2001:db8:0:\(network)::\(String(suffix, radix: 16))", port: 1)
            }
            return try SocketAddress(ipAddress: "10.1.\(index / 256).\(index % 256)", port: 1)
        }

        mutating func rank() -> PlaceTable.Use {
            self.step += 1
            return .loose(rank: self.step)
        }

        /// One deed of a stranger: mostly a new connection.
        mutating func disturb() {
            let deed = Int.random(in: 0..<10, using: &self.random)
            let one = deed < 6 ? nil : self.strangers.randomElement(using: &self.random)
            guard let one, let entry = self.open[one] else {
                guard let host = self.hosts.randomElement(using: &self.random) else { return }
                self.enter(host, isKnown: false)
                return
            }
            switch deed {
            case 6:
                guard case .loose(let rank) = self.rank() else { return }
                self.table.rank(one, rank)
            case 7, 8: if self.table.play(one, entry.host) { self.open[one]?.isHeld = true }
            default:
                self.table.leave(one)
                self.forget(one)
            }
            self.check()
        }

        /// Returns the new connection's number; nil if it was refused.
        @discardableResult
        mutating func enter(_ host: HostKey, isKnown: Bool) -> PlaceTable.ID? {
            let id = self.next
            self.next += 1
            let (refusal, shed) = self.table.enter(id, host, as: self.rank(), isKnown: isKnown)
            for lost in shed {
                let gone = self.open[lost.id]
                self.forget(lost.id)
                if gone?.isHeld != false { Issue.record("a running play or push was shed") }
            }
            if refusal == nil {
                self.open[id] = (host, false)
                self.strangers.append(id)
            }
            self.check()
            return refusal == nil ? id : nil
        }

        private mutating func forget(_ id: PlaceTable.ID) {
            self.open[id] = nil
            self.strangers.removeAll { $0 == id }
        }

        /// The whole count takes long, so it is made after each 32 deeds.
        mutating func check() {
            self.deeds += 1
            guard self.deeds % 32 == 0 else { return }
            #expect(self.table.count == self.open.count && self.table.count <= self.limits.total)
            #expect(self.open.keys.allSatisfy { self.table.has($0) })
            #expect(self.open.values.count { $0.isHeld } <= self.limits.total - self.limits.reserved + 1, "and one push")
            var counts: [HostKey: Int] = [:]
            for entry in self.open.values { counts[entry.host, default: 0] += 1 }
            #expect(counts.values.allSatisfy { $0 <= self.limits.perHost })
        }

        /// Greets, connects and publishes, with so many deeds of strangers before each step. Returns whether the publisher got in.
        mutating func publishes(_ host: HostKey, isKnown: Bool, disturbances: Int) -> Bool {
            guard let id = self.enter(host, isKnown: isKnown) else { return false }
            self.strangers.removeAll { $0 == id }
            for _ in 0..<2 {
                for _ in 0..<Int.random(in: 0...disturbances, using: &self.random) { self.disturb() }
                guard self.table.has(id), case .loose(let rank) = self.rank() else { return false }
                self.table.rank(id, rank)
            }
            for _ in 0..<Int.random(in: 0...disturbances, using: &self.random) { self.disturb() }
            guard self.table.has(id) else { return false }
            self.table.set(id, host, .push)
            self.open[id] = (host, true)
            // From now on nothing can take it.
            for _ in 0..<50 { self.disturb() }
            return self.open[id] != nil
        }
    }

    private static func honest() throws -> HostKey { HostKey.of(try SocketAddress(ipAddress: "192.0.2.1", port: 1)) }

    /// One that has pushed before, or needs no credential, among strangers from any number of hosts.
    @Test(.seeded, arguments: 0..<30) func aKnownPublisherGetsIn(_ part: Int) throws {
        var crowd = try Crowd(hosts: 1 + part * 14, part)
        for _ in 0..<500 { crowd.disturb() }
        let gotIn = crowd.publishes(try Self.honest(), isKnown: true, disturbances: 400)
        #expect(gotIn)
    }

    /// One that nobody knows, among strangers from fewer hosts than there are places for them.
    @Test(.seeded, arguments: 0..<30) func anUnknownOneAmongFewHosts(_ part: Int) throws {
        var crowd = try Crowd(hosts: 1, part)
        let reserved = crowd.limits.reserved
        guard reserved > 3 else { return }
        crowd = try Crowd(hosts: reserved - 2, part)
        for _ in 0..<500 { crowd.disturb() }
        let gotIn = crowd.publishes(try Self.honest(), isKnown: false, disturbances: 400)
        #expect(gotIn)
    }

    /// And among strangers from any number of hosts, as long as not all places change hands between two of its steps.
    @Test(.seeded, arguments: 0..<30) func anUnknownOneAmongManyHosts(_ part: Int) throws {
        var crowd = try Crowd(hosts: 20 + part * 14, part)
        for _ in 0..<500 { crowd.disturb() }
        let gotIn = crowd.publishes(try Self.honest(), isKnown: false, disturbances: crowd.limits.reserved - 2)
        #expect(gotIn)
    }
}
