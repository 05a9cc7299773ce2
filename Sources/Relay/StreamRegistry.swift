import NIOCore
import Synchronization

/// All streams by path. A stream exists while somebody uses it: its publisher, each viewer, and its own grace period.
///
/// Any thread. The lock is held for a dictionary operation only; nothing is called while it is held.
package final class StreamRegistry: Sendable {
    private struct Row {
        let stream: Stream
        var users: Int
    }

    private let rows = Mutex<[String: Row]>([:])

    /// Whether its streams are among those that a loop tells of.
    let isListed: Bool

    /// One that is not listed is for streams that are made of others.
    package init(isListed: Bool = true) { self.isListed = isListed }

    package var count: Int { self.rows.withLock { $0.count } }

    /// The stream with this path, made with `loop` as its home if there is none. Call on that loop; pair with ``release(_:)``.
    package func acquire(_ path: String, on loop: RelayLoop) -> Stream {
        loop.eventLoop.preconditionInEventLoop()
        let (stream, isNew) = self.rows.withLock { rows -> (Stream, Bool) in
            if let found = rows[path]?.stream {
                rows[path]?.users += 1
                return (found, false)
            }
            let stream = Stream(path: path, home: loop)
            rows[path] = Row(stream: stream, users: 1)
            return (stream, true)
        }
        if isNew { loop.adopt(stream, registry: self) }
        return stream
    }

    /// The stream with this path, if somebody uses it.
    package func find(_ path: String) -> Stream? { self.rows.withLock { $0[path]?.stream } }

    /// Viewers by path, of all streams that have any.
    package func viewerCounts() -> [(path: String, viewers: Int)] {
        self.rows.withLock { rows in
            rows.values.compactMap { $0.stream.viewerCount > 0 ? ($0.stream.path, $0.stream.viewerCount) : nil }
        }
    }

    /// One more use of a stream that is in use already.
    func retain(_ stream: Stream) {
        self.rows.withLock { rows in
            // A stream whose last user went before its claim arrived may have a successor under its name, which is not meant.
            guard rows[stream.path]?.stream === stream else { return }
            rows[stream.path]?.users += 1
        }
    }

    package func release(_ stream: Stream) {
        let isLast = self.rows.withLock { rows -> Bool in
            guard var row = rows[stream.path], row.stream === stream else { return false }
            row.users -= 1
            rows[stream.path] = row.users > 0 ? row : nil
            return row.users == 0
        }
        if isLast { stream.home.run { $0.abandon(stream) } }
    }
}
