import NIOCore
import Rooms
import Synchronization
import Talk

/// What others want to know of a channel: the API, and the clock that it is on.
extension TalkChannel {
    /// Whether ticks that were missed are to be made up for, all of them.
    var isRecorded: Bool { self.state.withLock { !$0.held.isEmpty } }

    /// The loops that read what its talkers send, and those where it then comes out; and how many frames wait.
    var reading: (loops: [any EventLoop], waiting: Int) {
        let seats = self.state.withLock { Array($0.talkers.values) }
        return (seats.flatMap(\.loops), seats.reduce(0) { $0 + $1.inbox.count })
    }

    var settings: TalkSettings { self.state.withLock { $0.settings } }

    /// Mixes that are listened to now, and what has become of voices and mixes since it began.
    var totals: (mixes: Int, totals: TalkTotals) {
        self.state.withLock { (($0.isTicking ? $0.mixes : 0), $0.totals) }
    }

    var snapshot: TalkSnapshot {
        self.state.withLock { state in
            TalkSnapshot(
                settings: state.settings, holders: state.floor.holders.map(\.id.rawValue), queue: state.floor.queue.map(\.rawValue),
                members: state.shown, listeners: state.members.listenerCount, mixes: state.mixes, encodes: state.totals.encodes)
        }
    }
}
