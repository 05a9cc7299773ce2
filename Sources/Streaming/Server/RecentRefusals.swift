package import Access
package import NIOCore
package import RTMP
package import Rooms
package import Support
import Synchronization

/// The pushes and plays that were refused lately. Any thread.
///
/// For operators: a refused device has no session, no push and no event. Repetitions of a refusal are one entry with a count. The list keeps the
/// newest ``perAction`` refused pushes and as many plays, so that viewers displace no devices. Each host has at most ``perHost`` entries, so that a
/// flood needs many hosts to displace others.
package final class RecentRefusals: Sendable {
    /// Equal attempts that were refused for the same reason. A value.
    package struct Entry: Sendable, Equatable {
        package let action: AdmissionRequest.Action
        /// As ``RefusalText`` shows it.
        package let path: StreamPath
        package let reason: CloseReason
        /// The client's address.
        package let address: String
        /// The message sent with the newest refusal.
        package fileprivate(set) var message: String
        /// Milliseconds since 1970.
        package let firstAt: Int64
        package fileprivate(set) var lastAt: Int64
        package fileprivate(set) var count: Int64
        fileprivate let host: HostKey
    }

    package static let perAction = 128
    package static let perHost = 16
    /// How long an entry is shown after its last repetition.
    package static let keptMs: Int64 = 86_400_000

    /// The most recently repeated entry is last. The list is short: searching it costs less than an index would.
    private let entries = Mutex<[Entry]>([])

    package func note(
        _ action: AdmissionRequest.Action, _ text: RefusalText, _ reason: CloseReason, from remote: SocketAddress?,
        nowMs: Int64 = WallClock.ms
    ) {
        var entry = Entry(
            action: action, path: StreamPath(app: text.app, name: text.name), reason: reason, address: remote?.ipAddress ?? "unknown",
            message: text.message, firstAt: nowMs, lastAt: nowMs, count: 1, host: HostKey.of(remote))
        self.entries.withLock { entries in
            let path: StreamPath = entry.path
            let known = entries.firstIndex {
                $0.reason == reason && $0.action == action && $0.address == entry.address && $0.path == path
            }
            if let known {
                entry = entries.remove(at: known)
                (entry.message, entry.lastAt) = (text.message, nowMs)
                entry.count += 1
            } else {
                Self.makeSpace(for: entry, in: &entries)
            }
            entries.append(entry)
        }
    }

    private static func makeSpace(for entry: Entry, in entries: inout [Entry]) {
        let alike = entries.indices.filter { entries[$0].action == entry.action }
        let own = alike.filter { entries[$0].host == entry.host }
        if own.count >= self.perHost, let oldest = own.first {
            entries.remove(at: oldest)
        } else if alike.count >= self.perAction, let oldest = alike.first {
            entries.remove(at: oldest)
        }
    }

    /// Removes the refused pushes of this host for the same stream, since a push was now admitted.
    package func admitted(_ address: StreamAddress, from remote: SocketAddress?) {
        let (host, path) = (HostKey.of(remote), address.streamPath)
        self.entries.withLock { entries in
            entries.removeAll { $0.action == .publish && $0.host == host && $0.path == path }  // compares StreamPaths
        }
    }

    /// The entries of the last day, newest first.
    package func list(nowMs: Int64 = WallClock.ms) -> [Entry] {
        self.entries.withLock { $0.reversed() }.filter { $0.lastAt > nowMs - Self.keptMs }
    }
}
