internal import CFFmpeg

/// The version of the FFmpeg libraries in use.
package enum FFmpegVersion {
    /// Such as "5.1.6-0+deb12u1".
    package static var text: String { String(cString: av_version_info()) }
}
