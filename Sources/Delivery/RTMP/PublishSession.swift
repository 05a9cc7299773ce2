import Media
package import NIOCore
package import Relay
package import Rooms
import ServerConfiguration

/// An admitted publisher: its path, its rules and its observers. Any thread.
protocol PublishSession: AnyObject, Sendable {
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
    func delegate(_ publisher: ConnectedPublisher) -> any EndablePublisher
    /// The publisher's claim on the stream was accepted.
    func began(_ stream: Relay.Stream)
    /// A frame was dropped: it is not audio or, if `isMuted`, the session is not open.
    func leftOut(_ isMuted: Bool)
    func pauseAnnounced()
    /// Ends the session. Called once.
    func ended(_ end: PushEnd)
}

/// A connection's publisher, for use on other threads.
package struct ConnectedPublisher: Sendable {
    package let connection: NIOLoopBound<RTMPConnection>
    let streamID: UInt32

    /// Reports that the publisher's pictures exceed the cache for new viewers.
    func cacheOverflowed() { self.connection.eventLoop.execute { self.connection.value.noteCacheOverflow() } }

    /// Reports that the stream has released the publisher.
    package func ended(_ token: StreamState.Token, _ end: PushEnd) {
        self.connection.eventLoop.execute { self.connection.value.publishEnded(self.streamID, token, end) }
    }
}

/// A publisher delegate that can be ended for a reason.
package protocol EndablePublisher: PublisherDelegate {
    /// Nil if the publisher is not a client's.
    var publisher: ConnectedPublisher? { get }
    /// Ends the publisher. On the stream's home loop.
    func end(_ token: StreamState.Token, _ end: PushEnd)
}

extension EndablePublisher {
    package var publisher: ConnectedPublisher? { nil }

    func cacheOverflowed() { self.publisher?.cacheOverflowed() }

    func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {
        self.end(token, reason == .takenOver ? .takenOver : .mediaIdle)
    }
}

/// A publisher that a room counts as its own: a connection's, or a link's to another server.
protocol RoomPublisher: EndablePublisher {
    var sequence: PushSequence { get }
    var rooms: RoomRegistry { get }
}

extension RoomPublisher {
    func publisherActive(_ token: StreamState.Token, _ meter: StreamMeter) {
        var media = PushMedia()
        media.width = meter.video?.width
        media.height = meter.video?.height
        media.videoCodec = meter.video?.codec.name
        media.audioCodec = meter.audio?.codec.name
        self.rooms.mediaArrived(self.sequence, media)
    }

    func publisherQuiet(_ token: StreamState.Token) { self.rooms.mediaIdle(self.sequence) }
}

/// A push to a room's stream.
final class RoomPublishSession: PublishSession {
    private let grant: PushGrant
    private let admission: RoomAdmission

    init(_ grant: PushGrant, _ admission: RoomAdmission) {
        self.grant = grant
        self.admission = admission
        admission.pushes.add(grant)
    }

    var path: StreamPath { self.grant.path }
    var roomID: RoomID? { self.grant.roomID }
    var takeover: TakeoverRule { self.admission.takeover(of: self.grant.path.app) }
    var grace: GracePeriods { GracePeriods(self.grant.policy) }
    var isAudioOnly: Bool { false }
    var endsAlone: Bool { false }
    var mayBeSilent: Bool { false }
    var isOpen: Bool { true }

    func delegate(_ publisher: ConnectedPublisher) -> any EndablePublisher {
        Delegate(sequence: self.grant.sequence, rooms: self.admission.rooms, publisher: publisher)
    }

    func began(_ stream: Relay.Stream) { self.admission.streams.published(stream, self.grant) }
    func leftOut(_ isMuted: Bool) {}
    func pauseAnnounced() { self.admission.rooms.pauseAnnounced(self.grant.sequence) }

    func ended(_ end: PushEnd) {
        self.admission.pushes.remove(self.grant)
        self.admission.rooms.pushEnded(self.grant.sequence, end)
    }

    /// Forwards the stream's events about its publisher to the room registry. The end goes to the publisher too.
    private final class Delegate: RoomPublisher {
        let sequence: PushSequence
        let rooms: RoomRegistry
        let publisher: ConnectedPublisher?

        init(sequence: PushSequence, rooms: RoomRegistry, publisher: ConnectedPublisher) {
            self.sequence = sequence
            self.rooms = rooms
            self.publisher = publisher
        }

        /// Reports the end to the registry at once, before the next publisher's media. The connection's own report comes too late to count.
        func end(_ token: StreamState.Token, _ end: PushEnd) {
            self.rooms.pushEnded(self.sequence, end)
            self.publisher?.ended(token, end)
        }
    }
}
