import Media
import NIOCore
import Testing

@testable import Relay

/// Frames as publishers send them, each with a unique number in its body.
enum Make {
    static func metadata(_ id: Int, at timestamp: Int64 = 0) throws -> Frame {
        try Frame(kind: .data, timestamp: timestamp, payload: self.body([2, 0, 10] + Array("onMetaData".utf8), id, 0))
    }

    static func script(_ id: Int, at timestamp: Int64) throws -> Frame {
        try Frame(kind: .data, timestamp: timestamp, payload: self.body([2, 0, 6] + Array("onCue!".utf8), id, 0))
    }

    static func videoHeader(_ id: Int, at timestamp: Int64 = 0) throws -> Frame {
        try Frame(kind: .video, timestamp: timestamp, payload: self.body([0x17, 0, 0, 0, 0], id, 0))
    }

    static func audioHeader(_ id: Int, at timestamp: Int64 = 0) throws -> Frame {
        try Frame(kind: .audio, timestamp: timestamp, payload: self.body([0xAF, 0], id, 0))
    }

    static func key(_ id: Int, at timestamp: Int64, bytes: Int = 40) throws -> Frame {
        try Frame(kind: .video, timestamp: timestamp, payload: self.body([0x17, 1, 0, 0, 0], id, bytes))
    }

    static func inter(_ id: Int, at timestamp: Int64, bytes: Int = 10) throws -> Frame {
        try Frame(kind: .video, timestamp: timestamp, payload: self.body([0x27, 1, 0, 0, 0], id, bytes))
    }

    static func audio(_ id: Int, at timestamp: Int64, bytes: Int = 3) throws -> Frame {
        try Frame(kind: .audio, timestamp: timestamp, payload: self.body([0xAF, 1], id, bytes))
    }

    static func endOfSequence(_ id: Int, at timestamp: Int64) throws -> Frame {
        try Frame(kind: .video, timestamp: timestamp, payload: self.body([0x17, 2, 0, 0, 0], id, 0))
    }

    /// Enhanced RTMP: one message with a sequence header for each of these tracks.
    static func multitrackHeader(_ id: UInt8, tracks: [UInt8]) throws -> Frame {
        // Ex header, key, Multitrack; ManyTracks, SequenceStart; FourCC; then track id, UI24 size, body.
        var payload = ByteBuffer(bytes: [0x96, 0x10] + Array("hvc1".utf8))
        for track in tracks { payload.writeBytes([track, 0, 0, 1, id]) }
        return try Frame(kind: .video, timestamp: 0, payload: payload)
    }

    private static func body(_ start: [UInt8], _ id: Int, _ filler: Int) -> ByteBuffer {
        var payload = ByteBuffer(bytes: start)
        payload.writeInteger(UInt64(id))
        payload.writeRepeatingByte(UInt8(truncatingIfNeeded: id &* 31), count: filler)
        return payload
    }

    /// Metadata, both sequence headers, then groups of a keyframe, inter frames and audio, 20 ms apart. Ids count from `firstID`.
    static func stream(groups: Int, framesPerGroup: Int = 6, firstID: Int = 1, at start: Int64 = 0) throws -> [Frame] {
        var id = firstID
        func next() -> Int {
            id += 1
            return id - 1
        }
        var frames = [
            try self.metadata(next(), at: start), try self.videoHeader(next(), at: start), try self.audioHeader(next(), at: start),
        ]
        var timestamp = start
        for _ in 0..<groups {
            for position in 0..<framesPerGroup {
                frames.append(position == 0 ? try self.key(next(), at: timestamp) : try self.inter(next(), at: timestamp))
                frames.append(try self.audio(next(), at: timestamp))
                timestamp += 20
            }
        }
        return frames
    }
}

/// The simplest wire format: one header of fixed length, then the payload.
///
/// ```
/// | kind 1 | stream id 4 | timestamp 8 | payload length 4 | payload |     big endian
/// ```
struct TestEncoder: ReversibleEncoder {
    static let headerLength = 17

