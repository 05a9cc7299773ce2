import NIOCore
import Relay
package import Rooms
import Synchronization
import Talk

/// What can be done to streams and connections while they run.
extension ServerCore {
    /// Ends the push and tells its publisher why; viewers stay for the grace period unless `endsViewers`. With `sequence` only that push:
    /// whatever came after it stays. False: nobody was publishing.
    @discardableResult
    package func cut(_ path: StreamPath, sequence: PushSequence? = nil, _ end: PushEnd, endsViewers: Bool) async -> Bool {
        await withCheckedContinuation { done in
            self.cutNow(path, sequence: sequence, end, endsViewers: endsViewers) { done.resume(returning: $0) }
        }
    }

    /// The same without waiting: in order with what was called before.
    func cutNow(
        _ path: StreamPath, sequence: PushSequence?, _ end: PushEnd, endsViewers: Bool, done: @escaping @Sendable (Bool) -> Void = { _ in }
    ) {
        guard let stream = self.registry.find(path.description) else { return done(false) }
        stream.home.run { home in
            if let sequence, let publisher = home.publisher(of: stream) as? any RoomPublisher, publisher.sequence != sequence {
                return done(false)
            }
            let evicted = home.evict(stream, endsViewers: endsViewers)
            // Of a stream that is merely over HLS's players read the end in its playlist.
            let reason = self.endOfPlay(path.description)
            if endsViewers, reason != .streamEnded { self.hlsSessions.end(path.description, reason) }
            if let evicted { (evicted.delegate as? any SeatedPublisher)?.end(evicted.token, end) }
            done(evicted != nil)
        }
    }

    /// Why a stream's viewers are let go, when it is not that the stream is over.
    func endOfPlay(_ path: String) -> CloseReason {
        switch self.rooms.playRefusal(path) {
        case .forbidden: .forbidden
        case .none: .streamEnded
        default: .roomEnded
        }
    }

    func announcePause(of stream: Relay.Stream) { RelayLoop.announcePause(stream) }

    /// Ends a connection; false when there is none with this id.
    package func endSession(_ id: UInt64) async -> Bool {
        await self.closeWhere(.kicked, "ended by the API") { $0.id == id } > 0
    }

    /// Ends the connections that play or publish the room's streams as this user. How many. `actor`: whose call it is, for the audit trail.
    @discardableResult
    package func endSessions(of user: String, in room: Room, by actor: Actor? = nil) async -> Int {
        let paths = Set(room.slots.map(\.path.description))
        if let channel = self.talk.find(room.id), let id = try? ParticipantID(user) { _ = channel.kick(id, by: actor) }
        return await self.closeWhere(.kicked, "the user was thrown out of the room") {
            $0.plays(as: user, paths) || $0.publishes(as: user, paths)
        }
    }

    private func closeWhere(
        _ reason: CloseReason, _ detail: String, _ matches: @escaping @Sendable (any LiveConnection) -> Bool
    ) async -> Int {
        var count = 0
        for loop in self.allLoops {
            do {
                count += try await loop.relay.eventLoop.submit { loop.close(reason, detail, where: matches) }.get()
            } catch {
                // A loop that is gone has no connections.
            }
        }
        return count
    }

    /// The last minutes, oldest first; nil when the stream does not exist.
    package func history(of path: StreamPath) async -> [StreamSecond]? {
        guard let stream = self.registry.find(path.description) else { return nil }
        return await withCheckedContinuation { done in
            stream.home.run { home in
                let nowMs = home.nowMs
                let wallMs = self.rooms.now
                done.resume(returning: home.history(of: stream).map { StreamSecond($0, at: wallMs - (nowMs - $0.atMs)) })
            }
        }
    }

    /// Viewers now; from memory.
    package func viewers(of path: StreamPath) -> Int { self.registry.find(path.description)?.viewerCount ?? 0 }

    /// Tells the registry how many watch each room, for its peak.
    package func reportViewers() {
        var byPath: [String: Int] = [:]
        for (path, viewers) in self.registry.viewerCounts() { byPath[path] = viewers }
        var peaks: [RoomID: Int] = [:]
        for grant in self.activePushes.all {
            // A ghost and its successor have a grant each, for the same viewers.
            if let viewers = byPath.removeValue(forKey: grant.path.description) { peaks[grant.roomID, default: 0] += viewers }
        }
        peaks.merge(self.shownPeaks.all) { max($0, $1) }
        if self.rooms.reportViewers(peaks) { self.shownPeaks.forget(peaks) }
    }
}

/// Peaks that answers have shown and the registry has not been told: what was shown once does not fall. Any thread.
final class ShownPeaks: Sendable {
    private let rows = Mutex<[RoomID: Int]>([:])

    /// The larger one of this and what was shown.
    func raise(_ room: RoomID, to online: Int) -> Int {
        self.rows.withLock { rows in
            let peak = max(rows[room] ?? 0, online)
            rows[room] = peak
            return peak
        }
    }

    subscript(room: RoomID) -> Int { self.rows.withLock { $0[room] ?? 0 } }
    var all: [RoomID: Int] { self.rows.withLock { $0 } }
    func forget(_ told: [RoomID: Int]) { self.rows.withLock { rows in rows = rows.filter { $1 > told[$0] ?? 0 } } }
}

/// One second of a stream, for its history.
package struct StreamSecond: Sendable, Equatable {
    /// Milliseconds since 1970.
    package let at: Int64
    package let videoBitsPerSecond: Int
    package let audioBitsPerSecond: Int
    package let framesPerSecond: Double
    /// How unevenly messages arrive: mean deviation of arrival from timestamp, in ms (as RFC 3550 §6.4.1).
    package let arrivalJitterMs: Double
    /// Between the newest two keyframes.
    package let keyframeIntervalMs: Int64?
    package let viewers: Int

    init(_ second: StreamHistory.Second, at: Int64) {
        self.at = at
        self.videoBitsPerSecond = second.videoBitsPerSecond
        self.audioBitsPerSecond = second.audioBitsPerSecond
        self.framesPerSecond = second.framesPerSecond
        self.arrivalJitterMs = second.arrivalJitterMs
        self.keyframeIntervalMs = second.keyframeIntervalMs
        self.viewers = second.viewers
    }
}
