import Health
import HTTPAPI
import Media
import NIOCore
import Packaging
import Relay
import RoomRegistry
import Rooms
import Streaming
import Support

/// A stream with a publisher or viewers, as lists show it.
struct StreamAnswer: Sendable {
    let snapshot: StreamSnapshot
    let path: StreamPath
    let publisher: SessionSnapshot?
    let bytesOut: UInt64
    /// Delay of the viewer that is furthest behind live, in milliseconds; nil without viewers.
    let worstBehindMs: Int64?
    let slowViewers: Int
    /// Nil while nobody watches by WebRTC.
    let webrtc: PictureTreatment?
    let roomID: RoomID?
    /// The node that answers; nil if the registry is not shared.
    let node: String?

    enum State: String, Sendable, CaseIterable {
        case live
        /// Its publisher is away, within the grace period.
        case interrupted
        /// Viewers only.
        case waiting
    }

    var state: State {
        switch self.snapshot.phase {
        case .idle: .waiting
        case .live: .live
        case .grace: .interrupted
        }
    }
}

extension APIServices {
    /// All streams, sorted by path, without their rooms.
    func streamAnswers() async throws -> [StreamAnswer] {
        let streams = try await self.streams.collect { $0.relay.streamSnapshots() }
        let sessions = try await self.streams.collect { $0.sessionSnapshots() }
        var publishers: NameTable<SessionSnapshot> = [:]
        var bytesOut: NameTable<UInt64> = [:]
        var behindMs: NameTable<Int64> = [:]
        var slow: NameTable<Int> = [:]
        for session in sessions {
            for path in session.publishing { publishers[path] = session }
            for viewer in session.viewers {
                bytesOut[viewer.path, default: 0] += viewer.bytesSent
                behindMs[viewer.path] = max(behindMs[viewer.path] ?? 0, viewer.behindMs)
                if viewer.isSlow { slow[viewer.path, default: 0] += 1 }
            }
        }
        return streams.sorted { $0.path < $1.path }.compactMap { stream in
            StreamPath(stream.path).map {
                StreamAnswer(
                    snapshot: stream, path: $0, publisher: publishers[stream.path], bytesOut: bytesOut[stream.path] ?? 0,
                    worstBehindMs: behindMs[stream.path], slowViewers: slow[stream.path] ?? 0,
                    webrtc: self.figures.treatment(stream.path), roomID: nil,
                    node: self.rooms.nodeName)
            }
        }
    }

    /// One stream, without its room; nil when nobody uses it. Queries only the event loops that the stream lives on.
    func streamAnswer(_ path: StreamPath) async -> StreamAnswer? {
        guard let stream = self.streams.registry.find(path.description) else { return nil }
        typealias Found = (at: (stream: StreamSnapshot, loops: [RelayLoop]), publisher: (any ConnectedPublisher)?)
        let found: Found? = await withCheckedContinuation { done in
            stream.home.run { home in
                done.resume(
                    returning: home.snapshot(of: stream).map { ($0, (home.publisher(of: stream) as? any EndablePublisher)?.publisher) })
            }
        }
        guard let found else { return nil }
        var (bytesOut, behindMs, slow): (UInt64, Int64?, Int) = (0, nil, 0)
        for loop in found.at.loops {
            let audience = await withCheckedContinuation { done in loop.run { done.resume(returning: $0.audience(of: stream)) } }
            bytesOut += audience.bytesSent
            slow += audience.slow
            if let worst = audience.worstBehindMs { behindMs = max(behindMs ?? 0, worst) }
        }
        let publisher = await found.publisher?.snapshot()
        return StreamAnswer(
            snapshot: found.at.stream, path: path, publisher: publisher, bytesOut: bytesOut, worstBehindMs: behindMs,
            slowViewers: slow + self.figures.badLines(path.description), webrtc: self.figures.treatment(path.description), roomID: nil,
            node: self.rooms.nodeName)
    }
}

extension StreamAnswer {
    func with(roomID: RoomID?) -> StreamAnswer {
        StreamAnswer(
            snapshot: self.snapshot, path: self.path, publisher: self.publisher, bytesOut: self.bytesOut, worstBehindMs: self.worstBehindMs,
            slowViewers: self.slowViewers, webrtc: self.webrtc, roomID: roomID, node: self.node)
    }

