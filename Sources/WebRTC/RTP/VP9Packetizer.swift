package import NIOCore

/// VP9 (RFC 9628): one layer, no picture numbers. A value.
///
/// Without numbers players order pictures by packets, as H.264's; a picture that is sent once more, to a viewer that begins anew, would have its old number.
package struct VP9Packetizer: VideoPacketizer {
    private var number: UInt8 = 0

    package init() {}

    package var profile: VideoProfile { .vp9(self.number) }

    package mutating func bundle(_ units: [ByteBuffer], time: Int64, isKeyframe: Bool) -> ByteBuffer? {
        guard let picture = units.first, let first = picture.getInteger(at: picture.readerIndex, as: UInt8.self) else { return nil }
        // VP9's bitstream §6.2: frame_marker 2, profile_low_bit, profile_high_bit.
        if isKeyframe { self.number = first >> 5 & 1 | first >> 3 & 2 }
        var writer = PacketBundle.Writer(
            .video, time: time, isKeyframe: isKeyframe, profile: self.profile, capacity: Payload.capacity(picture.readableBytes))
        writer.addPieces(of: picture, prefixBytes: 1) { isFirst, isLast in
            // §4.2: P, that it is made from others; B and E, where it begins and ends.
            [(isKeyframe ? 0 : 0x40) | (isFirst ? 0x08 : 0) | (isLast ? 0x04 : 0)]
        }
        return writer.finish()
    }
}
