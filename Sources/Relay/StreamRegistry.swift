import NIOCore
import Support
import Synchronization

/// All streams by path. A stream exists while somebody uses it: its publisher, each viewer, and its own grace period.
///
/// Any thread. The lock is held for a dictionary operation only; nothing is called while it is held.
package final class StreamRegistry: Sendable {
    private struct Row {
        let stream: Stream
        var users: Int
    }

    private let rows = Mutex<NameTable<Row>>([:])

    /// Whether ``RelayLoop/streamSnapshots()`` lists its streams.
    let isListed: Bool

    /// Streams that are derived from others go into an unlisted registry.
    package init(isListed: Bool = true) { self.isListed = isListed }

    package var count: Int { self.rows.withLock { $0.count } }

    /// Returns the stream with this path, made with `loop` as its home if needed. Call on that loop; pair with ``release(_:)``.
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

    /// Viewer counts by path, of all streams that have viewers.
    package func viewerCounts() -> [(path: String, viewers: Int)] {
        self.rows.withLock { rows in
            rows.values.compactMap { $0.stream.viewerCount > 0 ? ($0.stream.path, $0.stream.viewerCount) : nil }
        }
    }

    /// Adds a use to a stream that is in use already.
    func retain(_ stream: Stream) {
        self.rows.withLock { rows in
            // The last user may have left before its claim arrived. A successor under the same name must not be retained.
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