    static let outputType = OutputType<StreamAnswer>.object(
        "Stream",
        [
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("roomId", .nullable(.text), "The room that it belongs to.") { $0.roomID?.rawValue },
            .field("node", .nullable(.text), "The node with these connections; null for a server that is alone.", \.node),
            .field("state", .choice(), "interrupted: the publisher is away, within its grace period. waiting: viewers only.", \.state),
            .field("publisher", .nullable(Self.publisher), "The publisher; null without one.", \.publisher),
            .field("video", .nullable(Self.video), "The video; null without any.") { stream in
                stream.snapshot.meter.video.map { VideoPart(format: $0, meter: stream.snapshot.meter) }
            },
            .field("audio", .nullable(Self.audio), "The audio; null without any.") { stream in
                stream.snapshot.meter.audio.map { AudioPart(format: $0, meter: stream.snapshot.meter) }
            },
            .field(
                "health", .nullable(StreamHealth.outputType),
                "How the stream does; null without a publisher, and for streams that the server makes.", \.snapshot.health),
            .field("viewers", .count, "Connected players.", \.snapshot.viewers),
            .field("uptimeSeconds", .nullable(.seconds), "Seconds since the first push, interruptions included.", \.snapshot.liveForMs),
            .field("bytesIn", .count, "Bytes of media received, earlier pushes included.", \.snapshot.meter.bytesIn),
            .field("bytesOut", .count, "Bytes sent to the present viewers.", \.bytesOut),
            .field(
                "worstBehindMs", .nullable(.count), "Milliseconds behind live of the viewer that is furthest behind; null without viewers.",
                \.worstBehindMs),
            .field(
                "slowViewers", .count,
                "Viewers that were more than 1.5 s behind live by their own fault, or skipped frames, within the last minute.",
                \.slowViewers),
            .field(
                "webrtc", .nullable(.words(PictureTreatment.allCases.map(\.rawValue))),
                "What viewers by WebRTC get of the pictures: as they came (passed), without B-frames (dropped), encoded anew, or none (refused). Null while there are none."
            ) { $0.webrtc?.rawValue },
        ])

    private struct VideoPart: Sendable {
        let format: VideoFormat
        let meter: StreamMeter
    }

    private struct AudioPart: Sendable {
        let format: AudioFormat
        let meter: StreamMeter
    }

    private static let publisher = OutputType<SessionSnapshot>.object(
        "StreamPublisher",
        [
            .field("sessionId", .count, "The id of the publisher's session.", \.id),
            .field("address", .text, "The publisher's address.", \.remote),
            .field("client", .nullable(.text), "The name that the client gives itself.", \.client),
        ])

    private static let video = OutputType<VideoPart>.object(
        "StreamVideo",
        [
            .field("codec", .text, "The codec's name.", \.format.codec.name),
            .field("profile", .nullable(.text), "The profile, if known.", \.format.profile),
            .field("level", .nullable(.text), "The level, if known.", \.format.level),
            .field("width", .nullable(.count), "Pixels.", \.format.width),
            .field("height", .nullable(.count), "Pixels.", \.format.height),
            .field("fps", .number, "Frames per second, measured.", \.meter.framesPerSecond),
            .field("bitsPerSecond", .count, "Bits per second, measured.", \.meter.videoBitsPerSecond),
            .field(
                "keyframeIntervalMs", .nullable(.count), "Milliseconds between the newest two keyframes.", \.meter.keyframeIntervalMs),
        ])

    private static let audio = OutputType<AudioPart>.object(
        "StreamAudio",
        [
            .field("codec", .text, "The codec's name.", \.format.codec.name),
            .field("profile", .nullable(.text), "The profile, if known.", \.format.profile),
            .field("sampleRate", .nullable(.count), "The sample rate in hertz.", \.format.sampleRate),
            .field("channels", .nullable(.count), "The number of channels.", \.format.channels),
            .field("bitsPerSecond", .count, "Bits per second, measured.", \.meter.audioBitsPerSecond),
        ])
}

/// A stream's state by name, whether somebody uses it or not.
struct StreamStateAnswer: Sendable {
    enum State: String, Sendable, CaseIterable { case active, inactive, forbid }

    let path: StreamPath
    let state: State
    let room: Room?
    let ban: StreamBan?
    let stream: StreamAnswer?

    static let outputType = OutputType<StreamStateAnswer>.object(
        "NamedStream",
        [
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("state", .choice(), "active: the stream has a publisher. forbid: the stream is forbidden.", \.state),
            .field("roomId", .nullable(.text), "The room that it belongs to.") { $0.room?.id.rawValue },
            .field("forbid", .nullable(StreamBan.outputType), "The stream's ban; null without one.", \.ban),
            .field("stream", .nullable(StreamAnswer.outputType), "The stream's figures; null unless it is published or played.", \.stream),
        ])
}

extension StreamBan {
    static let outputType = OutputType<StreamBan>.object(
        "StreamBan",
        [
            .field("app", .text, "The app.", \.path.app),
            .field("name", .text, "The stream's name under the app.", \.path.name),
            .field("createdAt", .instant, "When the ban began.", \.createdAt),
            .field("forbiddenUntil", .instant, "When the ban ends.", \.resumeAt),
            .field("reason", .text, "The reason for the ban.", \.reason),
        ])
}
