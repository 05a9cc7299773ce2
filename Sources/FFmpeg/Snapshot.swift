internal import CFFmpeg
package import Media
package import NIOCore

/// Makes a JPEG of a stream's keyframe. Runs on the caller's thread (5–15 ms for 720p) and keeps nothing.
package enum Snapshot {
    /// Pixels.
    package static let widths = 16...3_840
    /// JPEG quantiser scale: 2 is best.
    package static let qualities = 2...31

    /// Decodes `keyframe` with `header`, the sequence header that was valid for it, and encodes the picture.
    ///
    /// - Parameters:
    ///   - width: in square pixels; made even and clamped to ``widths``. nil: the displayed width.
    ///   - quality: one of ``qualities``.
    ///
    /// Throws `.media` when the frames are not a keyframe and its header, or when the header is broken. Throws `.unsupported` for codecs without a
    /// decoder, `.library` when the keyframe is damaged, `.overLimit` for pictures beyond 67 million pixels.
    package static func jpeg(keyframe: Frame, header: Frame, width: Int? = nil, quality: Int = 4) throws(FFmpegError) -> ByteBuffer {
        guard keyframe.isKeyframe, let sample = Sample(keyframe) else {
            throw .media(.mismatch(expected: "a video keyframe", found: "another message"))
        }
        guard header.kind == .video, header.isSequenceHeader, header.tag.codec == keyframe.tag.codec else {
            throw .media(.mismatch(expected: "the keyframe's sequence header", found: "another message"))
        }
        let track = try Track(header)
        let pixels = track.width * track.height
        guard pixels <= Int(Decoder.maxPixels) else {
            throw .overLimit(field: "picture (pixels)", found: pixels, max: Int(Decoder.maxPixels))
        }
        let decoder = try Decoder(track, isStrict: true)
        var jpeg: ByteBuffer?
        let keepFirst = { (picture: UnsafeMutablePointer<AVFrame>) throws(FFmpegError) in
            if jpeg == nil { jpeg = try Self.encode(picture, width: width, quality: quality) }
        }
        try decoder.decode(sample.payload, keepFirst)
        // Decoders hold pictures back for reordering.
        if jpeg == nil { try decoder.decode(nil, keepFirst) }
        guard let jpeg else {
            throw .library(
                operation: "decode \(track.codecName) keyframe", code: earshot_error_invalid_data,
                text: FFmpegError.text(earshot_error_invalid_data))
        }
        return jpeg
    }

    /// The JPEG's size for a picture of this size and sample aspect ratio. Even, within limits, aspect kept.
    static func size(width: Int, height: Int, aspect: AVRational, wanted: Int?) -> (width: Int, height: Int) {
        // 0 is unknown. A ratio beyond 16 to 1 is a false header.
        var ratio = aspect.num > 0 && aspect.den > 0 ? Double(aspect.num) / Double(aspect.den) : 1
        if !(1.0 / 16...16).contains(ratio) { ratio = 1 }
        let shown = Double(width) * ratio
        let relative = Double(height) / shown
        var target = Double(min(max(wanted ?? Int(shown.rounded()), Self.widths.lowerBound), Self.widths.upperBound))
        if target * relative > Double(Self.widths.upperBound) { target = max(16, Double(Self.widths.upperBound) / relative) }
        let even = { (value: Double) in max(2, min(Self.widths.upperBound, Int(value) & ~1)) }
        let evenWidth = even(target)
        return (evenWidth, even((Double(evenWidth) * relative + 1).rounded(.down)))
    }

    private static func encode(_ picture: UnsafeMutablePointer<AVFrame>, width: Int?, quality: Int) throws(FFmpegError) -> ByteBuffer {
        let size = Self.size(
            width: Int(picture.pointee.width), height: Int(picture.pointee.height), aspect: picture.pointee.sample_aspect_ratio,
            wanted: width)
        let scaled = try MediaFrame()
        let target = scaled.pointer
        target.pointee.format = AV_PIX_FMT_YUVJ420P.rawValue
        target.pointee.width = Int32(size.width)
        target.pointee.height = Int32(size.height)
        target.pointee.color_range = AVCOL_RANGE_JPEG
        target.pointee.colorspace = AVCOL_SPC_BT470BG
        try check(av_frame_get_buffer(target, 0), "av_frame_get_buffer")
        try Self.scale(picture, to: target)
        let scale = Int32(min(max(quality, Self.qualities.lowerBound), Self.qualities.upperBound)) * FF_QP2LAMBDA
        target.pointee.quality = scale
        target.pointee.pts = 0
        return try JPEGEncoder(width: size.width, height: size.height, quality: scale).encode(target)
    }

    private static func scale(_ source: UnsafeMutablePointer<AVFrame>, to target: UnsafeMutablePointer<AVFrame>) throws(FFmpegError) {
        let format = AVPixelFormat(rawValue: source.pointee.format)
        let plain = Self.withoutRange(format)
        let isFull = source.pointee.color_range == AVCOL_RANGE_JPEG || format != plain
        guard let context = sws_alloc_context() else { throw .unsupported("scaling") }
        defer { sws_freeContext(context) }
        // The ranges must be set from the start: without scaling libswscale would choose to copy.
        let options: [(String, Int32)] = [
            ("srcw", source.pointee.width), ("srch", source.pointee.height), ("src_format", plain.rawValue), ("src_range", isFull ? 1 : 0),
            ("dstw", target.pointee.width), ("dsth", target.pointee.height), ("dst_format", AV_PIX_FMT_YUV420P.rawValue),
            ("dst_range", 1), ("sws_flags", earshot_scale_flags),
        ]
        for (name, value) in options {
            try check(av_opt_set_int(UnsafeMutableRawPointer(context), name, Int64(value), 0), "av_opt_set_int (\(name))")
        }
        try check(sws_init_context(context, nil, nil), "sws_init_context (pixel format \(format.rawValue))")
        // JFIF: BT.601 in full range. Like players, assume BT.601 below 720 lines and BT.709 from there when the source does not say.
        let space = source.pointee.colorspace
        let unknown = space == AVCOL_SPC_UNSPECIFIED || space == AVCOL_SPC_RGB
        let matrix = unknown ? (source.pointee.height >= 720 ? SWS_CS_ITU709 : SWS_CS_ITU601) : Int32(space.rawValue)
        sws_setColorspaceDetails(
            context, sws_getCoefficients(matrix), isFull ? 1 : 0, sws_getCoefficients(SWS_CS_ITU601), 1, 0, 1 << 16, 1 << 16)
        try check(
            withUnsafePointers(source, target) { from, fromStride, to, toStride in
                sws_scale(context, from, fromStride, 0, source.pointee.height, to, toStride)
            }, "sws_scale")
    }

    /// Maps pixel formats that imply full range to their plain equivalents.
    private static func withoutRange(_ format: AVPixelFormat) -> AVPixelFormat {
        switch format {
        case AV_PIX_FMT_YUVJ420P: AV_PIX_FMT_YUV420P
        case AV_PIX_FMT_YUVJ422P: AV_PIX_FMT_YUV422P
        case AV_PIX_FMT_YUVJ444P: AV_PIX_FMT_YUV444P
        default: format
        }
    }
}

