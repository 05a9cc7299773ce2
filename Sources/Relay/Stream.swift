package import Health
import Synchronization

/// A name under an app that is being published or waited for. A handle for any thread. The state lives on the home loop; loops with viewers also have
/// what those viewers need.
package final class Stream: Sendable {
    /// "app/name"
    package let path: String
    /// The loop that orders the stream's frames; fixed while the stream exists.
    package let home: RelayLoop
    /// The home loop's part of the stream, while it has one. Touched on that loop only.
    @exclusivity(unchecked) nonisolated(unsafe) var local: HomeStream?
    private let viewers = Atomic<Int>(0)

    init(path: String, home: RelayLoop) {
        self.path = path
        self.home = home
    }

    var id: ObjectIdentifier { ObjectIdentifier(self) }

    /// Viewers on all loops.
    package var viewerCount: Int { self.viewers.load(ordering: .relaxed) }

    /// Counts one more viewer; `false` when there are `limit` already. Pair with ``leaveViewer()``.
    package func enterViewer(limit: Int) -> Bool {
        guard self.viewers.add(1, ordering: .relaxed).newValue > limit else { return true }
        self.leaveViewer()
        return false
    }

    package func leaveViewer() {
        self.viewers.subtract(1, ordering: .relaxed)
    }
}

/// Callbacks from a stream to its publisher, on the home loop.
package protocol PublisherDelegate: AnyObject, Sendable {
    /// The stream drops this publisher. Its frames are ignored from now on.
    func publishEnded(_ token: StreamState.Token, reason: PublishEndReason)
    /// Media arrives: its first audio or video frame, or the first after a silence or pause.
    func publisherActive(_ token: StreamState.Token, _ meter: StreamMeter)
    /// Nothing has arrived for ``GracePeriods/quietMs``.
    func publisherQuiet(_ token: StreamState.Token)
    /// The group of pictures is longer than the cache: joiners wait for the next keyframe. Once for each publisher.
    func cacheOverflowed()
    /// Whether the stream is judged. Streams that the server makes itself, and voices that may be silent, are not.
    var isJudged: Bool { get }
    /// The verdict changed; `former` is the last one reported. At most one call in ten seconds.
    func healthChanged(_ token: StreamState.Token, _ health: StreamHealth, former: StreamVerdict)
    /// The uplink carries too little; the parameter is its rate over the last seconds. At most one call in five seconds.
    func uplinkCarried(bitsPerSecond: Int)
}

extension PublisherDelegate {
    package func publisherActive(_ token: StreamState.Token, _ meter: StreamMeter) {}
    package func publisherQuiet(_ token: StreamState.Token) {}
    package func cacheOverflowed() {}
    package var isJudged: Bool { false }
    package func healthChanged(_ token: StreamState.Token, _ health: StreamHealth, former: StreamVerdict) {}
    package func uplinkCarried(bitsPerSecond: Int) {}
}

package enum PublishEndReason: Sendable, Equatable {
    /// The same identity publishes again, from another connection.
    case takenOver
    /// No media for too long.
    case mediaIdle
}

/// A stream as the API shows it.
package struct StreamSnapshot: Sendable {
    package let path: String
    package let phase: StreamState.Phase
    package let liveForMs: Int64?
    package let meter: StreamMeter
    /// Nil without a publisher that is judged and has sent media.
    package let health: StreamHealth?
    package let viewers: Int
    package let ringBytes: Int
    /// The bytes of the cached pictures with which joiners begin.
    package let cachedBytes: Int
    /// The figures in the publisher's metadata.
    let announced: AnnouncedFigures
    /// The kinds of media that come, or may come yet.
    package let kinds: (audio: Bool, video: Bool)

    /// The frame rate in the publisher's metadata; nil when it has none.
    package var announcedFramesPerSecond: Double? { self.announced.framesPerSecond }
    package var announcedVideoBitsPerSecond: Double? { self.announced.videoBitsPerSecond }
    package var announcedAudioBitsPerSecond: Double? { self.announced.audioBitsPerSecond }
}
