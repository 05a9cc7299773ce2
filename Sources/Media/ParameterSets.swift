package import NIOCore

/// AVC's and HEVC's parameter sets as they precede a keyframe: NAL units, each after its length.
///
/// A sequence header has them too, but some readers ignore a second one: FFmpeg's MP4 reader, and VLC for RTMP and FLV. In a keyframe they
/// reach every decoder.
package enum ParameterSets {
    /// Returns the parameter sets of a configuration record. Nil for other codecs, and if there are none or they cannot be read.
    package static func units(in record: ByteBuffer, of codec: VideoCodec?) -> ByteBuffer? {
        do throws(MediaError) {
            switch codec {
            case .avc?:
                let record = try AVCConfiguration(record)
                return self.joined(record.sequenceParameterSets + record.pictureParameterSets, lengthSize: record.nalLengthSize)
            case .hevc?:
                let record = try HEVCConfiguration(record)
                let units = record.videoParameterSets + record.sequenceParameterSets + record.pictureParameterSets
                return self.joined(units, lengthSize: record.nalLengthSize)
            default: return nil
            }
        } catch {
            // The record was checked when it arrived.
            return nil
        }
    }

    private static func joined(_ units: [ByteBuffer], lengthSize: Int) -> ByteBuffer? {
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
