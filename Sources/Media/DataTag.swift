package import NIOCore

extension TagInfo {
    /// Classifies script data, with or without the publisher's `@setDataFrame` before it.
    ///
    /// ```
    /// onMetaData with values                              metadata: kept for joiners, sent at time 0
    /// any other name: onCuePoint, onTextData, onCaption…  timed data that the device sends on purpose: relayed unchanged
    /// no name, a name in `isForServers`, onMetaData without values   not for players
    /// ```
    /// Players show a track for each kind of data message they receive. They wait for more of it (FFmpeg's flvdec.c).
    ///
    /// `bodyOffset` is where the name `onMetaData` starts; viewers receive the payload from there. Reads only names, and leaves the values
    /// to the AMF decoder. Never throws.
    package static func parseData(_ payload: ByteBuffer) -> TagInfo {
        var bytes = payload
        _ = bytes.skipAMF0String("@setDataFrame")
        let offset = payload.readableBytes &- bytes.readableBytes
        let length = bytes.readableBytes
        if bytes.skipAMF0String("onMetaData") {
            return length < Self.leastMetadata
                ? TagInfo(flags: .notForPlayers) : TagInfo(flags: .metadata, bodyOffset: UInt32(clamping: offset))
        }
        return bytes.isForServers ? TagInfo(flags: .notForPlayers) : TagInfo()
    }

    /// Minimum bytes of metadata with a value; less has room only for the name and an empty object. FFmpeg's FLV reader does not parse
    /// shorter script data, and makes a track of it at any time.
    private static let leastMetadata = 19
}

extension ByteBuffer {
    /// Skips an AMF0 string of exactly this text: marker 2, UI16 length, UTF-8 (AMF0 §2.4). Otherwise returns false and leaves the reader
    /// in place.
    fileprivate mutating func skipAMF0String(_ text: StaticString) -> Bool {
        guard self.startsWithAMF0String(text, exactly: true) else { return false }
        self.moveReaderIndex(forwardBy: text.utf8CodeUnitCount &+ 3)
        return true
    }

    /// Whether the buffer starts with an AMF0 string that is or begins with this text.
    private func startsWithAMF0String(_ text: StaticString, exactly: Bool) -> Bool {
        let count = text.utf8CodeUnitCount
        guard
            self.getInteger(at: self.readerIndex, as: UInt8.self) == 2,
            let length = self.getInteger(at: self.readerIndex &+ 1, as: UInt16.self),
            exactly ? Int(length) == count : Int(length) >= count,
            self.readableBytes >= count &+ 3
        else { return false }
        return self.withUnsafeReadableBytes { bytes in
            text.withUTF8Buffer { expected in bytes[3..<(3 &+ count)].elementsEqual(expected) }
        }
    }

    /// Whether script data other than `onMetaData` has nothing that a player could show.
    fileprivate var isForServers: Bool {
        // Without a name, players have no handler to call.
        guard self.getInteger(at: self.readerIndex, as: UInt8.self) == 2,
            let length = self.getInteger(at: self.readerIndex &+ 1, as: UInt16.self), length > 0, self.readableBytes >= Int(length) &+ 3
        else { return true }
        // "@": calls to the server, such as `@clearDataFrame`. "|RtmpSampleAccess": a server's permission to read samples. "onFI": the wall
        // clock that encoders stamp frames with for the server's recorder. The others are a server's messages about a connection.
        return self.startsWithAMF0String("@", exactly: false) || self.startsWithAMF0String("|RtmpSampleAccess", exactly: true)
            || self.startsWithAMF0String("onFI", exactly: true) || self.startsWithAMF0String("onStatus", exactly: true)
            || self.startsWithAMF0String("onPlayStatus", exactly: true)
    }
}
