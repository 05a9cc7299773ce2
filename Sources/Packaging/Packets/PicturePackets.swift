import FFmpeg
import Media
import NIOCore
import ServerConfiguration
import WebRTC

/// Makes RTP bundles of one track of pictures. Players by WebRTC show pictures in the order in which they are decoded, so B-frames, which are shown before one
/// that was decoded earlier, are left out, or the whole is encoded anew.
///
/// Owned by one ``PacketMaker``.
final class PicturePackets {
    /// The sequence header's body.
    let header: ByteBuffer
    /// Pictures that are shown before this are decoded, but not encoded. Milliseconds; nil: all are encoded.
    var encodesFrom: Int64?
    private let form: Form
    private let policy: ServerConfig.WebRTC.BFrames
    private let places: EncoderPlaces
    private var packetizer: any VideoPacketizer
    /// When the picture is shown that is shown last of those that came. Milliseconds.
    private var newestMs: Int64?
    private var encoding: (transcoder: PictureTranscoder, place: EncoderPlaces.Place)?
    /// Pictures since the keyframe, while it is not known whether there are B-frames among them.
    private var held: [Sample] = []
    private var awaitsKeyframe = true

    private(set) var treatment = PictureTreatment.undecided
    private(set) var problem: PacketMaker.Problem?

    /// So many pictures without a B-frame behind a keyframe that is shown later than it is decoded: the encoder has none.
    private static let mostHeld = 16
    /// 90,000ths of a second in a millisecond.
    private static let ticks: Int64 = 90
    /// A time that is more behind the newest one is a leap, not a B-frame's. Milliseconds.
    private static let leapMs: Int64 = 2_000

    /// What a picture's bytes are, and how it is told that it is a B-frame.
    private enum Form {
        /// NAL units with lengths of so many bytes; by the slices' types.
        case h264(Track, lengthSize: Int)
        /// By their times.
        case h265(Track, lengthSize: Int, layers: Int)
        /// As packetizers take it; there are none.
        case whole
    }

    /// `frame`: a sequence header. Throws for one that cannot be read, and for codecs that are not sent by WebRTC.
    init(_ frame: Frame, _ policy: ServerConfig.WebRTC.BFrames, _ places: EncoderPlaces) throws(FFmpegError) {
        self.header = frame.body
        self.policy = policy
        self.places = places
        // Its header does not have what a track has, and packets do not need it.
        guard frame.tag.videoCodec != .vp9 else {
            (self.form, self.packetizer, self.treatment) = (.whole, VP9Packetizer(), .passed)
            return
        }
        let track = try Track(frame)
        do throws(MediaError) {
            switch track.codec {
            case .video(.avc):
                let record = try AVCConfiguration(track.extradata)
                self.form = .h264(track, lengthSize: record.nalLengthSize)
                self.packetizer = H264Packetizer(
                    sequenceSets: record.sequenceParameterSets, pictureSets: record.pictureParameterSets)
            case .video(.hevc):
                let record = try HEVCConfiguration(track.extradata)
                self.form = .h265(track, lengthSize: record.nalLengthSize, layers: record.temporalLayers)
                let sets = H265Packetizer.Sets(
                    video: record.videoParameterSets, sequence: record.sequenceParameterSets, picture: record.pictureParameterSets)
                self.packetizer = H265Packetizer(sets, profile: record.profile)
            case .video(.av1):
                let record = try AV1Configuration(track.extradata)
                (self.form, self.treatment) = (.whole, .passed)
                self.packetizer = AV1Packetizer(record.units, profile: record.profile)
            default: throw .mismatch(expected: "H.264, HEVC, VP9 or AV1", found: track.codecName)
            }
        } catch {
            throw .media(error)
        }
    }

    /// What goes out.
    var profile: VideoProfile { self.packetizer.profile }

    /// What follows begins with a keyframe.
    func restart() {
        self.awaitsKeyframe = true
        self.held = []
        self.newestMs = nil
        self.encoding?.transcoder.reset()
    }

