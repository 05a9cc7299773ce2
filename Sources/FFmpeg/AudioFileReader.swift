internal import CFFmpeg
internal import Media
internal import NIOCore

/// Decodes the audio of a file or standard input, in any format libav knows.
///
/// Owned by one caller, used on one thread at a time; blocks on the disk or the pipe. It opens only the given path, never a file that
/// the media refers to.
package final class AudioFileReader {
    /// Hz, of the first run; every run carries its own rate.
    package let sampleRate: Int
    package let channels: Int
    /// Milliseconds according to the file; nil for pipes and formats without a duration.
    package let durationMs: Int64?
    private let context: UnsafeMutablePointer<AVFormatContext>
    private let decoder: UnsafeMutablePointer<AVCodecContext>
    private let index: Int32
    private let packet: Packet
    private let frame: MediaFrame
    private let maxSeconds: Int
    private var seconds = 0.0
    private var isAtEnd = false
    /// Skipped damaged packets and frames.
    package private(set) var damaged = 0

    /// Total of damaged packets and frames after which reading fails.
    private static let maxDamaged = 1_000

    /// - Parameters:
    ///   - path: "-" is the standard input.
    ///   - maxSeconds: longest audio; reading more throws `.overLimit`.
    ///
    /// Throws `.file` when the path cannot be opened, `.library` when it is not media, `.unsupported` when it has no audio.
    package init(_ path: String, maxSeconds: Int = 86_400) throws(FFmpegError) {
        Library.quiet
        self.maxSeconds = max(1, maxSeconds)
        self.packet = try Packet()
        self.frame = try MediaFrame()
        let context = try Self.open(path)
        do throws(FFmpegError) {
            (self.index, self.decoder) = try Self.openDecoder(context, path)
        } catch {
            Self.close(context)
            throw error
        }
        self.context = context
        self.sampleRate = Int(self.decoder.pointee.sample_rate)
        self.channels = Int(self.decoder.pointee.ch_layout.nb_channels)
        self.durationMs = context.pointee.duration > 0 ? context.pointee.duration / (Int64(AV_TIME_BASE) / 1_000) : nil
    }

    deinit {
        var decoder: UnsafeMutablePointer<AVCodecContext>? = self.decoder
        avcodec_free_context(&decoder)
        Self.close(self.context)
    }

    private static func close(_ context: UnsafeMutablePointer<AVFormatContext>) {
        var io = context.pointee.pb
        var context: UnsafeMutablePointer<AVFormatContext>? = context
        avformat_close_input(&context)
        avio_closep(&io)
    }

    private static func open(_ path: String) throws(FFmpegError) -> UnsafeMutablePointer<AVFormatContext> {
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        // A playlist, or a reference inside a file, could name any file or URL, so libav may open none.
        try check(av_dict_set(&options, "protocol_whitelist", "none", 0), "av_dict_set")
        var io: UnsafeMutablePointer<AVIOContext>?
        // The explicit protocol keeps a path with a colon from selecting another one.
        let opened = avio_open2(&io, path == "-" ? "pipe:0" : "file:" + path, AVIO_FLAG_READ, nil, nil)
        // libav passes on the system's error as −errno; its own codes are far below.
        if opened < 0, opened > -4_096 { throw .file(operation: "open", path: path, errno: -opened) }
        try check(opened, "open \(path)")
        var context = avformat_alloc_context()
        context?.pointee.pb = io
        context?.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        // On failure it frees the context but not the I/O.
        let code = context == nil ? earshot_error_no_memory : avformat_open_input(&context, path, nil, &options)
        guard code >= 0, let context else {
            avio_closep(&io)
            throw .library(operation: "avformat_open_input \(path)", code: code, text: FFmpegError.text(code))
        }
        return context
    }

    private static func openDecoder(
        _ context: UnsafeMutablePointer<AVFormatContext>, _ path: String
    ) throws(FFmpegError) -> (Int32, UnsafeMutablePointer<AVCodecContext>) {
        try check(avformat_find_stream_info(context, nil), "avformat_find_stream_info \(path)")
        var codec: UnsafePointer<AVCodec>?
        let index = av_find_best_stream(context, AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0)
        guard index >= 0, let codec, let stream = context.pointee.streams[Int(index)], let parameters = stream.pointee.codecpar else {
            throw .unsupported("a file without audio (\(path))")
        }
        let decoder = try allocated(avcodec_alloc_context3(codec), "avcodec_alloc_context3")
        do throws(FFmpegError) {
            try check(avcodec_parameters_to_context(decoder, parameters), "avcodec_parameters_to_context")
            decoder.pointee.thread_count = 1
            decoder.pointee.pkt_timebase = stream.pointee.time_base
            try check(avcodec_open2(decoder, codec, nil), "avcodec_open2 (\(path))")
        } catch {
            var decoder: UnsafeMutablePointer<AVCodecContext>? = decoder
            avcodec_free_context(&decoder)
            throw error
        }
        return (index, decoder)
    }

    /// Returns the next run, of any length; nil at the end. Damaged packets and frames are skipped and counted.
    package func next() throws(FFmpegError) -> PCM? {
        while true {
            let code = avcodec_receive_frame(self.decoder, self.frame.pointer)
            if code >= 0 {
                defer { av_frame_unref(self.frame.pointer) }
                guard let pcm = try AudioDecoder.read(self.frame.pointer) else { continue }
                self.seconds += Double(pcm.count) / Double(pcm.sampleRate)
                guard self.seconds <= Double(self.maxSeconds) else {
                    throw .overLimit(field: "audio of the file (seconds)", found: Int(self.seconds.rounded(.up)), max: self.maxSeconds)
                }
                return pcm
            }
            if code == earshot_error_eof { return nil }
            if code != earshot_error_again { try self.countDamage(code, "avcodec_receive_frame") }
            if self.isAtEnd { return nil }
            try self.feed()
        }
    }

    /// Sends the stream's next packet, or the end, to the decoder.
    private func feed() throws(FFmpegError) {
        while true {
            let code = av_read_frame(self.context, self.packet.pointer)
            if code == earshot_error_eof {
                self.isAtEnd = true
                let code = avcodec_send_packet(self.decoder, nil)
                if code != earshot_error_eof { try check(code, "avcodec_send_packet (end)") }
                return
            }
            try check(code, "av_read_frame")
            defer { av_packet_unref(self.packet.pointer) }
            // A decoder treats an empty packet as the end.
            guard self.packet.pointer.pointee.stream_index == self.index, self.packet.pointer.pointee.size > 0 else { continue }
            let sent = avcodec_send_packet(self.decoder, self.packet.pointer)
            if sent < 0 {
                try self.countDamage(sent, "avcodec_send_packet")
                continue
            }
            return
        }
    }

    private func countDamage(_ code: Int32, _ operation: String) throws(FFmpegError) {
        self.damaged += 1
        if self.damaged >= Self.maxDamaged { try check(code, operation) }
    }
}
