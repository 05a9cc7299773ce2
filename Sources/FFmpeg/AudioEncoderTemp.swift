package import NIOCore
extension AudioEncoder {
    package enum Codec: Sendable { case aac, opus }
    package convenience init(codec: Codec, sampleRate: Int, channels: Int, bitRate: Int) throws(FFmpegError) {
        try self.init(sampleRate: sampleRate, channels: channels, bitRate: bitRate)
    }
    package var sequenceMessage: ByteBuffer { var b = ByteBuffer(bytes: [0xAF, 0]); b.writeImmutableBuffer(self.track.extradata); return b }
    package func message(_ run: Run) -> ByteBuffer { var b = ByteBuffer(bytes: [0xAF, 1]); b.writeImmutableBuffer(run.payload); return b }
}
