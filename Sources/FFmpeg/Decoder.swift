internal import CFFmpeg
internal import Media
internal import NIOCore

/// One libav decoder on the caller's thread. Owned by a snapshot or an audio decoder, used by one thread at a time.
final class Decoder {
    let context: UnsafeMutablePointer<AVCodecContext>
    private let packet: Packet
    private let frame: MediaFrame

    /// The most pixels a picture may have: above H.264's and H.265's highest levels (35.6 million). Each takes 1.5 bytes of memory.
    static let maxPixels: Int64 = 1 << 26

    /// With `isStrict`, damage is an error. Otherwise the decoder guesses the missing parts of a picture.
    init(_ track: Track, isStrict: Bool, maxPixels: Int64 = Decoder.maxPixels) throws(FFmpegError) {
        Library.quiet
        guard let id = track.codecID, let codec = avcodec_find_decoder(id) else { throw .unsupported("decoding \(track.codecName)") }
        self.packet = try Packet()
        self.frame = try MediaFrame()
        self.context = try allocated(avcodec_alloc_context3(codec), "avcodec_alloc_context3")
        try Self.configure(self.context, track)
        self.context.pointee.thread_count = 1
        self.context.pointee.max_pixels = maxPixels
        self.context.pointee.pkt_timebase = AVRational(num: 1, den: 1_000)
        if isStrict { self.context.pointee.err_recognition = AV_EF_EXPLODE }
        try check(avcodec_open2(self.context, codec, nil), "avcodec_open2 (\(track.codecName))")
    }

    deinit {
        var context: UnsafeMutablePointer<AVCodecContext>? = self.context
        avcodec_free_context(&context)
    }

    private static func configure(_ context: UnsafeMutablePointer<AVCodecContext>, _ track: Track) throws(FFmpegError) {
        var parameters = avcodec_parameters_alloc()
        defer { avcodec_parameters_free(&parameters) }
        let filled = try allocated(parameters, "avcodec_parameters_alloc")
        try track.fill(filled)
        try check(avcodec_parameters_to_context(context, filled), "avcodec_parameters_to_context")
    }

    /// Sends coded data to the decoder; nil marks the end. `body` borrows every frame that comes out. `pts`: its time, which its frame will have.
    func decode(
        _ payload: ByteBuffer?, pts: Int64? = nil, _ body: (UnsafeMutablePointer<AVFrame>) throws(FFmpegError) -> Void
    ) throws(FFmpegError) {
        if let payload {
            try self.packet.fill(payload)
            if let pts { self.packet.pointer.pointee.pts = pts }
            try check(avcodec_send_packet(self.context, self.packet.pointer), "avcodec_send_packet")
            av_packet_unref(self.packet.pointer)
        } else {
            let code = avcodec_send_packet(self.context, nil)
            if code != earshot_error_eof { try check(code, "avcodec_send_packet (end)") }
        }
        while true {
            let code = avcodec_receive_frame(self.context, self.frame.pointer)
            if code == earshot_error_again || code == earshot_error_eof { return }
            try check(code, "avcodec_receive_frame")
            defer { av_frame_unref(self.frame.pointer) }
            try body(self.frame.pointer)
        }
    }

    /// Prepares the decoder for new data, after an end or a gap.
    func reset() { avcodec_flush_buffers(self.context) }
}
