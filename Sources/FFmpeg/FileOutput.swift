internal import CFFmpeg

/// An MP4 file that libavformat writes, with its index in front. Owned by a finisher, used on one thread; blocks on the disk.
final class FileOutput {
    private let context: UnsafeMutablePointer<AVFormatContext>
    private let path: String

    /// `watch` must outlive the output.
    init(_ path: String, _ watch: MP4Finisher.Watch) throws(FFmpegError) {
        self.path = path
        var context: UnsafeMutablePointer<AVFormatContext>?
        // The explicit protocol keeps a path with a colon from selecting another one.
        let url = "file:" + path
        try check(avformat_alloc_output_context2(&context, nil, "mp4", url), "avformat_alloc_output_context2")
        self.context = try allocated(context, "avformat_alloc_output_context2")
        let interrupt = AVIOInterruptCB(
            callback: { opaque in
                guard let opaque else { return 0 }
                return Unmanaged<MP4Finisher.Watch>.fromOpaque(opaque).takeUnretainedValue().goesOn() ? 0 : 1
            },
            opaque: Unmanaged.passUnretained(watch).toOpaque())
        // libavformat reads the file once more to move the index to the front. This second pass uses the context's own callback.
        self.context.pointee.interrupt_callback = interrupt
        self.context.pointee.flags |= AVFMT_FLAG_BITEXACT
        self.context.pointee.strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL
        // A recording starts at 0, wherever its stream's timeline starts.
        self.context.pointee.avoid_negative_ts = AVFMT_AVOID_NEG_TS_MAKE_ZERO
        var callback = interrupt
        try self.checkFile(avio_open2(&self.context.pointee.pb, url, AVIO_FLAG_WRITE, &callback, nil), "create")
    }

    deinit {
        avio_closep(&self.context.pointee.pb)
        avformat_free_context(self.context)
    }

    func addStream(like other: UnsafeMutablePointer<AVStream>) throws(FFmpegError) {
        let stream = try allocated(avformat_new_stream(self.context, nil), "avformat_new_stream")
        try check(avcodec_parameters_copy(stream.pointee.codecpar, other.pointee.codecpar), "avcodec_parameters_copy")
        stream.pointee.time_base = other.pointee.time_base
    }

    func writeHeader() throws(FFmpegError) {
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        try check(av_dict_set(&options, "movflags", "faststart", 0), "av_dict_set")
        try self.checkFile(avformat_write_header(self.context, &options), "write")
    }

    /// The packet is empty afterwards.
    func write(_ packet: borrowing Packet, timeBase: AVRational) throws(FFmpegError) {
        guard let stream = self.context.pointee.streams[Int(packet.pointer.pointee.stream_index)] else { return }
        av_packet_rescale_ts(packet.pointer, timeBase, stream.pointee.time_base)
        packet.pointer.pointee.pos = -1
        try self.checkFile(av_interleaved_write_frame(self.context, packet.pointer), "write")
    }

    func finish() throws(FFmpegError) {
        try self.checkFile(av_write_trailer(self.context), "write")
        if let io = self.context.pointee.pb { try self.checkFile(io.pointee.error, "write") }
        try self.checkFile(avio_closep(&self.context.pointee.pb), "write")
    }

    /// Checks a result; libav passes on the system's error as −errno.
    private func checkFile(_ code: Int32, _ operation: String) throws(FFmpegError) {
        guard code < 0 else { return }
        if code > -4_096 { throw .file(operation: operation, path: self.path, errno: -code) }
        try check(code, "\(operation) \(self.path)")
    }
}
