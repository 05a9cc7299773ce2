internal import CFFmpeg
internal import Media
package import NIOCore

/// Encodes audio to AAC-LC in runs of 1,024 samples.
///
/// Owned by one consumer, used on one thread at a time. What an encoder was given comes out ``priming`` samples late: the first run
/// decodes to silence.
package final class AudioEncoder {
    /// A raw data block, for an RTMP message or a container.
    package struct Run: Sendable {
        package var payload: ByteBuffer
        /// Of what was put in: the sample that this run begins with. The first is −``AudioEncoder/priming``.
        package var position: Int64
    }

    /// Of a run.
    package static let samples = 1_024

    /// What comes out, with its AudioSpecificConfig.
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
    ///   - sampleRate: Hz, one of AAC's.
    ///   - channels: 1 or 2.
    ///   - bitRate: bits per second, of all channels.
    package init(sampleRate: Int = 48_000, channels: Int, bitRate: Int) throws(FFmpegError) {
        Library.quiet
        guard (1...2).contains(channels) else { throw .overLimit(field: "channels to encode", found: channels, max: 2) }
        guard let codec = avcodec_find_encoder_by_name("aac") else { throw .unsupported("encoding AAC") }
        self.frame = try MediaFrame()
        self.packet = try Packet()
        let context = try allocated(avcodec_alloc_context3(codec), "avcodec_alloc_context3")
        do throws(FFmpegError) {
            context.pointee.sample_fmt = AV_SAMPLE_FMT_FLTP
            context.pointee.sample_rate = Int32(clamping: sampleRate)
            av_channel_layout_default(&context.pointee.ch_layout, Int32(channels))
            context.pointee.bit_rate = Int64(min(max(bitRate, 8_000), 512_000))
            context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
            context.pointee.thread_count = 1
            context.pointee.time_base = AVRational(num: 1, den: context.pointee.sample_rate)
            // Nearly twoloop's quality for half of its time.
            try check(av_opt_set(context.pointee.priv_data, "aac_coder", "fast", 0), "av_opt_set (aac_coder)")
            try check(avcodec_open2(context, codec, nil), "avcodec_open2 (aac, \(sampleRate) Hz)")
            self.track = try Self.track(context)
        } catch {
            var context: UnsafeMutablePointer<AVCodecContext>? = context
            avcodec_free_context(&context)
            throw error
        }
        self.context = context
        self.priming = Int(context.pointee.initial_padding)
        self.pending = PCM(silence: 0, sampleRate: sampleRate, channels: channels)
    }

    deinit {
        var context: UnsafeMutablePointer<AVCodecContext>? = self.context
        avcodec_free_context(&context)
    }

    /// The track as a publisher's sequence header would tell it.
    private static func track(_ context: UnsafeMutablePointer<AVCodecContext>) throws(FFmpegError) -> Track {
        var message = ByteBuffer(bytes: [0xAF, 0x00])
        message.writeBytes(UnsafeBufferPointer(start: context.pointee.extradata, count: Int(context.pointee.extradata_size)))
        let frame = try reading { () throws(MediaError) in try Frame(kind: .audio, timestamp: 0, payload: message) }
        return try Track(frame)
    }

    /// Takes audio of the encoder's rate and channels; throws `.unsupported` for any other.
    package func encode(_ pcm: PCM) throws(FFmpegError) -> [Run] {
        guard pcm.sampleRate == self.pending.sampleRate, pcm.channels == self.pending.channels else {
            throw .unsupported("encoding \(pcm.channels) channels at \(pcm.sampleRate) Hz")
        }
        for index in pcm.planes.indices { self.pending.planes[index] += pcm.planes[index] }
        var runs: [Run] = []
        var start = 0
        while self.pending.count - start >= Self.samples {
            try self.feed(start..<(start + Self.samples), &runs)
            start += Self.samples
        }
        self.pending.dropFirst(start)
        return runs
    }

    /// The rest, filled up with silence. Nothing can be encoded afterwards.
    package func flush() throws(FFmpegError) -> [Run] {
        guard !self.isAtEnd else { return [] }
        self.isAtEnd = true
        var runs: [Run] = []
        if self.pending.count > 0 {
            let missing = Self.samples - self.pending.count
            for index in self.pending.planes.indices { self.pending.planes[index] += Array(repeating: 0, count: missing) }
            try self.feed(0..<Self.samples, &runs)
        }
        try check(avcodec_send_frame(self.context, nil), "avcodec_send_frame (aac, end)")
        try self.receive(&runs)
        return runs
    }

    private func feed(_ range: Range<Int>, _ runs: inout [Run]) throws(FFmpegError) {
        let frame = self.frame.pointer
        av_frame_unref(frame)
        frame.pointee.format = AV_SAMPLE_FMT_FLTP.rawValue
        frame.pointee.sample_rate = self.context.pointee.sample_rate
        frame.pointee.nb_samples = Int32(range.count)
        av_channel_layout_default(&frame.pointee.ch_layout, Int32(self.pending.channels))
        try check(av_frame_get_buffer(frame, 0), "av_frame_get_buffer")
        for (index, plane) in self.pending.planes.enumerated() {
            guard let target = frame.pointee.extended_data[index] else { continue }
            plane[range].withUnsafeBytes {
                UnsafeMutableRawPointer(target).copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(target), byteCount: $0.count)
            }
        }
        frame.pointee.pts = self.fed
        self.fed += Int64(range.count)
        try check(avcodec_send_frame(self.context, frame), "avcodec_send_frame (aac)")
        try self.receive(&runs)
    }

    private func receive(_ runs: inout [Run]) throws(FFmpegError) {
        while true {
            let code = avcodec_receive_packet(self.context, self.packet.pointer)
            if code == earshot_error_again || code == earshot_error_eof { return }
            try check(code, "avcodec_receive_packet (aac)")
            let bytes = UnsafeBufferPointer(start: self.packet.pointer.pointee.data, count: Int(self.packet.pointer.pointee.size))
            runs.append(Run(payload: ByteBuffer(bytes: bytes), position: self.packet.pointer.pointee.pts))
            av_packet_unref(self.packet.pointer)
        }
    }
}
