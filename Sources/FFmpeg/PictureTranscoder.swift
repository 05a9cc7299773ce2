internal import CFFmpeg
internal import Media
package import NIOCore

/// Encodes a track of pictures anew as H.264 whose pictures are decoded in the order in which they are shown: without B-frames, as WebRTC needs it.
///
/// Owned by one consumer, used on one thread at a time. A picture comes out as soon as the decoder lets it go, which holds those back that are shown
/// after a later one. Keyframes stay where they were.
package final class PictureTranscoder {
    /// A coded picture: NAL units without start codes, parameter sets before a keyframe's slices.
    package struct Picture: Sendable {
        package var units: [ByteBuffer]
        /// Milliseconds on the stream's timeline.
        package var pts: Int64
        package var isKeyframe: Bool
    }

    private let track: Track
    private let decoder: Decoder
    private let most: Limits
    private var encoder: Encoder?
    /// A picture's time never goes back.
    private var lastPts: Int64?

    /// Of a picture to decode: 4K, of which a decoder keeps up to sixteen.
    package static let mostPixels = 4_096 * 2_304

    /// What the encoded pictures have at most.
    package struct Limits: Sendable {
        package var bitsPerSecond: Int
        /// Larger ones are made smaller, with the same shape.
        package var width: Int
        package var height: Int

        package init(bitsPerSecond: Int = 4_000_000, width: Int = 1_280, height: Int = 720) {
            self.bitsPerSecond = bitsPerSecond
            self.width = width
            self.height = height
        }
    }

    package init(_ track: Track, atMost limits: Limits = Limits()) throws(FFmpegError) {
        guard track.kind == .video else { throw .unsupported("encoding \(track.codecName) as H.264") }
        self.track = track
        self.most = limits
        self.decoder = try Decoder(track, isStrict: false, maxPixels: Int64(Self.mostPixels))
        guard Encoder.library != nil else { throw .unsupported("encoding H.264 (libx264)") }
    }

    /// The pictures that can be shown now that this one has come, as far as they are shown at `from` or later. Damage costs pictures; what is thrown is the
    /// encoder's failure.
    package func transcode(_ sample: Sample, from: Int64 = .min) throws(FFmpegError) -> [Picture] {
        var pictures: [Picture] = []
        var failure: FFmpegError?
        do throws(FFmpegError) {
            try self.decode(sample, from, &pictures, &failure)
        } catch {
            // Decoders go on by themselves behind what they cannot read.
        }
        if let failure { throw failure }
        return pictures
    }

    private func decode(_ sample: Sample, _ from: Int64, _ pictures: inout [Picture], _ failure: inout FFmpegError?) throws(FFmpegError) {
        try self.decoder.decode(sample.payload, pts: sample.pts) { (frame) throws(FFmpegError) in
            let isKeyframe = earshot_is_keyframe(frame)
            let pts = frame.pointee.best_effort_timestamp
            guard pts > (self.lastPts ?? .min) else { return }
            self.lastPts = pts
            guard pts >= from else { return }
            do throws(FFmpegError) {
                try self.encode(frame, pts: pts, isKeyframe: isKeyframe, &pictures)
            } catch {
                failure = error
            }
        }
    }

    /// Forgets what came so far: the next picture is a keyframe.
    package func reset() {
        self.decoder.reset()
        self.encoder = nil
        self.lastPts = nil
    }

    private func encode(
        _ frame: UnsafeMutablePointer<AVFrame>, pts: Int64, isKeyframe: Bool, _ pictures: inout [Picture]
    ) throws(FFmpegError) {
        let source = Shape(frame)
        if self.encoder?.source != source {
            // The first picture of an encoder is a keyframe, whatever it was.
            self.encoder = try Encoder(source, like: frame, rate: self.track.frameRate, atMost: self.most)
        }
        try self.encoder?.encode(frame, pts: pts, isKeyframe: isKeyframe) { pictures.append($0) }
    }

    /// What an encoder is made for.
    private struct Shape: Equatable {
        let width: Int32
        let height: Int32
        let format: Int32

        init(_ frame: UnsafeMutablePointer<AVFrame>) {
            self.width = frame.pointee.width
            self.height = frame.pointee.height
            self.format = frame.pointee.format
        }
    }

    /// libx264, for pictures of one shape.
    private final class Encoder {
        let source: Shape
        private let context: UnsafeMutablePointer<AVCodecContext>
        private let packet: Packet
        /// Nil where the source's pictures are what the encoder takes.
        private let scaler: OpaquePointer?
        private let scaled: MediaFrame
        private var count: Int64 = 0
        private var times: [Int64: Int64] = [:]

        static var library: UnsafePointer<AVCodec>? { avcodec_find_encoder_by_name("libx264") }
        /// x264's scale from 0 to 51; 720p of a test pattern with noise is 43 dB away from its source.
        private static let quality = "20"
        private static let usualRate = 25.0

        init(_ source: Shape, like frame: UnsafeMutablePointer<AVFrame>, rate: Double?, atMost limits: Limits) throws(FFmpegError) {
            guard let library = Self.library else { throw .unsupported("encoding H.264 (libx264)") }
            let size = Self.size(source, limits)
            self.source = source
            self.packet = try Packet()
            self.scaled = try MediaFrame()
            let isSame = size == (source.width, source.height) && source.format == AV_PIX_FMT_YUV420P.rawValue
            self.scaler = isSame ? nil : try Self.scaler(source, size)
            let context = try allocated(avcodec_alloc_context3(library), "avcodec_alloc_context3")
            do throws(FFmpegError) {
                context.pointee.width = size.0
                context.pointee.height = size.1
                context.pointee.pix_fmt = AV_PIX_FMT_YUV420P
                // Players guess by the size otherwise.
                context.pointee.colorspace = frame.pointee.colorspace
                context.pointee.color_primaries = frame.pointee.color_primaries
                context.pointee.color_trc = frame.pointee.color_trc
                context.pointee.color_range = isSame ? frame.pointee.color_range : AVCOL_RANGE_MPEG
                // Times are numbers of pictures: the rate control knows nothing of a device's milliseconds.
                let perSecond = min(max(rate ?? Self.usualRate, 1), 120)
                context.pointee.time_base = AVRational(num: 1_000, den: Int32(perSecond * 1_000))
                context.pointee.framerate = AVRational(num: Int32(perSecond * 1_000), den: 1_000)
                context.pointee.thread_count = 1
                context.pointee.max_b_frames = 0
                // Keyframes are asked for.
                context.pointee.gop_size = Int32.max
                context.pointee.rc_max_rate = Int64(limits.bitsPerSecond)
                context.pointee.rc_buffer_size = Int32(clamping: limits.bitsPerSecond)
                let options = [
                    ("preset", "superfast"), ("tune", "zerolatency"), ("profile", "baseline"), ("crf", Self.quality), ("forced-idr", "1"),
                ]
                for (name, value) in options {
                    try check(av_opt_set(context.pointee.priv_data, name, value, 0), "av_opt_set (\(name))")
                }
                try check(avcodec_open2(context, library, nil), "avcodec_open2 (libx264, \(size.0) × \(size.1))")
            } catch {
                var context: UnsafeMutablePointer<AVCodecContext>? = context
                avcodec_free_context(&context)
                if let scaler { sws_freeContext(scaler) }
                throw error
            }
            self.context = context
        }

        deinit {
            var context: UnsafeMutablePointer<AVCodecContext>? = self.context
            avcodec_free_context(&context)
            if let scaler { sws_freeContext(scaler) }
        }

        /// Within the limits, even, of the same shape.
        private static func size(_ source: Shape, _ limits: Limits) -> (Int32, Int32) {
            let (width, height) = (Double(source.width), Double(source.height))
            // A picture that stands has the limits the other way round.
            let (mostWidth, mostHeight) = width >= height ? (limits.width, limits.height) : (limits.height, limits.width)
            let scale = min(1, Double(mostWidth) / width, Double(mostHeight) / height)
            func even(_ value: Double) -> Int32 { max(2, Int32(value.rounded()) & ~1) }
            return (even(width * scale), even(height * scale))
        }

        private static func scaler(_ source: Shape, _ size: (Int32, Int32)) throws(FFmpegError) -> OpaquePointer {
            let scaler = sws_getContext(
                source.width, source.height, AVPixelFormat(source.format), size.0, size.1, AV_PIX_FMT_YUV420P, earshot_scale_flags, nil,
                nil,
                nil)
            guard let scaler else { throw .unsupported("scaling pictures of format \(source.format)") }
            return scaler
        }

        func encode(
            _ frame: UnsafeMutablePointer<AVFrame>, pts: Int64, isKeyframe: Bool, _ body: (Picture) -> Void
        ) throws(FFmpegError) {
            let input: UnsafeMutablePointer<AVFrame>
            if let scaler {
                let target = self.scaled.pointer
                av_frame_unref(target)
                target.pointee.format = AV_PIX_FMT_YUV420P.rawValue
                target.pointee.width = self.context.pointee.width
                target.pointee.height = self.context.pointee.height
                try check(av_frame_get_buffer(target, 0), "av_frame_get_buffer")
                try check(sws_scale_frame(scaler, target, frame), "sws_scale_frame")
                input = target
            } else {
                input = frame
            }
            input.pointee.pict_type = isKeyframe ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
            input.pointee.pts = self.count
            self.times[self.count] = pts
            self.count += 1
            let code = avcodec_send_frame(self.context, input)
            if code < 0 { self.times = [:] }
            try check(code, "avcodec_send_frame (libx264)")
            while true {
                let code = avcodec_receive_packet(self.context, self.packet.pointer)
                if code == earshot_error_again || code == earshot_error_eof { return }
                try check(code, "avcodec_receive_packet (libx264)")
                let made = self.packet.pointer.pointee
                let bytes = UnsafeRawBufferPointer(start: made.data, count: Int(made.size))
                if let pts = self.times.removeValue(forKey: made.pts) {
                    body(Picture(units: StartCodes.units(in: bytes), pts: pts, isKeyframe: made.flags & AV_PKT_FLAG_KEY != 0))
                }
                av_packet_unref(self.packet.pointer)
            }
        }
    }
}

/// NAL units between start codes (H.264 Annex B).
enum StartCodes {
    /// The units in their order, without the zeros before a start code.
    static func units(in bytes: UnsafeRawBufferPointer) -> [ByteBuffer] {
        var units: [ByteBuffer] = []
        var start: Int?
        var at = 0
        while at + 2 < bytes.count {
            guard bytes[at] == 0, bytes[at + 1] == 0, bytes[at + 2] == 1 else {
                at += 1
                continue
            }
            if let start { self.add(bytes, start, at, &units) }
            start = at + 3
            at += 3
        }
        if let start { self.add(bytes, start, bytes.count, &units) }
        return units
    }

    private static func add(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int, _ units: inout [ByteBuffer]) {
        var end = end
        while end > start, bytes[end - 1] == 0 { end -= 1 }
        if end > start { units.append(ByteBuffer(bytes: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))) }
    }
}