    /// The bundles that are complete with this picture, with their times in milliseconds.
    func bundles(_ sample: Sample) -> [Bundle] {
        if self.awaitsKeyframe {
            guard sample.isKeyframe else { return [] }
            self.awaitsKeyframe = false
        }
        if self.encoding != nil { return self.encode(sample) }
        let units = self.units(of: sample)
        switch (self.treatment, self.order(of: sample, units)) {
        case (.undecided, .plain):
            // A new group, and none before had any; or the first picture is shown at once, as none is of a group with B-frames.
            if sample.isKeyframe, !self.held.isEmpty || sample.pts == sample.dts { return self.pass() + self.bundle(sample, units) }
            self.held.append(sample)
            return self.held.count < Self.mostHeld ? [] : self.pass()
        case (.undecided, .early(let isReference)): return self.decide(isReference, sample)
        case (.passed, .early(let isReference)), (.dropped, .early(let isReference)):
            guard self.treatment == .passed || isReference else { return [] }
            return self.decide(isReference, sample)
        case (_, .plain): return self.bundle(sample, units)
        case (.encoded, .early), (.refused, .early): return []
        }
    }

    private func pass() -> [Bundle] {
        self.treatment = .passed
        defer { self.held = [] }
        return self.held.flatMap { self.bundle($0, self.units(of: $0)) }
    }

    private func units(of sample: Sample) -> [ByteBuffer] {
        switch self.form {
        case .h264(_, let size), .h265(_, let size, _):
            NALWalk.units(sample.payload, from: sample.payload.readerIndex, lengthSize: size)
        case .whole: [sample.payload]
        }
    }

    private func order(of sample: Sample, _ units: [ByteBuffer]) -> PictureOrder {
        switch self.form {
        case .h264: return H264Packetizer.order(of: units)
        case .h265(_, _, let layers):
            guard let newest = self.newestMs, sample.pts < newest, newest - sample.pts < Self.leapMs else {
                self.newestMs = sample.pts
                return .plain
            }
            return .early(isReference: H265Packetizer.isReference(units, layers: layers))
        case .whole: return .plain
        }
    }

    /// What decoders need to know.
    private var track: Track? {
        switch self.form {
        case .h264(let track, _), .h265(let track, _, _): track
        case .whole: nil
        }
    }

    /// The first B-frame, or the first one that others are made from, has come.
    private func decide(_ isReference: Bool, _ sample: Sample) -> [Bundle] {
        let group = self.held
        self.held = []
        var failure: PacketMaker.Problem?
        if self.policy == .auto || self.policy == .encode, self.isSmallEnough, let track = self.track, let place = self.places.acquire() {
            do throws(FFmpegError) {
                self.encoding = (try PictureTranscoder(track), place)
                self.packetizer = H264Packetizer()
                self.treatment = .encoded
                // Without the pictures since the keyframe there is nothing to decode.
                guard !group.isEmpty else {
                    self.awaitsKeyframe = true
                    return []
                }
                return (group + [sample]).flatMap(self.encode)
            } catch {
                failure = .encoding("\(error)")
            }
        }
        // Left out, pictures that others are made from would leave grey ones behind.
        if self.policy == .auto || self.policy == .drop, !isReference {
            self.treatment = .dropped
            return group.flatMap { self.bundle($0, self.units(of: $0)) }
        }
        self.treatment = .refused
        self.problem = failure ?? (self.policy == .refuse || self.policy == .drop || !self.isSmallEnough ? .reordered : .noEncoder)
        return []
    }

    private var isSmallEnough: Bool { self.track.map { $0.width * $0.height <= PictureTranscoder.mostPixels } ?? false }

    private func encode(_ sample: Sample) -> [Bundle] {
        do throws(FFmpegError) {
            return try self.encoding?.transcoder.transcode(sample, from: self.encodesFrom ?? .min).compactMap { picture in
                self.packetizer.bundle(picture.units, time: picture.pts * Self.ticks, isKeyframe: picture.isKeyframe).map {
                    Bundle(ms: picture.pts, isKeyframe: picture.isKeyframe, payload: $0)
                }
            } ?? []
        } catch {
            self.problem = .encoding("\(error)")
            self.encoding = nil
            return []
        }
    }

    private func bundle(_ sample: Sample, _ units: [ByteBuffer]) -> [Bundle] {
        guard let bundle = self.packetizer.bundle(units, time: sample.pts * Self.ticks, isKeyframe: sample.isKeyframe) else { return [] }
        return [Bundle(ms: sample.dts, isKeyframe: sample.isKeyframe, payload: bundle)]
    }

    struct Bundle {
        let ms: Int64
        let isKeyframe: Bool
        let payload: ByteBuffer
    }
}

/// What is done to a stream's pictures for players by WebRTC.
package enum PictureTreatment: String, Sendable, CaseIterable {
    /// No pictures yet, or too few.
    case undecided
    case passed
    /// Without its B-frames.
    case dropped
    case encoded
    case refused
}
