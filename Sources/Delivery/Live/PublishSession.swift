import Media
package import NIOCore
package import Relay
package import RoomStore
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
    /// A frame was dropped: it is not audio or, if `isMuted`, the session is not open.
    func leftOut(_ isMuted: Bool)
    func pauseAnnounced()
    /// Ends the session. Called once.
    func ended(_ end: PushEnd)
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
    /// Reports that the stream has released the publisher.
    func ended(_ token: StreamState.Token, _ end: PushEnd)
}

/// A publisher delegate that can be ended for a reason.
package protocol EndablePublisher: PublisherDelegate {
    /// Nil if the publisher is not a client's.
    var publisher: (any ConnectedPublisher)? { get }
    /// Ends the publisher. On the stream's home loop.
    func end(_ token: StreamState.Token, _ end: PushEnd)
}

extension EndablePublisher {
    package var publisher: (any ConnectedPublisher)? { nil }

    package func cacheOverflowed() { self.publisher?.cacheOverflowed() }

    package func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {
        self.end(token, reason == .takenOver ? .takenOver : .mediaIdle)
    }
}

/// A publisher that a room counts as its own: a connection's, or a link's to another server.
package protocol RoomPublisher: EndablePublisher {
    var sequence: PushSequence { get }
    var rooms: RoomRegistry { get }
}

extension RoomPublisher {
    package func publisherActive(_ token: StreamState.Token, _ meter: StreamMeter) {
        var media = PushMedia()
        media.width = meter.video?.width
        media.height = meter.video?.height
        media.videoCodec = meter.video?.codec.name
        media.audioCodec = meter.audio?.codec.name
        self.rooms.mediaArrived(self.sequence, media)
    }

    package func publisherQuiet(_ token: StreamState.Token) { self.rooms.mediaIdle(self.sequence) }
}
