import LinkTransport
import RoomRegistry
import Rooms
import Synchronization

/// Reports one link's changes to the registry, each once and in order. Any thread; does not wait.
///
/// It outlives the link's last state change, which comes after the link is deleted.
final class LinkReporter: Sendable {
    private let link: Link
    /// The address without its credential.
    private let target: String
    private let rooms: RoomRegistry
    private let progress = Mutex(LinkProgress())

    init(_ link: Link, target: String, rooms: RoomRegistry) {
        self.link = link
        self.target = target
        self.rooms = rooms
    }

    /// Reports a state change of the link. `error` ended its last connection.
    func changed(_ state: LinkState, error: LinkError?) { self.report { $0.changed(state, error: error) } }

    /// Records the reason why the link is about to be stopped; its state change comes later.
    func stopping(_ reason: String) {
        self.report { progress in
            progress.stopReason = reason
            return nil
        }
    }

    /// Reports that the pull waits until this server accepts the stream again.
    func held(_ reason: String, _ words: String) { self.report { $0.held(reason, words) } }

    /// Reports that a hold is over, but no viewer needs the stream now.
    func rests(_ reason: String) { self.report { $0.rests(reason) } }

    /// Reports the link's end and ignores later state changes.
    func ended(_ reason: String) { self.report { $0.ended(reason) } }

    private func report(_ change: (inout LinkProgress) -> LinkProgress.News?) {
        // Submitted under the lock, so that changes from two threads keep their order.
        self.progress.withLock { progress in
            guard let news = change(&progress) else { return }
            self.rooms.linkChanged(
                LinkChange(
                    linkID: self.link.id, direction: self.link.direction, path: self.link.path, target: self.target, kind: news.kind,
                    reason: news.reason, error: news.words))
        }
    }
}

/// Decides which of a link's states are reported. A plain value.
///
///     off ──▶ trying ──▶ up ──▶ down ──▶ up …      off and over: stopped
struct LinkProgress: Sendable, Equatable {
    struct News: Sendable, Equatable {
        let kind: LinkChange.Kind
        /// A single word, for programs.
        var reason: String?
        var words: String?
    }

    private enum Phase { case off, trying, up, down, over }

    private var phase = Phase.off
    private var isHeld = false
    /// The reason why this server is stopping the link.
    var stopReason: String?

    mutating func changed(_ state: LinkState, error: LinkError?) -> News? {
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
            // A held link is still needed.
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
