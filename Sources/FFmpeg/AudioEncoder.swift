internal import CFFmpeg
internal import Media
package import NIOCore

/// Encodes audio to AAC-LC in runs of 1,024 samples, or to Opus in runs of 20 ms.
///
/// Owned by one consumer, used on one thread at a time. The output lags the input by ``priming`` samples: the first run decodes to
/// silence, entirely for AAC, in part for Opus.
package final class AudioEncoder {
    package enum Codec: String, Sendable, CaseIterable {
        case aac
        /// Encoded by libopus, tuned for voices.
        case opus
    }

    /// A raw data block or an Opus packet, for an RTMP message or a container.
    package struct Run: Sendable {
        package var payload: ByteBuffer
        /// The input sample that this run begins with. The first run has −``AudioEncoder/priming``.
        package var position: Int64
    }

    package let codec: Codec
    /// Samples of one run, at the encoder's rate.
    package let runSamples: Int

    /// The encoded track, with its AudioSpecificConfig or OpusHead.
    package let track: Track
    /// Samples.
    package let priming: Int
    private let context: UnsafeMutablePointer<AVCodecContext>
    private let frame: MediaFrame
    private let packet: Packet
    private var pending: PCM
    private var fed: Int64 = 0
    private var isAtEnd = false

    /// - Parameters:
    ///   - sampleRate: Hz, one of AAC's; 48,000 for Opus.
    ///   - channels: 1 or 2.
    ///   - bitRate: bits per second, for all channels together.
    package init(codec: Codec = .aac, sampleRate: Int = 48_000, channels: Int, bitRate: Int) throws(FFmpegError) {
        Library.quiet
        guard (1...2).contains(channels) else { throw .overLimit(field: "channels to encode", found: channels, max: 2) }
        guard codec == .aac || sampleRate == 48_000 else { throw .unsupported("encoding Opus at \(sampleRate) Hz") }
        guard let library = codec.library else { throw .unsupported("encoding \(codec.rawValue)") }
        self.codec = codec
        self.frame = try MediaFrame()
        self.packet = try Packet()
        let context = try allocated(avcodec_alloc_context3(library), "avcodec_alloc_context3")
        do throws(FFmpegError) {
            // libopus expects interleaved samples, the other encoders planes.
            context.pointee.sample_fmt = codec == .opus ? AV_SAMPLE_FMT_FLT : AV_SAMPLE_FMT_FLTP
            context.pointee.sample_rate = Int32(clamping: sampleRate)
            av_channel_layout_default(&context.pointee.ch_layout, Int32(channels))
            context.pointee.bit_rate = Int64(min(max(bitRate, 8_000), 512_000))
            context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
            context.pointee.thread_count = 1
            context.pointee.time_base = AVRational(num: 1, den: context.pointee.sample_rate)
            try codec.configure(context)
            try check(avcodec_open2(context, library, nil), "avcodec_open2 (\(codec.rawValue), \(sampleRate) Hz)")
            let header = ByteBuffer(
                bytes: UnsafeBufferPointer(start: context.pointee.extradata, count: Int(max(0, context.pointee.extradata_size))))
            self.track = try Self.track(codec.message(header, isHeader: true))
        } catch {
            var context: UnsafeMutablePointer<AVCodecContext>? = context
            avcodec_free_context(&context)
            throw error
        }
        self.context = context
        self.priming = Int(context.pointee.initial_padding)
        self.runSamples = Int(max(1, context.pointee.frame_size))
        self.pending = PCM(silence: 0, sampleRate: sampleRate, channels: channels)
    }

    deinit {
        var context: UnsafeMutablePointer<AVCodecContext>? = self.context
        avcodec_free_context(&context)
    }

    /// The track as a publisher's sequence header would describe it.
    static func track(_ message: ByteBuffer) throws(FFmpegError) -> Track {
        let frame = try reading { () throws(MediaError) in try Frame(kind: .audio, timestamp: 0, payload: message) }
        return try Track(frame)
    }

    /// The payload of the RTMP sequence header.
    package var sequenceMessage: ByteBuffer { self.codec.message(self.track.extradata, isHeader: true) }

    /// The payload of the RTMP message that carries a run.
    package func message(_ run: Run) -> ByteBuffer { self.codec.message(run.payload, isHeader: false) }

    /// Encodes audio of the encoder's rate and channels; throws `.unsupported` for any other.
    package func encode(_ pcm: PCM) throws(FFmpegError) -> [Run] {
        guard pcm.sampleRate == self.pending.sampleRate, pcm.channels == self.pending.channels else {
            throw .unsupported("encoding \(pcm.channels) channels at \(pcm.sampleRate) Hz")
        }
        for index in pcm.planes.indices { self.pending.planes[index] += pcm.planes[index] }
        var runs: [Run] = []
        var start = 0
        while self.pending.count - start >= self.runSamples {
            try self.feed(start..<(start + self.runSamples), &runs)
            start += self.runSamples
        }
        self.pending.dropFirst(start)
        return runs
    }

    /// Encodes the rest, padded with silence. Nothing can be encoded afterwards.
    package func flush() throws(FFmpegError) -> [Run] {
        guard !self.isAtEnd else { return [] }
        self.isAtEnd = true
        var runs: [Run] = []
        if self.pending.count > 0 {
            let missing = self.runSamples - self.pending.count
            for index in self.pending.planes.indices { self.pending.planes[index] += Array(repeating: 0, count: missing) }
            try self.feed(0..<self.runSamples, &runs)
        }
        try check(avcodec_send_frame(self.context, nil), "avcodec_send_frame (\(self.codec.rawValue), end)")
        try self.receive(&runs)
        return runs
    }

    private func feed(_ range: Range<Int>, _ runs: inout [Run]) throws(FFmpegError) {
        let frame = self.frame.pointer
        av_frame_unref(frame)
        frame.pointee.format = self.context.pointee.sample_fmt.rawValue
        frame.pointee.sample_rate = self.context.pointee.sample_rate
        frame.pointee.nb_samples = Int32(range.count)
        av_channel_layout_default(&frame.pointee.ch_layout, Int32(self.pending.channels))
        try check(av_frame_get_buffer(frame, 0), "av_frame_get_buffer")
        let isPlanar = self.context.pointee.sample_fmt == AV_SAMPLE_FMT_FLTP || self.pending.channels == 1
        for (index, plane) in self.pending.planes.enumerated() {
            guard let target = frame.pointee.extended_data[isPlanar ? index : 0] else { continue }
            plane[range].withUnsafeBufferPointer { samples in
                target.withMemoryRebound(to: Float.self, capacity: range.count * (isPlanar ? 1 : self.pending.channels)) { target in
                    if isPlanar {
                        if let source = samples.baseAddress { target.update(from: source, count: samples.count) }
                    } else {
                        for position in 0..<samples.count { target[position * self.pending.channels + index] = samples[position] }
                    }
                }
            }
        }
        frame.pointee.pts = self.fed
        self.fed += Int64(range.count)
        try check(avcodec_send_frame(self.context, frame), "avcodec_send_frame (\(self.codec.rawValue))")
        try self.receive(&runs)
    }

    private func receive(_ runs: inout [Run]) throws(FFmpegError) {
        while true {
            let code = avcodec_receive_packet(self.context, self.packet.pointer)
            if code == earshot_error_again || code == earshot_error_eof { return }
            try check(code, "avcodec_receive_packet (\(self.codec.rawValue))")
            let bytes = UnsafeBufferPointer(start: self.packet.pointer.pointee.data, count: Int(self.packet.pointer.pointee.size))
            runs.append(Run(payload: ByteBuffer(bytes: bytes), position: self.packet.pointer.pointee.pts))
            av_packet_unref(self.packet.pointer)
        }
    }
}

