internal import Media
package import NIOCore

extension Track {
    /// The parameter sets of AVC and HEVC as they stand in front of a keyframe: NAL units, each after its length. Nil for other codecs, and
    /// where there is none.
    ///
    /// MP4 has them in its header. FFmpeg's reader takes one header a stream, so that another resolution reaches its decoder by the
    /// samples alone.
    package var parameterSets: ByteBuffer? {
        let units: [ByteBuffer]
        let lengthSize: Int
        do throws(MediaError) {
            switch self.codec {
            case .video(.avc):
                let record = try AVCConfiguration(self.extradata)
                (units, lengthSize) = (record.sequenceParameterSets + record.pictureParameterSets, record.nalLengthSize)
            case .video(.hevc):
                let record = try HEVCConfiguration(self.extradata)
                units = record.videoParameterSets + record.sequenceParameterSets + record.pictureParameterSets
                lengthSize = record.nalLengthSize
            default: return nil
            }
        } catch {
            // It could be read when the track was made.
            return nil
        }
        var bytes = ByteBuffer()
        for unit in units {
            switch lengthSize {
            case 1:
                guard let length = UInt8(exactly: unit.readableBytes) else { return nil }
                bytes.writeInteger(length)
            case 2: bytes.writeInteger(UInt16(truncatingIfNeeded: unit.readableBytes))
            default: bytes.writeInteger(UInt32(truncatingIfNeeded: unit.readableBytes))
            }
            bytes.writeImmutableBuffer(unit)
        }
        return bytes.readableBytes > 0 ? bytes : nil
    }
}
