import FFmpeg
package import Media
import NIOCore
package import Relay
package import ServerConfiguration
package import WebRTC

/// Makes RTP bundles of a stream's frames: pictures are cut into packets, Opus and G.711 pass, other sound becomes Opus. No clock, no thread of its own.
///
/// Owned by one ``PacketStream``.
package final class PacketMaker {
    /// Why browsers cannot play the stream this way.
    package enum Problem: Sendable, Equatable, CustomStringConvertible {
        /// Pictures whose order differs from that of decoding, which the settings do not let be changed.
        case reordered
        /// They would have to be encoded anew, and as many streams as may be are.
        case noEncoder
        /// They cannot be encoded anew.
        case encoding(String)
        case video(codec: String)

        package var description: String {
            switch self {
            case .reordered: "its encoder uses B-frames, which WebRTC cannot carry: \(Self.advice)"
            case .noEncoder:
                "its encoder uses B-frames, which WebRTC cannot carry, and as many streams are encoded anew as may be (webrtc.encoders):"
                    + " \(Self.advice)"
            case .encoding(let why): "its encoder uses B-frames, and its pictures cannot be encoded anew: \(why); \(Self.advice)"
            case .video(let codec):
                "its video is \(codec), and WebRTC gets H.264, HEVC, VP9 and AV1: push one of these, or play it by HLS, .flv or .mp4"
            }
        }

        private static let advice =
            "set them to 0 (x264: -bf 0 or -tune zerolatency; OBS: \"bframes=0\", or the profile baseline), or play it by HLS, .flv or .mp4"
    }

    private let policy: ServerConfig.WebRTC.BFrames
    private let places: EncoderPlaces
    private var pictures: PicturePackets?
    /// What ``PicturePackets/encodesFrom`` is for the batch at hand.
    private var startsFrom: Int64?
    private var sound: SoundPackets?
    /// What ``sound`` was made from; made anew at a publisher's return if it failed.
    private var soundHeader: Frame?

    package private(set) var problem: Problem?
    /// Sound that could not be made into packets, in words; each once.
    package private(set) var soundProblem: String?

    /// Of pictures that come together: a batch of more is old at its beginning, and so much of its end is encoded.
    private static let mostBehindMs: Int64 = 1_000
    private static let keptMs: Int64 = 200

    package init(_ policy: ServerConfig.WebRTC.BFrames = .refuse, _ places: EncoderPlaces = EncoderPlaces(0)) {
        self.policy = policy
        self.places = places
    }

    /// What the packets of pictures have in them; nil: there are none, or it is not known yet whether they are encoded anew.
    package var video: VideoProfile? { self.treatment == .undecided ? nil : self.pictures?.profile }

    /// What is done to the pictures.
    package var treatment: PictureTreatment { self.pictures?.treatment ?? .undecided }

    /// Takes in items of the stream. Returns what its packets are, in order; frames of the derived stream.
    package func receive(_ items: [TapItem]) -> [Frame] {
        var made: [Frame] = []
        self.pictures?.encodesFrom = self.encodesFrom(items)
        self.startsFrom = self.encodesFrom(items)
        for item in items where self.problem == nil {
            switch item {
            case .prelude(let frames): for frame in frames { self.receive(frame, &made) }
            case .frame(let frame): self.receive(frame, &made)
            case .restarted:
                // Its headers are those in force until others come, which they do only if they differ.
                self.pictures?.restart()
                self.sound?.restart()
                if self.sound == nil, let header = self.soundHeader { self.begin(header) }
            case .ended: return made
            }
        }
        return made
    }

    /// Pictures before this are not worth encoding: cached ones, which come at once, and those of an encoder that does not keep up. Nil: all are.
    private func encodesFrom(_ items: [TapItem]) -> Int64? {
        let times = items.lazy.compactMap { item -> Int64? in
            guard case .frame(let frame) = item, frame.kind == .video else { return nil }
            return frame.timestamp
        }
        guard let oldest = times.min(), let newest = times.max(), newest - oldest > Self.mostBehindMs else { return nil }
        return newest - Self.keptMs
    }

    /// Lets go of codecs, of which there are few.
    package func end() {
        self.pictures = nil
        self.sound = nil
    }

    private func receive(_ frame: Frame, _ made: inout [Frame]) {
        // Sound that has failed is not tried again with each run.
        if Track.describes(frame), frame.isSequenceHeader || frame.kind == .video || self.soundProblem == nil { self.begin(frame) }
        guard !frame.isSequenceHeader, !frame.tag.flags.contains(.unusable), let sample = Sample(frame) else { return }
        switch sample.kind {
        case .video: self.addPicture(sample, &made)
        case .audio: self.addSound(sample, &made)
        case .data: break
        }
    }

    /// Reads a sequence header, or a first run of sound without one.
    private func begin(_ frame: Frame) {
        if frame.kind == .video { self.beginPictures(frame) } else if self.sound?.fits(frame) != true { self.beginSound(frame) }
    }

    private func beginPictures(_ frame: Frame) {
        // Some devices repeat their header with each keyframe.
        guard let codec = frame.tag.videoCodec, frame.body != self.pictures?.header else { return }
        do throws(FFmpegError) {
            let pictures = try PicturePackets(frame, self.policy, self.places)
            pictures.encodesFrom = self.startsFrom
            self.pictures = pictures
        } catch {
            // A header of these that cannot be read is followed by another one, or by nothing that decoders could read.
            if ![.avc, .hevc, .vp9, .av1].contains(codec) { self.problem = .video(codec: codec.name) }
        }
    }

    private func beginSound(_ frame: Frame) {
        do throws(FFmpegError) {
            let track = try Track(frame)
            self.soundHeader = frame
            self.sound = try SoundPackets(track, of: frame)
            self.soundProblem = nil
        } catch {
            self.sound = nil
            self.soundProblem = "\(error)"
        }
    }

    private func addPicture(_ sample: Sample, _ made: inout [Frame]) {
        guard let pictures = self.pictures else { return }
        for bundle in pictures.bundles(sample) {
            let flags: TagInfo.Flags = bundle.isKeyframe ? [.coded, .keyframe] : .coded
            made.append(Frame(kind: .video, timestamp: bundle.ms, payload: bundle.payload, tag: TagInfo(flags: flags)))
        }
        self.problem = pictures.problem
    }

    private func addSound(_ sample: Sample, _ made: inout [Frame]) {
        guard let sound = self.sound else { return }
        do throws(FFmpegError) {
            for (ms, bundle) in try sound.bundles(sample) {
                made.append(Frame(kind: .audio, timestamp: ms, payload: bundle, tag: TagInfo(flags: .coded)))
            }
        } catch {
            self.sound = nil
            self.soundProblem = "\(error)"
        }
    }
}