    func encodedLength(_ frame: Frame) -> Int { Self.headerLength + frame.payload.readableBytes }

    func encode(_ frame: Frame, into bytes: UnsafeMutableRawBufferPointer) -> Int {
        precondition(bytes.count == self.encodedLength(frame))
        bytes[0] = frame.kind.rawValue
        self.setStreamID(1, inHeader: bytes)
        bytes.storeBytes(of: frame.timestamp.bigEndian, toByteOffset: 5, as: Int64.self)
        bytes.storeBytes(of: UInt32(frame.payload.readableBytes).bigEndian, toByteOffset: 13, as: UInt32.self)
        frame.payload.withUnsafeReadableBytes {
            UnsafeMutableRawBufferPointer(rebasing: bytes[Self.headerLength...]).copyMemory(from: $0)
        }
        return Self.headerLength
    }

    func setStreamID(_ streamID: UInt32, inHeader header: UnsafeMutableRawBufferPointer) {
        header.storeBytes(of: streamID.bigEndian, toByteOffset: 1, as: UInt32.self)
    }

    func payload(of encoded: UnsafeRawBufferPointer, headerLength: Int) -> ByteBuffer { ByteBuffer(bytes: encoded[headerLength...]) }
}

/// A message as a viewer read it.
struct Received: Equatable, CustomStringConvertible {
    var kind: Frame.Kind
    var streamID: UInt32
    var timestamp: Int64
    var payload: ByteBuffer

    init(_ frame: Frame, streamID: UInt32 = 1, at timestamp: Int64? = nil) {
        self.kind = frame.kind
        self.streamID = streamID
        self.timestamp = timestamp ?? frame.timestamp
        self.payload = frame.payload
    }

    /// Reads one message; `nil` when the bytes end inside it.
    init?(from bytes: inout ByteBuffer) throws {
        guard
            let (kind, streamID, timestamp, length) = bytes.readMultipleIntegers(as: (UInt8, UInt32, Int64, UInt32).self),
            let payload = bytes.readSlice(length: Int(length))
        else { return nil }
        self.kind = try #require(Frame.Kind(rawValue: kind), "a message starts with its kind")
        self.streamID = streamID
        self.timestamp = timestamp
        self.payload = payload
    }

    func frame() throws -> Frame { try Frame(kind: self.kind, timestamp: self.timestamp, payload: self.payload) }

    /// The number in the body.
    var id: Int {
        let skip = self.kind == .audio ? 2 : (self.kind == .video ? 5 : 3 + Int(self.payload.getInteger(at: 1, as: UInt16.self) ?? 0))
        return self.payload.getInteger(at: self.payload.readerIndex + skip, as: UInt64.self).map { Int($0) } ?? -1
    }

    var description: String { "\(self.kind) #\(self.id) @\(self.timestamp) on \(self.streamID)" }
}

extension [UInt8] {
    /// All messages; the bytes must end where one does.
    func messages() throws -> [Received] {
        var bytes = ByteBuffer(bytes: self)
        var messages: [Received] = []
        while bytes.readableBytes > 0, let message = try Received(from: &bytes) { messages.append(message) }
        #expect(bytes.readableBytes == 0, "the bytes end at the end of a message")
        return messages
    }
}

extension [Frame] {
    func received(streamID: UInt32 = 1) -> [Received] { self.map { Received($0, streamID: streamID) } }
}

/// Describes each of a state's items as one string: easy to compare, and to read when they differ. Omits activity, which has tests of its
/// own.
func describe(_ items: [StreamState.Item]) -> [String] {
    items.compactMap { item in
        switch item {
        case .frame(let frame): "frame \(Received(frame).id) @\(frame.timestamp)"
        case .change(let change, let timestamp): "\(change) @\(timestamp)"
        case .prelude(let frames): "prelude \(frames.map { Received($0).id })"
        case .dropGOP: "dropGOP"
        case .end: "end"
        case .flush(let timestamp): "flush @\(timestamp)"
        case .active, .quiet: nil
        }
    }
}
