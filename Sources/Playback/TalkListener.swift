import NIOCore
import Streaming
import Support

/// A talk listener over HTTP, as its channel sees it. The channel may end it before its viewer exists. Any thread, unless noted.
final class TalkListener: ConnectedRole {
    private struct State {
        weak var viewer: (any LiveConnection)?
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
    func begin(_ viewer: any LiveConnection) -> (reason: CloseReason, what: String)? {
        self.state.value.viewer = viewer
        return self.state.value.end
    }
}
