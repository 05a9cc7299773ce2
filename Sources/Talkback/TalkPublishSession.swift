import Access
import NIOCore
import Relay
import Rooms
import Streaming
import Support
import Synchronization
import Talk

/// A talker's place in a channel, from its admission to its end. Any thread.
package final class TalkPublishSession: PublishSession {
    let id: ParticipantID
    /// The credential's user.
    let user: ParticipantID?
    let role: TalkRole
    let session: Int64
    let inbox = TalkInbox()
    private let channel: TalkChannel
    private let hasFloor = Atomic<Bool>(false)
    private let isThrownOut = Atomic<Bool>(false)
    private let state = Mutex(State())

    private struct State {
        var counts = TalkSnapshot.LeftOut()
        var stream: Relay.Stream?
        var connected: (any ConnectedRole)?
        var wasLeftOut = false
    }

    init(_ channel: TalkChannel, _ id: ParticipantID, user: ParticipantID?, role: TalkRole, session: Int64) {
        self.channel = channel
        self.id = id
        self.user = user
        self.role = role
        self.session = session
    }

    /// The session is kept for this long for the same identity after its connection broke. Milliseconds.
    private static let graceMs: Int64 = 3_000

    var path: StreamPath { StreamPath(app: TalkStreamName.app, name: "\(self.channel.roomID)/\(self.id)") }
    var roomID: RoomID? { self.channel.roomID }
    var takeover: TakeoverRule { .sameIdentity }
    var isAudioOnly: Bool { true }
    var endsAlone: Bool { true }
    var mayBeSilent: Bool { true }
    var isOpen: Bool { self.hasFloor.load(ordering: .relaxed) }
    var counts: TalkSnapshot.LeftOut { self.state.withLock { $0.counts } }
    /// The loop that reads its connection, and its stream's home loop.
    var loops: [any EventLoop] {
        self.state.withLock { state in
            [state.connected?.eventLoop, state.stream?.home.eventLoop].compactMap { $0 }
        }
    }
    /// Its role on a connection.
    var connected: (any ConnectedRole)? { self.state.withLock { $0.connected } }

    /// Silence never ends a session: a talker may have nothing to say.
    var grace: GracePeriods {
        var grace = GracePeriods()
        grace.brokenPipeMs = Self.graceMs
        grace.cleanStopMs = 0
        grace.mediaIdleMs = .max / 2
        grace.pausedMs = .max / 2
        grace.quietMs = .max / 2
        grace.dryMs = .max / 2
        return grace
    }

    func setOpen(_ isOpen: Bool) { self.hasFloor.store(isOpen, ordering: .relaxed) }

    /// False once the talker was thrown out, possibly before its publish.
    var mayBegin: Bool { !self.isThrownOut.load(ordering: .acquiring) }

    func throwOut() { self.isThrownOut.store(true, ordering: .releasing) }

    /// Whether throwing this participant out ends the session: by the session's name or its credential's user.
    func isOf(_ participant: ParticipantID) -> Bool { self.id == participant || self.user == participant }

    func delegate(_ publisher: any ConnectedPublisher) -> any EndablePublisher {
        self.state.withLock { $0.connected = publisher }
        return Delegate(publisher)
    }

    func began(_ stream: Relay.Stream) {
        self.state.withLock { $0.stream = stream }
        RelayLoop.add(self.inbox, to: stream)
        self.channel.began(self)
    }

    func leftOut(_ isMuted: Bool) {
        self.state.withLock { state in
            if isMuted { state.counts.muted += 1 } else { state.counts.notAudio += 1 }
            state.wasLeftOut = state.wasLeftOut || isMuted
        }
    }

    /// Whether audio was dropped for lack of the floor since the last call.
    func wasLeftOut() -> Bool {
        self.state.withLock { state in
            defer { state.wasLeftOut = false }
            return state.wasLeftOut
        }
    }

    func pauseAnnounced() {}

    func ended(_ end: PushEnd) {
        let stream = self.state.withLock { state in
            defer { state.stream = nil }
            return state.stream
        }
        if let stream { RelayLoop.remove(self.inbox, from: stream) }
        self.channel.ended(self)
    }

    private final class Delegate: EndablePublisher {
        let publisher: (any ConnectedPublisher)?
        init(_ publisher: any ConnectedPublisher) { self.publisher = publisher }
        func end(_ token: StreamState.Token, _ end: PushEnd, by actor: Actor?) { self.publisher?.ended(token, end, by: actor) }
    }
}
