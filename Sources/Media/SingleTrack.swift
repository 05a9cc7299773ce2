internal import NIOCore

extension Frame {
    /// One track of a Multitrack message as a message of its own that is not Multitrack; nil if the message has no such track, or the track's
    /// packet has no other form. For players that do not know Multitrack.
    ///
    /// AVC, AAC and MP3 get FLV's legacy header, which every player reads; other codecs get their FourCC. ModEx is left out.
    ///
    ///     video, AVC   | frame type UB[4] | 7 UB[4] | AVCPacketType UI8 | composition time SI24 | data |
    ///     audio, AAC   | 0xAF | AACPacketType UI8 | data |
    ///     audio, MP3   | 0x2F | data |
    ///     others       | first byte with the track's packet type | FourCC | body as on the wire |
    ///
    /// Sources: FLV 10.1 §E.4.2.1, §E.4.3.1; Enhanced RTMP v2, "ExAudioTagBody" and "ExVideoTagBody".
    package func single(track id: UInt8) throws(MediaError) -> Frame? {
        guard self.tag.flags.contains(.multitrack), let first = self.payload.getInteger(at: self.payload.readerIndex, as: UInt8.self) else {
            return nil
        }
        let header = try EnhancedHeader(self.payload, media: self.kind == .video ? .video(isCommandFrame: false) : .audio)
        var tracks = TrackIterator(header, self.payload)
        while let track = try tracks.next() {
            guard track.id == id else { continue }
            guard let fourCC = track.fourCC,
                let body = self.payload.getSlice(at: self.payload.readerIndex &+ track.body.lowerBound, length: track.body.count)
            else { return nil }
            var payload = ByteBuffer()
            payload.reserveCapacity(8 &+ body.readableBytes)
            guard payload.writeSingleHeader(self.kind, first: first, header.packetType, fourCC) else { return nil }
            payload.writeImmutableBuffer(body)
            return try Frame(kind: self.kind, timestamp: self.timestamp, payload: payload)
        }
        return nil
    }
}

extension ByteBuffer {
    /// Writes what stands before a track's body in a message of its own. Returns false if its codec has no form for this packet.
    fileprivate mutating func writeSingleHeader(_ kind: Frame.Kind, first: UInt8, _ packetType: UInt8, _ fourCC: FourCC) -> Bool {
        switch (kind, fourCC) {
        case (.video, "avc1"):
            let frameType = first & 0x70
            switch packetType {
            case VideoPacketType.sequenceStart, VideoPacketType.sequenceEnd: self.writeBytes([frameType | 7, packetType, 0, 0, 0])
            // The body begins with the composition time.
            case VideoPacketType.codedFrames: self.writeBytes([frameType | 7, packetType])
            case VideoPacketType.codedFramesX: self.writeBytes([frameType | 7, VideoPacketType.codedFrames, 0, 0, 0])
            default: return false
            }
        case (.audio, "mp4a"):
            // 44 kHz, 16 bits, stereo: constants for AAC, whose configuration has the truth.
            guard packetType == AudioPacketType.sequenceStart || packetType == AudioPacketType.codedFrames else { return false }
            self.writeBytes([0xAF, packetType])
        case (.audio, ".mp3"):
            guard packetType == AudioPacketType.codedFrames else { return false }
            self.writeBytes([0x2F])
        default:
            self.writeInteger(first & 0xF0 | packetType)
            self.writeInteger(fourCC.rawValue)
        }
        return true
    }
}
