internal import CFFmpeg

/// One of FFmpeg's libraries: the version that this program was built with, and the one that it runs with. A value.
package struct LibraryVersion: Sendable, Equatable {
    package let name: String
    package let built: Int
    package let running: Int

    /// FFmpeg's libraries are compatible within a major version.
    package var fits: Bool { self.built == self.running }

    /// Major versions of the libraries in use.
    package static var all: [LibraryVersion] {
        [
            LibraryVersion(name: "libavformat", built: Int(LIBAVFORMAT_VERSION_MAJOR), running: Int(avformat_version() >> 16)),
            LibraryVersion(name: "libavcodec", built: Int(LIBAVCODEC_VERSION_MAJOR), running: Int(avcodec_version() >> 16)),
            LibraryVersion(name: "libavutil", built: Int(LIBAVUTIL_VERSION_MAJOR), running: Int(avutil_version() >> 16)),
            LibraryVersion(name: "libswresample", built: Int(LIBSWRESAMPLE_VERSION_MAJOR), running: Int(swresample_version() >> 16)),
            LibraryVersion(name: "libswscale", built: Int(LIBSWSCALE_VERSION_MAJOR), running: Int(swscale_version() >> 16)),
        ]
    }

    /// FFmpeg's release: "5.1.7-0+deb12u1".
    package static var release: String { av_version_info().map { String(cString: $0) } ?? "of unknown version" }

    /// Decoders and encoders that the server needs and this build of FFmpeg lacks, by name.
    package static var missing: [String] {
        func lacking(_ names: [String], _ kind: String, _ isThere: (String) -> Bool) -> [String] {
            names.filter { !isThere($0) }.map { "\(kind) \($0)" }
        }
        return lacking(["h264", "hevc", "aac"], "decoder") { avcodec_find_decoder_by_name($0) != nil }
            + lacking(["aac", "mjpeg"], "encoder") { avcodec_find_encoder_by_name($0) != nil }
            + lacking(["mp4", "mpegts"], "muxer") { av_guess_format($0, nil, nil) != nil }
    }
}
