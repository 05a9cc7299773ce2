import Foundation
import Media
import RTMP
import ServerTestSupport
import TestSupport

/// A push with an ill, or one that is only unusual: tags, and when each is sent.
struct PlantedStream: Sendable {
    let name: String
    /// The reason that is to be named; nil: the stream is to stay good.
    let expected: String?
    private(set) var tags: [FLVTag]
    /// Milliseconds from the start.
    private(set) var times: [UInt32]
    private var metadata: AMF0Value?

    /// From when on the ill is there. What is not there from the start begins after some good seconds.
    static let onset: UInt32 = 6_000

    init(_ name: String, _ expected: String?, _ tags: [FLVTag], metadata: AMF0Value? = nil) {
        self.name = name
        self.expected = expected
        self.tags = tags
        self.times = tags.map(\.timestamp)
        self.metadata = metadata
    }

    /// Sends each tag of the time `ms` at another time.
    func sent(at time: (UInt32) -> UInt32) -> PlantedStream {
        var changed = self
        changed.times = self.times.map(time)
        return changed
    }

    /// Changes each tag, or leaves it out.
    func changed(_ change: (FLVTag) -> FLVTag?) -> PlantedStream {
        let kept = zip(self.tags, self.times).compactMap { tag, time in change(tag).map { (tag: $0, time: time) } }
        var changed = self
        changed.tags = kept.map(\.tag)
        changed.times = kept.map(\.time)
        return changed
    }

    struct Sent: Sendable {
        let lateness: PacedSender.Lateness
        /// Data messages from the server.
        let heard: [FLVTag]
    }

    /// Publishes to live/NAME until all is sent or the task is cancelled.
    func publish(to server: TestServer) async throws -> Sent {
        let client = try await TagClient.publish(to: server, "live/\(self.name)")
        if let metadata = self.metadata { try await client.setMetadata(metadata) }
        let lateness = try await PacedPublisher(client).send(self.tags, at: self.times)
        await client.close()
        return Sent(lateness: lateness, heard: client.tags.filter { $0.kind == .data })
    }

    // MARK: All of them

    private static let seconds = 40

    private static func clip(_ video: [String]?, audio: [String]? = Fixture.aac, rate: Int = 25) async throws -> [FLVTag] {
        try FLVTag.media(of: try await Fixture.flv(video: video, audio: audio, seconds: Self.seconds, size: "160x120", rate: rate))
    }

    private static let baseline = ["-c:v", "libx264", "-profile:v", "baseline", "-g", "50"]

    static func ills() async throws -> [PlantedStream] {
        let usual = try await Self.clip(Self.baseline)
        let longGroups = ["-c:v", "libx264", "-profile:v", "baseline", "-g", "500", "-keyint_min", "500", "-sc_threshold", "0"]
        let silence: [UInt8] = [0xAF, 1, 0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C]
        var pictures = 0
        return [
            // An uplink of 440 kbit/s for 670.
            PlantedStream("throttled", "media_behind_clock", usual).sent {
                $0 < Self.onset ? $0 : Self.onset + ($0 - Self.onset) * 670 / 440
            },
            PlantedStream("gop", "keyframe_interval_long", try await Self.clip(longGroups)),
            PlantedStream("skew", "av_skew", usual).changed { $0.kind == .audio ? $0.later(by: 3_000) : $0 },
            PlantedStream("fps", "fps_low", usual).changed { tag in
                guard tag.kind == .video, tag.timestamp >= Self.onset + 2_000 else { return tag }
                pictures += 1
                return tag.payload.first == 0x17 || pictures % 4 == 0 ? tag : nil
            },
            PlantedStream("jump", "timestamp_jump", usual).changed { $0.timestamp < Self.onset ? $0 : $0.later(by: 90_000) },
            PlantedStream("silent", "audio_silent", usual).changed { tag in
                tag.kind == .audio && !tag.isSequenceHeader ? .audio(tag.timestamp, silence) : tag
            },
            PlantedStream("stopped", "audio_stopped", usual).changed { $0.kind == .audio && $0.timestamp >= Self.onset ? nil : $0 },
            // Nothing for two seconds of each four.
            PlantedStream("stalls", "uplink_stalls", usual).sent { ms in
                ms >= Self.onset && ms % 4_000 < 2_000 ? ms / 4_000 * 4_000 + 2_000 : ms
            },
            PlantedStream(
                "rate", "video_bitrate_mismatch", usual,
                metadata: ["videocodecid": 7, "audiocodecid": 10, "videodatarate": 12, "audiodatarate": 128, "framerate": 25]),
            PlantedStream("reordered", "b_frames", try await Self.clip(["-c:v", "libx264", "-profile:v", "main", "-bf", "2", "-g", "50"])),
        ]
    }

    /// Streams as OBS, phones, screens and microphones send them.
    static func healthy() async throws -> [PlantedStream] {
        let usual = try await Self.clip(Self.baseline)
        let announced: AMF0Value = ["videocodecid": 7, "audiocodecid": 10, "width": 160, "height": 120, "framerate": 25]
        var pictures = 0
        var dark = 0
        return [
            PlantedStream("usual", nil, usual, metadata: announced),
            // Sound first, keyframes each four seconds, a rate that changes.
            PlantedStream(
                "phone", nil, try await Self.clip(["-c:v", "libx264", "-profile:v", "baseline", "-g", "100"]), metadata: announced
            ).changed { tag in
                guard tag.kind == .video, !tag.isSequenceHeader else { return tag }
                if tag.timestamp < 4_000 { return nil }
                pictures += 1
                return tag.payload.first != 0x17 && tag.timestamp / 5_000 % 2 == 1 && pictures % 3 == 0 ? nil : tag
            },
            PlantedStream(
                "screen", nil, try await Self.clip(["-c:v", "libx264", "-profile:v", "baseline", "-g", "4"], audio: nil, rate: 2),
                metadata: ["videocodecid": 7, "framerate": 30, "videodatarate": 3_000]),
            PlantedStream("sound", nil, usual.filter { $0.kind == .audio }),
            PlantedStream("picture", nil, usual.filter { $0.kind == .video }, metadata: ["videocodecid": 7, "width": 160]),
            // OBS's own settings: 30 frames a second, B-frames, keyframes each two seconds. The B-frames are worth a note, no more.
            PlantedStream(
                "studio", nil, try await Self.clip(["-c:v", "libx264", "-profile:v", "main", "-bf", "2", "-g", "60"], rate: 30),
                metadata: ["videocodecid": 7, "audiocodecid": 10, "framerate": 30]),
            PlantedStream(
                "sixty", nil, try await Self.clip(["-c:v", "libx264", "-profile:v", "baseline", "-g", "120"], rate: 60),
                metadata: ["videocodecid": 7, "framerate": 60]),
            // A mobile network hands over what it has five times a second.
            PlantedStream("bursts", nil, usual, metadata: announced).sent { $0 / 200 * 200 },
            // A camera in the dark takes longer for some of its pictures.
            PlantedStream("dark", nil, usual, metadata: announced).changed { tag in
                guard tag.kind == .video, !tag.isSequenceHeader, tag.payload.first != 0x17 else { return tag }
                dark += 1
                return dark % 5 == 0 ? nil : tag
            },
            // The microphone is ready a while after the camera.
            PlantedStream("microphone", nil, usual, metadata: announced).changed { tag in
                tag.kind == .audio && !tag.isSequenceHeader && tag.timestamp < 800 ? nil : tag
            },
        ]
    }
}
