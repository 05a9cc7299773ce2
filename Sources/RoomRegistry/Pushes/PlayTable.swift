import Rooms
import Support
import Synchronization

/// The streams that nobody may play now, in memory. Any thread; event loops query it at every join.
final class PlayTable: Sendable {
    enum Change: Sendable {
        case closed(StreamPath, Bool)
        /// Nil: the ban is over.
        case banned(StreamPath, BanTerms?)
    }

    private struct Why {
        var isClosed = false
        var ban: BanTerms?
    }

    private let paths = Mutex<NameTable<Why>>([:])

    /// Replaces the whole table.
    func replace(with changes: [Change]) {
        self.paths.withLock { paths in
            paths = [:]
            Self.apply(changes, to: &paths)
        }
    }

    func apply(_ changes: [Change]) {
        guard !changes.isEmpty else { return }
        self.paths.withLock { Self.apply(changes, to: &$0) }
    }

    private static func apply(_ changes: [Change], to paths: inout NameTable<Why>) {
        for change in changes {
            let path: String
            var why: Why
            switch change {
            case .closed(let stream, let isClosed):
                path = stream.description
                why = paths[path] ?? Why()
                why.isClosed = isClosed
            case .banned(let stream, let ban):
                path = stream.description
                why = paths[path] ?? Why()
                why.ban = ban
            }
            paths[path] = why.isClosed || why.ban != nil ? why : nil
        }
    }

    func refusal(_ path: String) -> StateReason? {
        guard let why = self.paths.withLock({ $0[path] }) else { return nil }
        return why.ban != nil ? .forbidden : .closed
    }

    func ban(_ path: String) -> BanTerms? { self.paths.withLock { $0[path] }?.ban }
}