extension AudioEncoder.Codec {
    /// libavcodec's encoder.
    fileprivate var library: UnsafePointer<AVCodec>? {
        switch self {
        case .aac: avcodec_find_encoder_by_name("aac")
        // libavcodec's own encoder is marked experimental and has no voice mode.
        case .opus: avcodec_find_encoder_by_name("libopus")
        }
    }

    fileprivate func configure(_ context: UnsafeMutablePointer<AVCodecContext>) throws(FFmpegError) {
        switch self {
        case .aac:
            // Nearly the quality of twoloop in half the time.
            try check(av_opt_set(context.pointee.priv_data, "aac_coder", "fast", 0), "av_opt_set (aac_coder)")
        case .opus:
            try check(av_opt_set(context.pointee.priv_data, "application", "voip", 0), "av_opt_set (application)")
            try check(av_opt_set(context.pointee.priv_data, "frame_duration", "20", 0), "av_opt_set (frame_duration)")
            // Half of 10, the best: voices sound the same in half the time.
            context.pointee.compression_level = 5
        }
    }

    /// FLV 10.1 §E.4.2.1; Enhanced RTMP v2, "Enhanced Audio". AAC always says format 10, 44 kHz, 16 bits, stereo.
    func message(_ body: ByteBuffer, isHeader: Bool) -> ByteBuffer {
        var message = ByteBuffer()
        switch self {
        case .aac: message.writeBytes([0xAF, isHeader ? 0 : 1])
        case .opus: message.writeBytes([isHeader ? 0x90 : 0x91] + [UInt8]("Opus".utf8))
        }
        message.writeImmutableBuffer(body)
        return message
    }
}
