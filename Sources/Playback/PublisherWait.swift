import Access
import HTTPServer
import HTTPTypes
import Listening
import Logging
import NIOCore
import RTMP
import Relay
import Rooms
import ServerConfiguration
import Streaming
import Support

/// Holds HTTP players that arrive before the publisher.
///
/// Players over RTMP wait as long as they like, but a page or player that gets 404 gives up. So if a room waits for a publisher, or a push from the
/// player's address would make the room, the request is held for `http.firstWait`, and counts against the limits of connections meanwhile (a
/// WebSocket's handshake is answered first: ``AwaitingSocket``). All others get 404 at once, with a Retry-After.
extension PlaybackServices {
    /// Milliseconds between two checks for the publisher.
    private static let pollMs = 100
    /// Extra wait in milliseconds for the second kind of media once one has arrived. An FLV file declares both at its beginning.
    private static let secondKindMs: Int64 = 500
    /// Retry-After of a 404, in seconds.
    private static let retryAfterSeconds = 5

    /// Whether the viewer must wait because a room's publisher has not come yet. Throws the player's answer if no room waits for a publisher.
    func mustWait(_ play: HTTPPlay) async throws(APIError) -> Bool {
        let path = play.request.address.path
        if play.listener != nil { return false }
        if await self.streams.media(of: path) != nil { return false }
        guard self.config.http.firstWaitMs > 0, await self.isAwaited(play.request) else {
            throw Self.nobodyPublishes(path)
        }
        return true
    }

    /// Throws the player's answer if there is nothing to play now: HEAD waits for no publisher.
    func checkIsLive(_ play: HTTPPlay) async throws(APIError) {
        guard try await !self.mustWait(play) else { throw Self.nobodyPublishes(play.request.address.path) }
    }

    /// Returns once the stream can be played; throws the player's answer if it cannot. Ends when the player has gone, so that its place in the limits
    /// is free at once. `channel`: the request's.
    func waitForPublisher(_ play: HTTPPlay, on channel: any Channel) async throws(APIError) {
        let waiting = Task { () async -> Result<Void, APIError> in
            do throws(APIError) { return .success(try await self.waitForPublisher(play)) } catch { return .failure(error) }
        }
        channel.whenPeerIsGone { waiting.cancel() }
        try await waiting.value.get()
    }

    /// The same until the task is cancelled.
    func waitForPublisher(_ play: HTTPPlay) async throws(APIError) {
        let path = play.request.address.path
        let id = play.request.session
        if let reason = self.connections.admission.enterPlay(id, HostKey.of(play.request.remote)) {
            play.grant.end(reason)
            throw self.refused(
                AdmissionRefusal(reason: reason, message: "Too many players (limits.connections, limits.connectionsPerAddress)."),
                play.request.address, play.request.remote)
        }
        self.connections.counters.update { $0.playsWaited += 1 }
        self.connections.playerWaits()
        defer {
            self.connections.admission.leave(id)
            self.connections.playerWaitsNoLonger()
        }
        let endMs = LoopSweeper.nowMs + self.config.http.firstWaitMs
        var firstSeenMs: Int64?
        while !self.streams.draining {
            let nowMs = LoopSweeper.nowMs
            if let media = await self.streams.media(of: path) {
                if media.audio, media.video { return }
                if media.audio || media.video {
                    let seenMs = firstSeenMs ?? nowMs
                    if nowMs - seenMs >= Self.secondKindMs { return }
                    firstSeenMs = seenMs
                }
            }
            if let refusal = self.admission.refusal(of: play.pass, playing: path) {
                throw self.refused(refusal, play.request.address, play.request.remote)
            }
            // At the deadline, one kind of media is enough, even if only its header has come.
            if nowMs >= endMs {
                if firstSeenMs != nil { return }
                break
            }
            // Cancelled because the player has gone.
            do { try await Task.sleep(for: .milliseconds(Self.pollMs)) } catch { break }
        }
        if let refusal = self.admission.drainRefusal { throw self.refused(refusal, play.request.address, play.request.remote) }
        throw Self.nobodyPublishes(path)
    }

    private static func nobodyPublishes(_ path: String) -> APIError {
        var error = APIError.notFound("live stream", path)
        error.headers[.retryAfter] = "\(Self.retryAfterSeconds)"
        return error
    }

    /// Whether a room waits for a publisher of this stream, or may be made by one.
    private func isAwaited(_ request: AdmissionRequest) async -> Bool {
        let path = request.address.streamPath
        do throws(RegistryError) {
            guard let room = try await self.rooms.room(ofStream: path) else { return self.admission.mayCreateRoom(request) }
            return !room.state.isTerminal && room.state != .forbidden
        } catch {
            self.log.error("A room could not be read", metadata: ["stream": "\(path)", "error": "\(error)"])
            return false
        }
    }
}
