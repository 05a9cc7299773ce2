package import Relay
package import Rooms
import ServerConfiguration
import Synchronization

/// A push to a room's stream.
package final class RoomPublishSession: PublishSession {
    private let grant: PushGrant
    private let admission: RoomAdmission
    private let media = SeenMedia()

    init(_ grant: PushGrant, _ admission: RoomAdmission) {
        self.grant = grant
        self.admission = admission
        admission.pushes.add(grant)
    }

    package var path: StreamPath { self.grant.path }
    package var roomID: RoomID? { self.grant.roomID }
    package var takeover: TakeoverRule { self.admission.takeover(of: self.grant.path.app) }
    package var grace: GracePeriods { GracePeriods(self.grant.policy) }
    package var isAudioOnly: Bool { false }
    package var endsAlone: Bool { false }
    package var mayBeSilent: Bool { false }
    package var isOpen: Bool { true }

    package func delegate(_ publisher: any ConnectedPublisher) -> any EndablePublisher {
        Delegate(self.grant, rooms: self.admission.rooms, publisher: publisher, media: self.media)
    }

    package var firstMedia: MediaSummary? { self.media.seen }

    package func began(_ stream: Relay.Stream) {
        if self.grant.returns > 0 { self.admission.rooms.pushReturned(self.grant) }
        self.admission.streams.published(stream, self.grant)
    }

    package func leftOut(_ isMuted: Bool) {}
    package func pauseAnnounced() { self.admission.rooms.pauseAnnounced(self.grant.sequence) }

    package func ended(_ end: PushEnd) {
        self.admission.pushes.remove(self.grant)
        self.admission.rooms.pushEnded(self.grant.sequence, end, returns: self.grant.returns)
    }

    /// Forwards the stream's events about its publisher to the room registry, and the end to the publisher too.
    private final class Delegate: RoomPublisher {
        let sequence: PushSequence
        let rooms: any PushFacts
        let publisher: (any ConnectedPublisher)?
        private let returns: Int
        private let media: SeenMedia

        init(_ grant: PushGrant, rooms: any PushFacts, publisher: any ConnectedPublisher, media: SeenMedia) {
            self.sequence = grant.sequence
            self.returns = grant.returns
            self.rooms = rooms
            self.publisher = publisher
            self.media = media
        }

        func publisherActive(_ token: StreamState.Token, _ meter: StreamMeter) {
            let media = MediaSummary(meter)
            self.media.saw(media)
            self.rooms.mediaArrived(self.sequence, media)
        }

        /// Reports the end to the registry at once, before the next publisher's media. The connection's own report comes too late to count.
        func end(_ token: StreamState.Token, _ end: PushEnd, by actor: Actor?) {
            self.rooms.pushEnded(self.sequence, end, returns: self.returns)
            self.publisher?.ended(token, end, by: actor)
        }
    }

    /// The push's codecs, kept for its end: a successor that took the stream over has already replaced them in the stream. Any thread.
    private final class SeenMedia: Sendable {
        private let media = Mutex<MediaSummary?>(nil)

        var seen: MediaSummary? { self.media.withLock { $0 } }
        func saw(_ media: MediaSummary) { self.media.withLock { $0 = media } }
    }
}
