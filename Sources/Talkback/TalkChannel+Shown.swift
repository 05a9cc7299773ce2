package import Rooms
import Streaming
import Synchronization
import Talk

/// A channel's state, for the API and for its clock.
extension TalkChannel: ClockedChannel {
    var isRecorded: Bool { self.state.withLock { !$0.held.isEmpty } }

    /// The loops are those of the talkers' sockets and of their streams' homes.
    func addReading(to found: inout ReadingTurns.Waiting) {
        for talker in self.state.withLock({ Array($0.talkers.values) }) {
            found.frames += talker.inbox.count
            for loop in talker.loops {
                if let context = self.talkback.streams.context(of: loop) { found.loops[ObjectIdentifier(loop)] = context.sockets }
            }
        }
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
