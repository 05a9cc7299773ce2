internal import Media
package import NIOCore

extension Track {
    /// The parameter sets to write in front of a keyframe: see ``ParameterSets``.
    ///
    /// MP4 has them in its header. But FFmpeg's reader uses one header per stream, so a new resolution reaches its decoder only through
    /// the samples.
    package var parameterSets: ByteBuffer? {
        guard case .video(let codec) = self.codec else { return nil }
        return ParameterSets.units(in: self.extradata, of: codec)
    }
}
