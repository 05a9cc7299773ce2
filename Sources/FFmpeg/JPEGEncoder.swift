internal import CFFmpeg
internal import NIOCore

/// libavcodec's JPEG encoder, for one picture in YUVJ420P. Used by one thread at a time.
final class JPEGEncoder {
    private let context: UnsafeMutablePointer<AVCodecContext>

    /// `quality` in libav's lambda units.
    init(width: Int, height: Int, quality: Int32) throws(FFmpegError) {
        guard let codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG) else { throw .unsupported("encoding JPEG") }
        self.context = try allocated(avcodec_alloc_context3(codec), "avcodec_alloc_context3")
        self.context.pointee.width = Int32(width)
        self.context.pointee.height = Int32(height)
        self.context.pointee.pix_fmt = AV_PIX_FMT_YUVJ420P
        self.context.pointee.color_range = AVCOL_RANGE_JPEG
        self.context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
        self.context.pointee.time_base = AVRational(num: 1, den: 25)
        self.context.pointee.thread_count = 1
        self.context.pointee.flags |= AV_CODEC_FLAG_QSCALE
        self.context.pointee.global_quality = quality
        try check(avcodec_open2(self.context, codec, nil), "avcodec_open2 (mjpeg)")
    }

    deinit {
        var context: UnsafeMutablePointer<AVCodecContext>? = self.context
        avcodec_free_context(&context)
    }

    func encode(_ picture: UnsafeMutablePointer<AVFrame>) throws(FFmpegError) -> ByteBuffer {
        let packet = try Packet()
        try check(avcodec_send_frame(self.context, picture), "avcodec_send_frame (mjpeg)")
        try check(avcodec_send_frame(self.context, nil), "avcodec_send_frame (mjpeg, end)")
        try check(avcodec_receive_packet(self.context, packet.pointer), "avcodec_receive_packet (mjpeg)")
        return ByteBuffer(bytes: UnsafeBufferPointer(start: packet.pointer.pointee.data, count: Int(packet.pointer.pointee.size)))
    }
}
