import Access
import Delivery
import HTTPServer
import HTTPTypes
import NIOCore
import RTMP
import Rooms
import Support

/// A talk listener over HTTP, as its channel sees it. The channel may end it before its viewer exists. Any thread, unless noted.
final class TalkListener: ConnectedRole {
    private struct State {
        weak var viewer: LiveViewer?
        /// The channel's reason for ending it before it had a viewer.
        var end: (reason: CloseReason, what: String)?
    }

    let eventLoop: any EventLoop
    private let state: NIOLoopBoundBox<State>

    /// `eventLoop` is the one of the request's connection.
    init(on eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
        self.state = .makeBoxSendingValue(State(), eventLoop: eventLoop)
    }

    func end(_ reason: CloseReason, _ what: String) {
        self.eventLoop.execute {
            if let viewer = self.state.value.viewer { return viewer.close(reason, detail: what) }
            self.state.value.end = (reason, what)
        }
    }

    /// Starts the play, or returns the end that came before it. On the event loop.
    func begin(_ viewer: LiveViewer) -> (reason: CloseReason, what: String)? {
        self.state.value.viewer = viewer
        return self.state.value.end
    }
}

/// Admission of talk listeners over HTTP.
extension PlaybackServices {
    /// Checks name and credential, and takes a place in the room's channel, as for RTMP. Throws the answer for a refused listener.
    func admitListener(
        _ address: StreamAddress, from remote: SocketAddress?, on eventLoop: any EventLoop
    ) async throws(APIError) -> HTTPPlay {
        do throws(AdmissionRefusal) {
            return try await self.listener(address, from: remote, on: eventLoop)
        } catch {
            throw self.refused(error, address, remote)
        }
    }

    private func listener(
        _ address: StreamAddress, from remote: SocketAddress?, on eventLoop: any EventLoop
    ) async throws(AdmissionRefusal) -> HTTPPlay {
        let place: TalkStreamName
        do throws(TalkStreamNameError) { place = try TalkStreamName(address) } catch {
            throw AdmissionRefusal(reason: .badName, message: "\(address.path): \(error).")
        }
        if let refusal = self.admission.drainRefusal { throw refusal }
        let request = AdmissionRequest(
            .listener, action: .play, address: TalkStreamName.canonical(address), remote: remote, session: self.connections.nextSessionID())
        let checked = try self.talk.check(request, push: nil).get().pass
        if let refusal = await self.admission.memoryRefusal(place.path, isPublish: false) { throw refusal }
        let role = TalkListener(on: eventLoop)
        // Browsers play AAC in every container.
        let (pass, listening) = try await self.talk.admitListener(place, request, checked, codec: .aac, role: role).get()
        return HTTPPlay(request: request, grant: PlayGrant(request, pass, self.admission.rules, listening), listener: role)
    }

    /// Returns once there is something to hear: a mix begins with its first listener. Throws the answer if nobody speaks under the name.
    func waitForTalk(_ play: HTTPPlay) async throws(APIError) {
        let address = play.request.address
        let isMix = TalkStreamName.isMix(StreamPath(app: address.app, name: address.name))
        if isMix { await self.waitUntilLive(address.path) }
        guard await self.streams.media(of: address.path) == nil else { return }
        var error = APIError.notFound("voice", address.path)
        if isMix { error = .unavailable("\(address.path) does not begin; try again in a moment.") }
        error.headers[.retryAfter] = "1"
        throw error
    }
}
