internal import CFFmpeg
internal import Media
package import NIOCore

/// Decodes a track's coded audio: AAC, MP3, Opus, FLAC, AC-3, Speex, Nellymoser, G.711.
///
/// Owned by one consumer of a stream, used on one thread at a time.
package final class AudioDecoder {
    private let decoder: Decoder

    /// Limit for the bytes of one coded run; RTMP's own audio limit is lower.
    private static let maxPayload = 1 << 20

    /// Throws `.unsupported` for codecs without a decoder, `.library` for a bad track header.
    package init(_ track: Track) throws(FFmpegError) {
        guard track.kind == .audio else { throw .unsupported("decoding \(track.codecName) as audio") }
        self.decoder = try Decoder(track, isStrict: false)
    }

    /// Decodes one coded run; the first often yields nothing. Throws `.library` for damaged data and can continue afterwards.
    package func decode(_ payload: ByteBuffer) throws(FFmpegError) -> [PCM] {
        guard payload.readableBytes <= Self.maxPayload else {
            throw .overLimit(field: "coded audio (bytes)", found: payload.readableBytes, max: Self.maxPayload)
        }
        // libav treats an empty packet as the end.
        guard payload.readableBytes > 0 else { return [] }
        return try self.run(payload)
    }

    /// Returns the samples that the decoder still holds. Decoding can restart afterwards.
    package func flush() throws(FFmpegError) -> [PCM] {
        defer { self.decoder.reset() }
        return try self.run(nil)
    }

    private func run(_ payload: ByteBuffer?) throws(FFmpegError) -> [PCM] {
        var runs: [PCM] = []
        try self.decoder.decode(payload) { (frame) throws(FFmpegError) in
            if let pcm = try Self.read(frame) { runs.append(pcm) }
        }
        return runs
    }

    /// The frame's samples as planes of floats.
    static func read(_ frame: UnsafeMutablePointer<AVFrame>) throws(FFmpegError) -> PCM? {
        let count = Int(frame.pointee.nb_samples)
        let channels = Int(frame.pointee.ch_layout.nb_channels)
        let rate = Int(frame.pointee.sample_rate)
        guard count > 0, (1...64).contains(channels), rate > 0, let data = frame.pointee.extended_data else { return nil }
        let format = AVSampleFormat(rawValue: frame.pointee.format)
        let isPlanar = av_sample_fmt_is_planar(format) == 1
        var planes: [[Float]] = []
        for channel in 0..<channels {
            guard let plane = data[isPlanar ? channel : 0] else { return nil }
            let bytes = UnsafeRawPointer(plane)
            let first = isPlanar ? 0 : channel
            let step = isPlanar ? 1 : channels
            switch format {
            case AV_SAMPLE_FMT_FLT, AV_SAMPLE_FMT_FLTP:
                planes.append(Self.read(bytes, count, first, step) { (sample: Float) in Self.tame(sample) })
            case AV_SAMPLE_FMT_S16, AV_SAMPLE_FMT_S16P:
                planes.append(Self.read(bytes, count, first, step) { (sample: Int16) in Float(sample) / 32_768 })
            case AV_SAMPLE_FMT_U8, AV_SAMPLE_FMT_U8P:
                planes.append(Self.read(bytes, count, first, step) { (sample: UInt8) in (Float(sample) - 128) / 128 })
            case AV_SAMPLE_FMT_S32, AV_SAMPLE_FMT_S32P:
                planes.append(Self.read(bytes, count, first, step) { (sample: Int32) in Float(sample) / 2_147_483_648 })
            default: throw .unsupported("sample format \(format.rawValue)")
            }
        }
        return PCM(sampleRate: rate, planes: planes)
    }

    /// Limit for decoded samples; 1.0 is full scale. Damaged data can decode to anything, and libav's AAC encoder never returns from
    /// NaN or far too loud samples.
    package static let loudest: Float = 4

    private static func tame(_ sample: Float) -> Float {
        sample.isFinite ? min(max(sample, -Self.loudest), Self.loudest) : 0
    }

    private static func read<Sample: BitwiseCopyable>(
        _ bytes: UnsafeRawPointer, _ count: Int, _ first: Int, _ step: Int, _ convert: (Sample) -> Float
    ) -> [Float] {
        let samples = bytes.assumingMemoryBound(to: Sample.self)
        return [Float](unsafeUninitializedCapacity: count) { plane, filled in
            for index in 0..<count { plane[index] = convert(samples[first + index * step]) }
            filled = count
        }
    }
}
