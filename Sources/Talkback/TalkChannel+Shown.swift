import NIOCore
package import Rooms
import Synchronization
import Talk

/// A channel's state, for the API and for its clock.
extension TalkChannel {
    /// Whether all missed ticks are to be made up for.
    var isRecorded: Bool { self.state.withLock { !$0.held.isEmpty } }

    /// The loops of the talkers' sockets and of their streams' homes; the number of waiting frames.
    var reading: (loops: [any EventLoop], waiting: Int) {
        let talkers = self.state.withLock { Array($0.talkers.values) }
        return (talkers.flatMap(\.loops), talkers.reduce(0) { $0 + $1.inbox.count })
    }

    package var settings: TalkSettings { self.state.withLock { $0.settings } }

    /// Mixes with listeners now, and totals since the channel began.
    package var totals: (mixes: Int, totals: TalkTotals) {
        self.state.withLock { state in
            var totals = state.totals
            if !state.isTicking { totals.delayMs = 0 }
            return ((state.isTicking ? state.mixes : 0), totals)
        }
    }

    package var snapshot: TalkSnapshot {
        self.state.withLock { state in
            TalkSnapshot(
                settings: state.settings, holders: state.floor.holders.map(\.id.rawValue), queue: state.floor.queue.map(\.rawValue),
                members: state.shown, listeners: state.members.listenerCount, mixes: state.mixes, encodes: state.totals.encodes)
        }
    }
}
