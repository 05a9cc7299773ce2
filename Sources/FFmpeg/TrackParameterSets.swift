internal import Media
package import NIOCore

extension Track {
    /// What goes in front of a keyframe: see ``ParameterSets``.
    ///
    /// MP4 has them in its header. FFmpeg's reader takes one header a stream, so that another resolution reaches its decoder by the
    /// samples alone.
    package var parameterSets: ByteBuffer? {
        guard case .video(let codec) = self.codec else { return nil }
        return ParameterSets.units(in: self.extradata, of: codec)
    }
}
