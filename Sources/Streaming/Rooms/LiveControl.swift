package import Logging
import NIOCore
import Relay
package import Rooms
package import Support
import Synchronization

/// Operations on live streams and connections, and execution of the room registry's decisions about them. Any thread.
package final class LiveControl: Sendable {
    let rooms: any LiveRooms
    let streams: LiveStreams
    private let pushes: ActivePushes
    package let shownPeaks = ShownPeaks()
    let log: Logger
    /// Throttles the log lines of rooms.
    let roomFlood = LogRateLimiter()
    let eventObservers = Mutex<[@Sendable ([RoomEvent]) -> Void]>([])
    let markObservers = Mutex<[@Sendable ([EventMark]) -> Void]>([])
    let outcomeObservers = Mutex<[@Sendable ([RoomOutcome]) -> Void]>([])
    private let enders = Mutex(Enders())

    private struct Enders {
        var play: [@Sendable (String, CloseReason) -> Void] = []
        var member: [@Sendable (RoomID, String, Actor?) -> Void] = []
    }

    package init(_ rooms: any LiveRooms, _ streams: LiveStreams, _ pushes: ActivePushes, log: Logger) {
        self.rooms = rooms
        self.streams = streams
        self.pushes = pushes
        self.log = log
    }

    /// Adds a callback that ends plays without a socket of their own (HLS sessions) when a stream may no longer be played. Call before the ports
    /// open.
    package func whenPlaysEnd(_ body: @escaping @Sendable (String, CloseReason) -> Void) { self.enders.withLock { $0.play.append(body) } }

    /// Adds a callback that ends a user's other activities when the user is thrown out of a room. Call before the ports open.
    package func whenKicked(_ body: @escaping @Sendable (RoomID, String, Actor?) -> Void) {
        self.enders.withLock { $0.member.append(body) }
    }

    // MARK: Streams

    /// Ends the push and sends its publisher the reason; viewers stay for the grace period unless `endsViewers`. With `sequence` it ends only that
    /// push, not a later one. Returns false if nobody was publishing.
    @discardableResult
    package func cut(
        _ path: StreamPath, sequence: PushSequence? = nil, _ end: PushEnd, endsViewers: Bool, by actor: Actor? = nil
    ) async -> Bool {
        await withCheckedContinuation { done in
            self.cutNow(path, sequence: sequence, end, endsViewers: endsViewers, by: actor) { done.resume(returning: $0) }
        }
    }

    /// Ends the stream's push for a caller, whom its events name. Returns false if nobody was publishing.
    package func drop(_ path: StreamPath, by actor: Actor) async -> Bool {
        let running = await self.streams.onHome(of: path.description) { home, stream in
            (home.publisher(of: stream) as? any RoomPublisher)?.sequence
        }
        var isEnded = false
        // Notify the room first: the publisher's own report lacks the caller's name, and is ignored once the push has ended.
        if let running, let sequence = running {
            do {
                isEnded = try await self.rooms.drop(sequence, by: actor)
            } catch {
                self.notStored("A push is dropped, but the store does not name the caller", actor, error)
            }
            // Another publisher may have the stream by now; that publisher goes on.
            return await self.cut(path, sequence: sequence, .dropped, endsViewers: false, by: actor) || isEnded
        }
        return await self.cut(path, .dropped, endsViewers: false, by: actor)
    }

    private func notStored(_ message: Logger.Message, _ actor: Actor, _ error: any Error) {
        self.log.warning(message, metadata: ["by": "\(actor.name)", "error": "\(error)"])
    }

    /// The same without waiting; calls take effect in order.
    func cutNow(
        _ path: StreamPath, sequence: PushSequence?, _ end: PushEnd, endsViewers: Bool, by actor: Actor? = nil,
        done: @escaping @Sendable (Bool) -> Void = { _ in }
    ) {
        guard let stream = self.streams.registry.find(path.description) else { return done(false) }
        stream.home.run { home in
            if let sequence, let publisher = home.publisher(of: stream) as? any RoomPublisher, publisher.sequence != sequence {
                return done(false)
            }
            let evicted = home.evict(stream, endsViewers: endsViewers)
            // When a stream merely ends, HLS players read that in the playlist.
            let reason = CloseReason(endOfPlay: self.rooms.playRefusal(path.description))
            if endsViewers, reason != .streamEnded {
                for end in self.enders.withLock({ $0.play }) { end(path.description, reason) }
            }
            if let evicted { (evicted.delegate as? any EndablePublisher)?.end(evicted.token, end, by: actor) }
            done(evicted != nil)
        }
    }

    // MARK: Connections

    /// Ends a connection for a caller, whom its events name; returns false when none has this id.
    package func endSession(_ id: UInt64, by actor: Actor) async -> Bool {
        guard let session = await self.session(id) else { return false }
        do {
            // Notify the room first: the connection's own report of its pushes' end lacks the caller's name, and is then ignored.
            try await self.rooms.kick(
                SessionKick(
                    sessionID: id, transport: session.transport.rawValue, clientAddress: session.remote,
                    publishing: session.publishing.compactMap(StreamPath.init), playing: session.viewers.compactMap { StreamPath($0.path) }),
                by: actor)
        } catch {
            self.notStored("A connection is ended, but the store does not name the caller", actor, error)
        }
        await self.closeWhere(.kicked, "ended by \(actor.name)") { $0.id == id }
        return true
    }

    /// The connection with this id; nil if there is none.
    package func session(_ id: UInt64) async -> SessionSnapshot? {
        for loop in self.streams.allLoops {
            // A loop that is gone has no connections.
            if let found = try? await loop.relay.eventLoop.submit({ loop.sessionSnapshot(of: id) }).get() { return found }
        }
        return nil
    }

    /// Ends the user's connections that play or publish the room's streams; returns their number. `actor` is the caller, for the audit
    /// trail.
    @discardableResult
    package func endSessions(of user: String, in room: Room, by actor: Actor? = nil) async -> Int {
        let paths = Set(room.slots.map(\.path.description.exact))
        for end in self.enders.withLock({ $0.member }) { end(room.id, user, actor) }
        return await self.closeWhere(.kicked, "the user was kicked from the room\(actor.map { " by \($0.name)" } ?? "")") {
            $0.plays(as: user, paths) || $0.publishes(as: user, paths)
        }
    }

    @discardableResult
    private func closeWhere(
        _ reason: CloseReason, _ detail: String, _ matches: @escaping @Sendable (any LiveConnection) -> Bool
    ) async -> Int {
        var count = 0
        for loop in self.streams.allLoops {
            do {
                count += try await loop.relay.eventLoop.submit { loop.close(reason, detail, where: matches) }.get()
            } catch {
                // A loop that is gone has no connections.
            }
        }
        return count
    }

    // MARK: History

    /// The last minutes, oldest first; nil when the stream does not exist.
    package func history(of path: StreamPath) async -> [StreamSecond]? {
        guard let stream = self.streams.registry.find(path.description) else { return nil }
        return await withCheckedContinuation { done in
            stream.home.run { home in
                let nowMs = home.nowMs
                let wallMs = self.rooms.now
                done.resume(returning: home.history(of: stream).map { StreamSecond($0, at: wallMs - (nowMs - $0.atMs)) })
            }
        }
    }

    /// Reports each room's viewers to the registry, for the peak.
    package func reportViewers() {
        var byPath: NameTable<Int> = [:]
        for (path, viewers) in self.streams.registry.viewerCounts() { byPath[path] = viewers }
        var peaks: [RoomID: Int] = [:]
        for grant in self.pushes.all {
            // A ghost and its successor have a grant each, but the same viewers.
            if let viewers = byPath.removeValue(forKey: grant.path.description) { peaks[grant.roomID, default: 0] += viewers }
        }
        peaks.merge(self.shownPeaks.all) { max($0, $1) }
        if self.rooms.reportViewers(peaks) { self.shownPeaks.forget(peaks) }
    }
}

/// Peaks that responses have shown before the registry knew them: a shown peak never falls. Any thread.
package final class ShownPeaks: Sendable {
    private let rows = Mutex<[RoomID: Int]>([:])

    /// Raises and returns the shown peak.
    package func raise(_ room: RoomID, to online: Int) -> Int {
        self.rows.withLock { rows in
            let peak = max(rows[room] ?? 0, online)
            rows[room] = peak
            return peak
        }
    }

    package subscript(room: RoomID) -> Int { self.rows.withLock { $0[room] ?? 0 } }
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
    /// Jitter of message arrival: mean deviation of arrival from timestamp, in ms (as RFC 3550 §6.4.1).
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
