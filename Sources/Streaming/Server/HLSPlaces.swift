package import Listening
package import Support
import Synchronization

/// The places of players over HLS, in total and by host. Any thread.
///
/// These players have no connection, so they take no connection's place. When places are short, a player that has not asked for a while makes room:
/// the newcomer's own host's first, so that a host that opens session after session ends its own. Players that go on asking keep their places.
package final class HLSPlaces: Sendable {
    private let table: Mutex<PlaceTable>

    /// How long a player may be silent before it may lose its place. Players ask at least once per target duration.
    package static func idleMs(segmentMs: Int64) -> Int64 { 5_000 + 2 * min(segmentMs, 10_000) }

    package init(_ limits: PlaceTable.Limits) { self.table = Mutex(PlaceTable(limits, choice: .lowest)) }

    /// Players beyond a lower limit stay.
    func set(_ limits: PlaceTable.Limits) { self.table.withLock { $0.set(limits) } }

    /// Takes a place; pair with `leave`. `shed`: players that lost theirs, silent for `idleMs` or longer. `nowMs`: any steady clock.
    package func enter(_ id: UInt64, _ host: HostKey, nowMs: Int64, idleMs: Int64) -> (refusal: PlaceTable.Refusal?, shed: [UInt64]) {
        let (refusal, shed) = self.table.withLock {
            $0.enter(id, host, as: .loose(rank: nowMs), sheddingUpTo: nowMs - idleMs)
        }
        return (refusal, shed.map(\.id))
    }

    /// Records a request of the player.
    package func seen(_ id: UInt64, nowMs: Int64) { self.table.withLock { $0.rank(id, nowMs) } }

    package func leave(_ id: UInt64) { self.table.withLock { $0.leave(id) } }

    /// Players now.
    package var count: Int { self.table.withLock { $0.count } }
}