/// Lends two pictures' planes to a C function.
private func withUnsafePointers(
    _ source: UnsafeMutablePointer<AVFrame>, _ target: UnsafeMutablePointer<AVFrame>,
    _ body: (
        UnsafePointer<UnsafePointer<UInt8>?>, UnsafePointer<Int32>, UnsafePointer<UnsafeMutablePointer<UInt8>?>, UnsafePointer<Int32>
    ) -> Int32
) -> Int32 {
    var from = source.pointee.data
    var fromStride = source.pointee.linesize
    var to = target.pointee.data
    var toStride = target.pointee.linesize
    return withUnsafeBytes(of: &from) { from in
        withUnsafeBytes(of: &fromStride) { fromStride in
            withUnsafeBytes(of: &to) { to in
                withUnsafeBytes(of: &toStride) { toStride in
                    guard let from = from.bindMemory(to: UnsafePointer<UInt8>?.self).baseAddress,
                        let fromStride = fromStride.bindMemory(to: Int32.self).baseAddress,
                        let to = to.bindMemory(to: UnsafeMutablePointer<UInt8>?.self).baseAddress,
                        let toStride = toStride.bindMemory(to: Int32.self).baseAddress
                    else { return earshot_error_invalid_data }
                    return body(from, fromStride, to, toStride)
                }
            }
        }
    }
}
