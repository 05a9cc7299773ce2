import FFmpeg
import Media
import NIOCore
import ServerConfiguration
import WebRTC

/// Makes RTP bundles of one track of H.264. Players by WebRTC show pictures in the order in which they are decoded, so B-frames, which are shown before one
/// that was decoded earlier, are left out, or the whole is encoded anew.
///
/// Owned by one ``PacketMaker``.
final class PicturePackets {
    let track: Track
    /// Pictures that are shown before this are decoded, but not encoded. Milliseconds; nil: all are encoded.
    var encodesFrom: Int64?
    private let policy: ServerConfig.WebRTC.BFrames
    private let places: EncoderPlaces
    private var packetizer: H264Packetizer
    private let lengthSize: Int
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

    /// Throws for a header whose parts are not H.264's.
    init(_ track: Track, _ policy: ServerConfig.WebRTC.BFrames, _ places: EncoderPlaces) throws(MediaError) {
        let record = try AVCConfiguration(track.extradata)
        self.track = track
        self.policy = policy
        self.places = places
        self.lengthSize = record.nalLengthSize
        self.packetizer = H264Packetizer(sequenceSets: record.sequenceParameterSets, pictureSets: record.pictureParameterSets)
    }

    /// What follows begins with a keyframe.
    func restart() {
        self.awaitsKeyframe = true
        self.held = []
        self.encoding?.transcoder.reset()
    }

    /// The bundles that are complete with this picture, with their times in milliseconds.
    func bundles(_ sample: Sample) -> [Bundle] {
        if self.awaitsKeyframe {
            guard sample.isKeyframe else { return [] }
            self.awaitsKeyframe = false
        }
        if self.encoding != nil { return self.encode(sample) }
        let units = NALWalk.units(sample.payload, from: sample.payload.readerIndex, lengthSize: self.lengthSize)
        let order = H264Packetizer.order(of: units)
        switch (self.treatment, order) {
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
        return self.held.flatMap { self.bundle($0, NALWalk.units($0.payload, from: $0.payload.readerIndex, lengthSize: self.lengthSize)) }
    }

    /// The first B-frame, or the first one that others are made from, has come.
    private func decide(_ isReference: Bool, _ sample: Sample) -> [Bundle] {
        let group = self.held
        self.held = []
        var failure: PacketMaker.Problem?
        if self.policy == .auto || self.policy == .encode, self.isSmallEnough, let place = self.places.acquire() {
            do throws(FFmpegError) {
                self.encoding = (try PictureTranscoder(self.track), place)
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
            return group.flatMap { self.bundle($0, NALWalk.units($0.payload, from: $0.payload.readerIndex, lengthSize: self.lengthSize)) }
        }
        self.treatment = .refused
        self.problem = failure ?? (self.policy == .refuse || self.policy == .drop || !self.isSmallEnough ? .reordered : .noEncoder)
        return []
    }

    private var isSmallEnough: Bool { self.track.width * self.track.height <= PictureTranscoder.mostPixels }

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
