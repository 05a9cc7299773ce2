import NIOCore
import RTMP

/// The stream of a synthetic camera. A plain value.
struct StreamShape: Codable, Equatable {
    /// Kilobits a second; 0 for no video.
    var videoKbps: Int
    var framesPerSecond: Int
    /// Frames from one keyframe to the next.
    var gop: Int
    /// Kilobits a second; 0 for no audio.
    var audioKbps: Int

    /// AAC-LC: 1,024 samples a frame at 48 kHz.
    static let audioSamplesPerFrame = 1024
    static let audioSampleRate = 48_000

    /// A keyframe is as large as this many other frames.
    private static let keyframeWeight = 6

    func videoBytes(isKeyframe: Bool) -> Int {
        let perGOP = self.videoKbps * 125 * self.gop / self.framesPerSecond
        let inter = perGOP / (self.gop - 1 + Self.keyframeWeight)
        return max(TagPrefix.video + Stamp.byteCount, isKeyframe ? inter * Self.keyframeWeight : inter)
    }

    var audioBytes: Int {
        max(TagPrefix.audio + Stamp.byteCount, self.audioKbps * 125 * Self.audioSamplesPerFrame / Self.audioSampleRate)
    }
}

/// Bytes of a tag body before the stamp.
enum TagPrefix {
    /// FLV video header 5, NAL unit length 4, NAL unit header 1.
    static let video = 10
    /// FLV audio header.
    static let audio = 2
}

/// FLV tag bodies: well-formed for a relay, though no decoder would find a picture in them (FLV 10.1 §E.4.2, §E.4.3).
enum SyntheticMedia {
    /// The avcC that x264 wrote for 1280 × 720 at 30 frames a second, Main profile.
    private static let avcConfiguration: [UInt8] = [
        0x01, 0x4D, 0x40, 0x1F, 0xFF, 0xE1, 0x00, 0x17, 0x67, 0x4D, 0x40, 0x1F, 0xDA, 0x01, 0x40, 0x16, 0xEC, 0x04, 0x40,
        0x00, 0x00, 0x03, 0x00, 0x40, 0x00, 0x00, 0x0F, 0x03, 0xC6, 0x0C, 0xA8, 0x01, 0x00, 0x04, 0x68, 0xEF, 0x0F, 0xC8,
    ]

    static var videoHeader: ByteBuffer { ByteBuffer(bytes: [0x17, 0x00, 0x00, 0x00, 0x00] + self.avcConfiguration) }
    /// AudioSpecificConfig: AAC-LC, 48 kHz, mono.
    static var audioHeader: ByteBuffer { ByteBuffer(bytes: [0xAF, 0x00, 0x11, 0x88]) }

    static func metadata(_ shape: StreamShape) -> AMF0Value {
        var properties: [(String, Double)] = []
        if shape.videoKbps > 0 {
            properties += [
                ("width", 1280), ("height", 720), ("framerate", Double(shape.framesPerSecond)), ("videocodecid", 7),
                ("videodatarate", Double(shape.videoKbps)),
            ]
        }
        if shape.audioKbps > 0 {
            properties += [("audiocodecid", 10), ("audiodatarate", Double(shape.audioKbps)), ("audiosamplerate", 48_000)]
        }
        return .ecmaArray(properties.map { AMF0Property(name: $0, value: .number($1)) })
    }

    static func video(_ stamp: Stamp, isKeyframe: Bool) -> ByteBuffer {
        var prefix = ByteBuffer(bytes: [isKeyframe ? 0x17 : 0x27, 0x01, 0, 0, 0])
        prefix.writeInteger(UInt32(clamping: stamp.length - 9))
        // NAL unit types 5 and 1: a slice of an IDR picture and of another (H.264 §7.4.1).
        prefix.writeInteger(UInt8(isKeyframe ? 0x65 : 0x41))
        return self.frame(prefix, stamp)
    }

    static func audio(_ stamp: Stamp) -> ByteBuffer {
        self.frame(ByteBuffer(bytes: [0xAF, 0x01]), stamp)
    }

    private static func frame(_ prefix: ByteBuffer, _ stamp: Stamp) -> ByteBuffer {
        var out = ByteBuffer()
        out.reserveCapacity(stamp.length)
        out.writeImmutableBuffer(prefix)
        out.writeWithUnsafeMutableBytes(minimumWritableBytes: Stamp.byteCount) { bytes in
            stamp.write(to: bytes)
            return Stamp.byteCount
        }
        out.writeBytes(Pattern.fill(sequence: stamp.sequence, out.writerIndex..<stamp.length))
        return out
    }
}
