import Access
import Media
package import Relay
package import Rooms
package import Support
import Synchronization

/// Observes plays and pushes as they begin and end, in order for each connection. Called on the connections' event loops: must not block.
package protocol SessionObserver: Sendable {
    /// `viewers`: the stream's viewers now, including this one.
    func playBegan(_ path: String, viewers: Int)
    /// `viewers`: the stream's remaining viewers.
    func playEnded(_ play: FinishedPlay, viewers: Int)
    func pushEnded(_ push: FinishedPush)
}

/// A viewer's stay at one stream, once it is over. A value.
package struct FinishedPlay: Sendable, Equatable {
    /// "app/name"
    package var path: String
    /// The credential's room, if it names one.
    package var room: String?
    package var session: UInt64
    package var user: String?
    /// The client's address, without its port.
    package var address: String
    package var transport: SessionSnapshot.Transport
    /// The client's name, as it sent it.
    package var client: String?
    package var durationMs: Int64
    package var bytes: UInt64
    package var reason: CloseReason
    package var skippedFrames: Int
    /// The viewer's largest observed delay behind live, in milliseconds.
    package var longestBehindMs: Int64

    package init(
        path: String, room: String?, session: UInt64, user: String?, address: String, transport: SessionSnapshot.Transport, client: String?,
        durationMs: Int64, bytes: UInt64, reason: CloseReason, skippedFrames: Int = 0, longestBehindMs: Int64 = 0
    ) {
        self.path = path
        self.room = room
        self.session = session
        self.user = user
        self.address = address
        self.transport = transport
        self.client = client
        self.durationMs = durationMs
        self.bytes = bytes
        self.reason = reason
        self.skippedFrames = skippedFrames
        self.longestBehindMs = longestBehindMs
    }
}

/// A publisher's stay at one stream, once it is over. A value.
package struct FinishedPush: Sendable, Equatable {
    /// "app/name"
    package var path: String
    package var room: String?
    package var session: UInt64
    package var user: String?
    /// The client's address without its port, or the server that a link pulled from.
    package var address: String
    package var source: Source
    package var client: String?
    package var durationMs: Int64
    /// Bytes of media, without the protocol's headers.
    package var bytes: UInt64
    package var end: PushEnd
    /// Codecs and size, as far as they are known.
    package var media = MediaSummary()

    package enum Source: String, Sendable, CaseIterable {
        case rtmp, rtmps, webrtc
        /// A link to another server.
        case pull
    }

    package init(
        path: String, room: String?, session: UInt64, user: String?, address: String, source: Source, client: String?, durationMs: Int64,
        bytes: UInt64, end: PushEnd
    ) {
        self.path = path
        self.room = room
        self.session = session
        self.user = user
        self.address = address
        self.source = source
        self.client = client
        self.durationMs = durationMs
        self.bytes = bytes
        self.end = end
    }
}

extension MediaSummary {
    package init(_ meter: StreamMeter) {
        let video = meter.video
        self.init(width: video?.width, height: video?.height, videoCodec: video?.codec.name, audioCodec: meter.audio?.codec.name)
    }
}

/// Reports of connections about their plays and pushes. Talk is not reported: its voices and mixes are no streams for viewers.
extension LiveStreams {
    /// Call after the viewer was counted.
    package func playBegan(_ stream: Relay.Stream) {
        guard let observer = self.sessionObserver, !TalkStreamName.isTalk(path: stream.path) else { return }
        observer.playBegan(stream.path, viewers: stream.viewerCount)
    }

    /// Call after the viewer was discounted, and before the stream is released. `loop`: the connection's loop, on which this runs.
    package func playEnded(_ stream: Relay.Stream, on loop: LoopContext?, _ play: FinishedPlay) {
        loop?.ended(play.transport, sent: play.bytes)
        guard let observer = self.sessionObserver, !TalkStreamName.isTalk(path: stream.path) else { return }
        observer.playEnded(play, viewers: stream.viewerCount)
    }

    /// Call before the publisher with this token leaves the stream, whose home loop knows the codecs. `seen`: the codecs seen earlier. `loop`: the
    /// connection's loop, on which this runs; nil for a link.
    package func pushEnded(
        _ stream: Relay.Stream, _ token: StreamState.Token, on loop: LoopContext?, seen: MediaSummary?, _ push: FinishedPush
    ) {
        switch push.source {
        case .rtmp: loop?.ended(.rtmp, received: push.bytes)
        case .rtmps: loop?.ended(.rtmps, received: push.bytes)
        case .webrtc: loop?.ended(.webrtc, received: push.bytes)
        case .pull: self.endedPulls.add(push.bytes, ordering: .relaxed)
        }
        guard let observer = self.sessionObserver, !TalkStreamName.isTalk(path: stream.path) else { return }
        stream.home.run { home in
            var whole = push
            whole.media = home.meter(of: stream, token: token).map(MediaSummary.init) ?? seen ?? MediaSummary()
            observer.pushEnded(whole)
        }
    }
}
