import FFmpeg
package import Media
import NIOCore
package import Relay
import WebRTC

/// Makes RTP bundles of a stream's frames: H.264 is cut into packets, Opus and G.711 pass, other sound becomes Opus. No clock, no thread of its own.
///
/// Owned by one ``PacketStream``.
package final class PacketMaker {
    /// Why browsers cannot play the stream this way.
    package enum Problem: Sendable, Equatable, CustomStringConvertible {
        /// Pictures whose order differs from that of decoding.
        case reordered
        case video(codec: String)

        package var description: String {
            switch self {
            case .reordered:
                "its encoder uses B-frames, which WebRTC cannot carry: set them to 0 (x264: -bf 0 or -tune zerolatency; OBS: \"bframes=0\","
                    + " or the profile baseline), or play it by HLS, .flv or .mp4"
            case .video(let codec): "its video is \(codec), and WebRTC gets H.264 only: push H.264, or play it by HLS, .flv or .mp4"
            }
        }
    }

    private var packetizer: H264Packetizer?
    private var lengthSize = 4
    private var sound: SoundPackets?
    /// What ``sound`` was made from; made anew at a publisher's return if it failed.
    private var soundHeader: Frame?
    private var awaitsKeyframe = true

    package private(set) var problem: Problem?
    /// Sound that could not be made into packets, in words; each once.
    package private(set) var soundProblem: String?

    /// 90,000ths of a second in a millisecond.
    private static let videoTicks: Int64 = 90

    package init() {}

    /// Takes in items of the stream. Returns what its packets are, in order; frames of the derived stream.
    package func receive(_ items: [TapItem]) -> [Frame] {
        var made: [Frame] = []
        for item in items where self.problem == nil {
            switch item {
            case .prelude(let frames): for frame in frames { self.receive(frame, &made) }
            case .frame(let frame): self.receive(frame, &made)
            case .restarted:
                // Its headers are those in force until others come, which they do only if they differ.
                self.awaitsKeyframe = true
                self.sound?.restart()
                if self.sound == nil, let header = self.soundHeader { self.begin(header) }
            case .ended: return made
            }
        }
        return made
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
        if frame.kind == .audio, self.sound?.fits(frame) == true { return }
        let track: Track
        do throws(FFmpegError) {
            track = try Track(frame)
        } catch {
            if frame.kind == .video, let codec = frame.tag.videoCodec, codec != .avc { self.problem = .video(codec: codec.name) }
            if frame.kind == .audio { self.soundProblem = "\(error)" }
            return
        }
        switch track.codec {
        case .video(.avc):
            do throws(MediaError) {
                let record = try AVCConfiguration(track.extradata)
                self.lengthSize = record.nalLengthSize
                self.packetizer = H264Packetizer(sequenceSets: record.sequenceParameterSets, pictureSets: record.pictureParameterSets)
            } catch {
                // The track was made from the same bytes.
                self.packetizer = nil
            }
        case .video(let codec): self.problem = .video(codec: codec.name)
        case .audio:
            do throws(FFmpegError) {
                self.soundHeader = frame
                self.sound = try SoundPackets(track, of: frame)
                self.soundProblem = nil
            } catch {
                self.sound = nil
                self.soundProblem = "\(error)"
            }
        }
    }

    private func addPicture(_ sample: Sample, _ made: inout [Frame]) {
        guard self.packetizer != nil else { return }
        if self.awaitsKeyframe {
            guard sample.isKeyframe else { return }
            self.awaitsKeyframe = false
        }
        let units = NALWalk.units(sample.payload, from: sample.payload.readerIndex, lengthSize: self.lengthSize)
        guard !H264Packetizer.hasBSlice(units) else {
            self.problem = .reordered
            return
        }
        guard let bundle = self.packetizer?.bundle(units, time: sample.pts * Self.videoTicks, isKeyframe: sample.isKeyframe) else { return }
        let flags: TagInfo.Flags = sample.isKeyframe ? [.coded, .keyframe] : .coded
        made.append(Frame(kind: .video, timestamp: sample.dts, payload: bundle, tag: TagInfo(flags: flags)))
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
