import Media
import NIOCore
import Relay
import Rooms

/// The place that a publisher was let into: what it publishes as, and who is to hear how that goes. Any thread.
protocol PublishSeat: AnyObject, Sendable {
    var path: StreamPath { get }
    var roomID: RoomID? { get }
    var takeover: TakeoverRule { get }
    var grace: GracePeriods { get }
    /// Whether what is neither audio nor data is left out.
    var isAudioOnly: Bool { get }
    /// Whether it may be silent from the start.
    var mayBeSilent: Bool { get }
    /// Whether its end leaves alone what else the connection does.
    var endsAlone: Bool { get }
    /// Whether what comes now is to be heard. Asked for each frame.
    var isOpen: Bool { get }

    /// What the stream tells of this publisher, and where to.
    func delegate(_ publisher: ConnectedPublisher) -> any SeatedPublisher
    /// The stream is its publisher's.
    func began(_ stream: Relay.Stream)
    /// A frame was left out, because it is none that belongs here, or the seat is not open.
    func leftOut(_ isMuted: Bool)
    func pauseAnnounced()
    /// Once; the seat is free.
    func ended(_ end: PushEnd)
}

/// One of a connection's publishers, for whoever is on another thread.
struct ConnectedPublisher: Sendable {
    let connection: NIOLoopBound<RTMPConnection>
    let streamID: UInt32

    /// Its pictures are more than what is cached for joiners.
    func cacheOverflowed() { self.connection.eventLoop.execute { self.connection.value.noteCacheOverflow() } }

    /// Its stream lets go of it.
    func ended(_ token: StreamState.Token, _ end: PushEnd) {
        self.connection.eventLoop.execute { self.connection.value.publishEnded(self.streamID, token, end) }
    }
}

/// A publisher that can be let go for a reason.
protocol SeatedPublisher: PublisherDelegate {
    /// Nil: it is none of a client's.
    var publisher: ConnectedPublisher? { get }
    /// It is let go. On the stream's home loop.
    func end(_ token: StreamState.Token, _ end: PushEnd)
}

extension SeatedPublisher {
    var publisher: ConnectedPublisher? { nil }

    func cacheOverflowed() { self.publisher?.cacheOverflowed() }

    func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {
        self.end(token, reason == .takenOver ? .takenOver : .mediaIdle)
    }
}

/// A publisher that a room counts as its own: a connection's, or a link's to another server.
protocol RoomPublisher: SeatedPublisher {
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

/// A room's stream, being pushed.
final class RoomSeat: PublishSeat {
    private let grant: PushGrant
    private let core: ServerCore

    init(_ grant: PushGrant, _ core: ServerCore) {
        self.grant = grant
        self.core = core
        core.activePushes.add(grant)
    }

    var path: StreamPath { self.grant.path }
    var roomID: RoomID? { self.grant.roomID }
    var takeover: TakeoverRule { TakeoverRule(self.core.config.rooms, app: self.grant.path.app) }
    var grace: GracePeriods { GracePeriods(self.grant.policy) }
    var isAudioOnly: Bool { false }
    var endsAlone: Bool { false }
    var mayBeSilent: Bool { false }
    var isOpen: Bool { true }

    func delegate(_ publisher: ConnectedPublisher) -> any SeatedPublisher {
        Delegate(sequence: self.grant.sequence, rooms: self.core.rooms, publisher: publisher)
    }

    func began(_ stream: Relay.Stream) { self.core.publishBegan(stream, self.grant) }
    func leftOut(_ isMuted: Bool) {}
    func pauseAnnounced() { self.core.rooms.pauseAnnounced(self.grant.sequence) }

    func ended(_ end: PushEnd) {
        self.core.activePushes.remove(self.grant)
        self.core.rooms.pushEnded(self.grant.sequence, end)
    }

    /// Brings a stream's word on its publisher to the room registry, and its end to the publisher.
    private final class Delegate: RoomPublisher {
        let sequence: PushSequence
        let rooms: RoomRegistry
        let publisher: ConnectedPublisher?

        init(sequence: PushSequence, rooms: RoomRegistry, publisher: ConnectedPublisher) {
            self.sequence = sequence
            self.rooms = rooms
            self.publisher = publisher
        }

        /// Said to the registry here and now, before the next publisher's media; the connection's own word of it comes too late to count.
        func end(_ token: StreamState.Token, _ end: PushEnd) {
            self.rooms.pushEnded(self.sequence, end)
            self.publisher?.ended(token, end)
        }
    }
}
