package import Access
package import NIOCore
package import RTMP
package import Rooms
package import Support
import Synchronization

/// The pushes and plays that were refused lately. Any thread.
///
/// For operators: a device that is not let in has no session, no push and no event. Repetitions of a refusal are one entry with a count. Holds
/// the newest ``capacity``, of one host at most ``perHost``, so that a flood from a few hosts displaces no other host's.
package final class RecentRefusals: Sendable {
    /// Equal attempts that were refused for the same reason. A value.
    package struct Entry: Sendable, Equatable {
        package let action: AdmissionRequest.Action
        package let path: StreamPath
        package let reason: CloseReason
        /// The client's address.
        package let address: String
        /// The sentence that the newest of them was answered with.
        package fileprivate(set) var message: String
        /// Milliseconds since 1970.
        package let firstAt: Int64
        package fileprivate(set) var lastAt: Int64
        package fileprivate(set) var count: Int64
        fileprivate let host: String
    }

    package static let capacity = 256
    package static let perHost = 16
    /// Bytes of a message, at most.
    static let longestMessage = 512

    /// In the order of their last times, oldest first. Short: looking through it costs less than an index would.
    private let entries = Mutex<[Entry]>([])

    package init() {}

    package func note(
        _ action: AdmissionRequest.Action, _ address: StreamAddress, _ reason: CloseReason, _ message: String, from remote: SocketAddress?,
        nowMs: Int64 = WallClock.ms
    ) {
        let path = StreamPath(app: address.app, name: address.name)
        let client = remote?.ipAddress ?? "unknown"
        let text = message.utf8.count <= Self.longestMessage ? message : message.prefix(Self.longestMessage / 4) + "…"
        var entry = Entry(
            action: action, path: path, reason: reason, address: client, message: text, firstAt: nowMs, lastAt: nowMs, count: 1,
            host: HostKey.of(remote))
        self.entries.withLock { entries in
            let known = entries.firstIndex {
                $0.reason == reason && $0.action == action && $0.address == client && $0.path == path
            }
            if let known {
                entry = entries.remove(at: known)
                (entry.message, entry.lastAt) = (text, nowMs)
                entry.count += 1
            } else if entries.lazy.filter({ $0.host == entry.host }).count >= Self.perHost {
                entries.firstIndex { $0.host == entry.host }.map { _ = entries.remove(at: $0) }
            } else if entries.count >= Self.capacity {
                entries.removeFirst()
            }
            entries.append(entry)
        }
    }

    /// Newest first.
    package var list: [Entry] { self.entries.withLock { $0.reversed() } }
}
