import Rooms
import Synchronization
import Upstream

/// Tells what becomes of one relay task: each change once, in the order in which it came about. Any thread; does not wait.
///
/// It outlives the link's last word, which comes after the task is gone.
final class RelayTeller: Sendable {
    private let task: RelayTask
    /// Without the credential.
    private let target: String
    private let rooms: RoomRegistry
    private let progress = Mutex(RelayProgress())

    init(_ task: RelayTask, target: String, rooms: RoomRegistry) {
        self.task = task
        self.target = target
        self.rooms = rooms
    }

    /// The link's own word. `error`: what ended its last connection.
    func heard(_ state: UpstreamState, error: UpstreamError?) {
        self.tell { $0.heard(state, error: error) }
    }

    /// Why the link is about to be stopped: its own word for it comes later.
    func stopping(_ reason: String) {
        self.tell { progress in
            progress.stopReason = reason
            return nil
        }
    }

    /// It waits until what is here takes the stream again.
    func held(_ reason: String, _ words: String) { self.tell { $0.held(reason, words) } }

    /// It would go on, but nobody wants it now.
    func rests(_ reason: String) { self.tell { $0.rests(reason) } }

    /// It is over, whatever the link says afterwards.
    func ended(_ reason: String) { self.tell { $0.ended(reason) } }

    private func tell(_ change: (inout RelayProgress) -> RelayProgress.News?) {
        // Submitted under the lock: two threads' news keep their order.
        self.progress.withLock { progress in
            guard let news = change(&progress) else { return }
            self.rooms.relayChanged(
                RelayChange(
                    task: self.task.id, direction: self.task.direction, path: self.task.path, target: self.target, kind: news.kind,
                    reason: news.reason, error: news.words))
        }
    }
}

/// What of a link's states is news. A plain value.
///
///     off ──▶ trying ──▶ up ──▶ down ──▶ up …      off and over: stopped
struct RelayProgress: Sendable, Equatable {
    struct News: Sendable, Equatable {
        let kind: RelayChange.Kind
        /// One word.
        var reason: String?
        var words: String?
    }

    private enum Phase { case off, trying, up, down, over }

    private var phase = Phase.off
    private var isHeld = false
    /// Why the link is being stopped by us.
    var stopReason: String?

    mutating func heard(_ state: UpstreamState, error: UpstreamError?) -> News? {
        guard self.phase != .over else { return nil }
        switch state {
        case .idle: return nil
        case .connecting:
            self.isHeld = false
            guard self.phase == .off else { return nil }
            self.phase = .trying
            self.stopReason = nil
            return News(kind: .started)
        case .running:
            guard self.phase != .up else { return nil }
            self.phase = .up
            return News(kind: .connected)
        case .waiting:
            guard self.phase != .down else { return nil }
            self.phase = .down
            return News(kind: .interrupted, reason: error?.code, words: error.map { "\($0)" })
        case .stopped:
            // It is still wanted.
            guard !self.isHeld, self.phase != .off else { return nil }
            self.phase = .off
            return News(kind: .stopped, reason: self.stopReason ?? "stopped")
        case .failed(let words, _):
            guard self.phase != .off else { return nil }
            self.phase = .off
            return News(kind: .stopped, reason: error?.code ?? "failed", words: words)
        }
    }

    mutating func held(_ reason: String, _ words: String) -> News? {
        guard self.phase != .over else { return nil }
        self.isHeld = true
        guard self.phase != .down else { return nil }
        self.phase = .down
        return News(kind: .interrupted, reason: reason, words: words)
    }

    mutating func rests(_ reason: String) -> News? {
        guard self.phase != .over, self.phase != .off else { return nil }
        self.isHeld = false
        self.phase = .off
        return News(kind: .stopped, reason: reason)
    }

    mutating func ended(_ reason: String) -> News? {
        defer { self.phase = .over }
        return self.phase == .off || self.phase == .over ? nil : News(kind: .stopped, reason: reason)
    }
}
