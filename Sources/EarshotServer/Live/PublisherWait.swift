import HTTPTypes
import Logging
import NIOCore
import RTMP
import Relay
import Rooms

/// Players over HTTP that come before the publisher.
///
/// RTMP's players wait for as long as they like; a page or a player that is answered 404 gives up. So the request of one whose room exists
/// and waits for a publisher is held for `http.firstWait`, and counts against the limits of connections meanwhile. Everybody else is
/// answered 404 at once, with the time after which to ask again.
extension ServerCore {
    /// Between two looks whether the publisher is there. Milliseconds.
    private static let lookMs = 100
    /// How much longer the second kind of media is waited for, once there is one: an FLV file says at its beginning what it has. Milliseconds.
    private static let secondKindMs: Int64 = 500
    /// Of a 404. Seconds.
    private static let retryAfterSeconds = 5

    /// Returns when the stream can be played; throws what the player is answered if it can not.
    func waitForPublisher(_ play: HTTPPlay) async throws(APIError) {
        let path = play.request.address.path
        if await self.media(of: path) != nil { return }
        guard await self.isAwaited(play.request.address.app, play.request.address.name), self.config.http.firstWaitMs > 0 else {
            throw Self.nobodyPublishes(path)
        }
        let address = play.request.remote?.ipAddress ?? "unknown"
        if let reason = self.admission.enter(address) {
            play.consent.end(reason)
            self.counters.update {
                $0.connectionsAccepted += 1
                $0.closed[reason, default: 0] += 1
            }
            throw APIError(
                AdmissionRefusal(reason: reason, message: "Too many players (limits.connections, limits.connectionsPerAddress)."))
        }
        self.counters.update { $0.playsWaited += 1 }
        defer { self.admission.leave(address) }
        let endMs = LoopSweeper.nowMs + self.config.http.firstWaitMs
        var firstSeenMs: Int64?
        while !self.draining {
            let nowMs = LoopSweeper.nowMs
            if let media = await self.media(of: path) {
                if media.audio, media.video { return }
                if media.audio || media.video {
                    let seenMs = firstSeenMs ?? nowMs
                    if nowMs - seenMs >= Self.secondKindMs { return }
                    firstSeenMs = seenMs
                }
            }
            if self.rooms.playRefusal(path) != nil { break }
            // A stream that is there, if only by its header, is good enough at the end.
            if nowMs >= endMs {
                if firstSeenMs != nil { return }
                break
            }
            // Cancelled: the player has gone.
            do { try await Task.sleep(for: .milliseconds(Self.lookMs)) } catch { break }
        }
        throw Self.nobodyPublishes(path)
    }

    private static func nobodyPublishes(_ path: String) -> APIError {
        var error = APIError.notFound("live stream", path)
        error.headers[.retryAfter] = "\(Self.retryAfterSeconds)"
        return error
    }

    /// Which kinds of media a stream has by now. Nil: nobody publishes it, nor did a moment ago.
    func media(of path: String) async -> (audio: Bool, video: Bool)? {
        await self.onHome(of: path) { home, stream -> (audio: Bool, video: Bool)? in
            guard let snapshot = home.snapshot(of: stream)?.stream, snapshot.phase != .idle else { return nil }
            return (snapshot.meter.audio != nil, snapshot.meter.video != nil)
        } ?? nil
    }

    /// Whether there is a room that such a publisher would be for.
    private func isAwaited(_ app: String, _ name: String) async -> Bool {
        do throws(RegistryError) {
            guard let room = try await self.rooms.room(ofStream: StreamPath(app: app, name: name)) else { return false }
            return !room.state.isTerminal && room.state != .forbidden
        } catch {
            self.log.error("A room could not be read", metadata: ["stream": "\(app)/\(name)", "error": "\(error)"])
            return false
        }
    }
}
