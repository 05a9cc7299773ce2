package import Access
import Listening
import NIOCore
import RTMP
package import Relay
import Rooms
package import Support
import Synchronization

/// A viewer's stay at one stream, over whatever protocol: from the last checks, by way of its place among the stream's viewers, to the report of its
/// end. ``RoomAdmission/begin(_:by:client:on:)`` makes it. Runs on the loop that it was begun on, unless noted.
package final class PlaySession: Sendable {
    /// What a viewer had received when it ended.
    package struct Figures: Sendable {
        package var bytes: UInt64
        package var skippedFrames = 0
        /// The largest observed delay behind live, in milliseconds.
        package var longestBehindMs: Int64 = 0

        package init(bytes: UInt64, skippedFrames: Int = 0, longestBehindMs: Int64 = 0) {
            self.bytes = bytes
            self.skippedFrames = skippedFrames
            self.longestBehindMs = longestBehindMs
        }

        package init(_ viewer: Viewer) {
            self.init(bytes: viewer.bytesSent, skippedFrames: viewer.gate.skippedFrames, longestBehindMs: viewer.longestBehindMs)
        }
    }

    package let grant: PlayGrant
    /// The stream that the play counts for, in whatever form the viewer gets it.
    package let stream: Relay.Stream
    private let transport: SessionSnapshot.Transport
    private let client: String?
    private let loop: LoopContext
    private let streams: LiveStreams
    private let beganMs: Int64
    private let isOver = Atomic<Bool>(false)

    /// Characters of a client's name that are kept.
    package static let longestClient = 200

    fileprivate init(
        _ grant: PlayGrant, _ stream: Relay.Stream, _ transport: SessionSnapshot.Transport, _ client: String?, _ loop: LoopContext,
        _ streams: LiveStreams
    ) {
        self.grant = grant
        self.stream = stream
        self.transport = transport
        self.client = client
        self.loop = loop
        self.streams = streams
        self.beganMs = loop.relay.nowMs
    }

    /// Any thread.
    package var pass: AdmissionPass { self.grant.pass }
    package var request: AdmissionRequest { self.grant.request }

    /// Gives the place up, and reports the end to statistics and the back end. Detach the viewer first. Later calls do nothing.
    package func end(_ reason: CloseReason, _ figures: Figures) {
        guard !self.isOver.exchange(true, ordering: .relaxed) else { return }
        self.stream.leaveViewer()
        self.streams.playEnded(
            self.stream, on: self.loop,
            FinishedPlay(
                path: self.stream.path, room: self.pass.room, session: self.request.session, user: self.pass.user,
                address: self.request.remote?.ipAddress ?? "unknown", transport: self.transport, client: self.client,
                durationMs: self.loop.relay.nowMs - self.beganMs, bytes: figures.bytes, reason: reason,
                skippedFrames: figures.skippedFrames, longestBehindMs: figures.longestBehindMs))
        self.streams.registry.release(self.stream)
        self.grant.end(reason)
    }
}

extension RoomAdmission {
    /// Why an admitted viewer may not play the stream, as things are now: it is forbidden, its room is closed, or the user was thrown out. Changes
    /// while hooks are asked and publishers waited for. From memory; any thread.
    package func refusal(of pass: AdmissionPass, playing path: String) -> AdmissionRefusal? {
        switch self.rooms.playRefusal(path) {
        case .forbidden: .forbidden(path, self.rooms.playBan(path))
        case .some: AdmissionRefusal(reason: .roomClosed, message: "The room of \(path) is closed.")
        case nil: self.keptOut(pass, of: path)
        }
    }

    /// Begins a play: checks a last time, and takes a place among the stream's viewers. Throws the refusal, after which the grant has ended.
    /// `loop`: the one that serves the viewer, on which this runs.
    package func begin(
        _ grant: PlayGrant, by transport: SessionSnapshot.Transport, client: String?, on loop: LoopContext, _ connections: Connections
    ) throws(AdmissionRefusal) -> PlaySession {
        let path = grant.request.address.path
        if let refusal = self.drainRefusal ?? self.refusal(of: grant.pass, playing: path) {
            grant.end(refusal.reason)
            throw refusal
        }
        let limit = self.viewersPerStream
        let stream = self.streams.registry.acquire(path, on: loop.relay)
        guard stream.enterViewer(limit: limit) else {
            self.streams.registry.release(stream)
            connections.counters.limits.hit(.viewersPerStream)
            grant.end(.tooManyViewers)
            throw AdmissionRefusal(
                reason: .tooManyViewers, message: "\(path) already has its maximum of \(limit) viewers (limits.viewersPerStream).")
        }
        connections.counters.update { $0.playsStarted += 1 }
        self.streams.playBegan(stream)
        return PlaySession(grant, stream, transport, client.map { String($0.prefix(PlaySession.longestClient)) }, loop, self.streams)
    }
}
