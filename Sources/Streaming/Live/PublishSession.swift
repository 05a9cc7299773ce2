package import Health
import Media
package import NIOCore
package import Relay
package import Rooms
package import Support

/// An admitted publisher: its path, its rules and its observers. Any thread.
package protocol PublishSession: AnyObject, Sendable {
    var path: StreamPath { get }
    var roomID: RoomID? { get }
    var takeover: TakeoverRule { get }
    var grace: GracePeriods { get }
    /// Whether frames other than audio are dropped.
    var isAudioOnly: Bool { get }
    /// Whether the publisher may send no media from the start.
    var mayBeSilent: Bool { get }
    /// Whether the connection's other roles go on after its end.
    var endsAlone: Bool { get }
    /// Whether frames are accepted now. Asked for each frame.
    var isOpen: Bool { get }

    /// The delegate that receives the stream's events about this publisher.
    func delegate(_ publisher: any ConnectedPublisher) -> any EndablePublisher
    /// The publisher's claim on the stream was accepted.
    func began(_ stream: Relay.Stream)
    /// The codecs and size of the first media; nil before any, and for sessions that do not watch it.
    var firstMedia: MediaSummary? { get }
    /// A frame was dropped: it is not audio or, if `isMuted`, the session is not open.
    func leftOut(_ isMuted: Bool)
    func pauseAnnounced()
    /// Ends the session. Called once.
    func ended(_ end: PushEnd)
}

extension PublishSession {
    package var firstMedia: MediaSummary? { nil }
}

/// A client's publish or play on one message stream of its connection, which may be ended without the rest. Any thread.
package protocol ConnectedRole: Sendable {
    /// The loop that reads the connection.
    var eventLoop: any EventLoop { get }
    /// Ends the role, and the connection if it was the last.
    func end(_ reason: CloseReason, _ what: String)
}

/// A client's publisher. Any thread.
package protocol ConnectedPublisher: ConnectedRole {
    /// Its connection, as the API shows it.
    func snapshot() async -> SessionSnapshot
    /// Reports that the publisher's pictures exceed the cache for new viewers.
    func cacheOverflowed()
    /// Reports what its uplink carried, which is too little.
    func uplinkCarried(bitsPerSecond: Int)
    /// Reports that the stream has released the publisher. `actor` is the caller who ended it, if a call did.
    func ended(_ token: StreamState.Token, _ end: PushEnd, by actor: Actor?)
}

/// A publisher delegate that can be ended for a reason.
package protocol EndablePublisher: PublisherDelegate {
    /// Nil if the publisher is not a client's.
    var publisher: (any ConnectedPublisher)? { get }
    /// Ends the publisher. `actor` is the caller who ended it, if a call did. On the stream's home loop.
    func end(_ token: StreamState.Token, _ end: PushEnd, by actor: Actor?)
}

extension EndablePublisher {
    package var publisher: (any ConnectedPublisher)? { nil }

    package func cacheOverflowed() { self.publisher?.cacheOverflowed() }

    package func uplinkCarried(bitsPerSecond: Int) { self.publisher?.uplinkCarried(bitsPerSecond: bitsPerSecond) }

    package func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {
        self.end(token, reason == .takenOver ? .takenOver : .mediaIdle, by: nil)
    }
}

/// A publisher that a room counts as its own: a connection's, or a link's to another server.
package protocol RoomPublisher: EndablePublisher {
    var sequence: PushSequence { get }
    var rooms: any PushFacts { get }
}

extension RoomPublisher {
    package func publisherActive(_ token: StreamState.Token, _ meter: StreamMeter) {
        self.rooms.mediaArrived(self.sequence, MediaSummary(meter))
    }

    package func publisherQuiet(_ token: StreamState.Token) { self.rooms.mediaIdle(self.sequence) }

    package var isJudged: Bool { true }

    package func healthChanged(_ token: StreamState.Token, _ health: StreamHealth, former: StreamVerdict) {
        self.rooms.healthChanged(self.sequence, HealthRecord(health, former: former))
    }
}

extension HealthRecord {
    init(_ health: StreamHealth, former: StreamVerdict) {
        self.init(
            verdict: health.verdict.rawValue, former: former.rawValue,
            reasons: health.reasons.map { reason in
                HealthRecord.Reason(
                    code: reason.code.rawValue, severity: reason.severity.rawValue, value: reason.value, expected: reason.expected,
                    unit: reason.code.unit, message: reason.message)
            })
    }
}
