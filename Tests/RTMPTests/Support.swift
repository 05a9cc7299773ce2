import Foundation
import NIOCore
import RTMP
import Testing

/// xorshift64: seeded, so that a failure repeats.
struct Seeded: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { self.state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        self.state ^= self.state << 13
        self.state ^= self.state >> 7
        self.state ^= self.state << 17
        return self.state
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: self.next() >> 24) }
    }
}

/// Bytes from hexadecimal digits; spaces and line ends are ignored.
func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap { $0.hexDigitValue.map(UInt8.init) }
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// Bytes with a long period, so that a misplaced piece shows.
func pattern(_ count: Int, from start: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 + start) &* 31 &+ ($0 + start) >> 8) }
}

/// The recordings under Vectors. The README there names the origin of each.
enum Capture {
    static let handshakeLength = 1 + 2 * 1536

    static func bytes(_ file: String) throws -> [UInt8] {
        let folder = try #require(Bundle.module.url(forResource: "Vectors", withExtension: nil))
        return try [UInt8](Data(contentsOf: folder.appendingPathComponent(file)))
    }

    /// The chunk stream that follows the handshake.
    static func chunks(_ name: String) throws -> [UInt8] {
        try Array(self.bytes(name + ".bin").dropFirst(self.handshakeLength))
    }

    static func text(_ file: String) throws -> String {
        try String(decoding: self.bytes(file), as: UTF8.self)
    }
}

/// The messages that a decoder read, and the error that ended it, if any.
struct Decoded: Equatable {
    var messages: [Message] = []
    var error: RTMPError?

    init(_ messages: [Message] = [], error: RTMPError? = nil) {
        self.messages = messages
        self.error = error
    }

    /// Feeds `bytes` in pieces that end at the given places and at the end.
    init(_ bytes: [UInt8], splitAt splits: [Int] = [], limits: Limits = Limits()) {
        var decoder = ChunkDecoder(limits: limits)
        var start = 0
        for end in splits + [bytes.count] {
            self.drain(&decoder, bytes[start..<end])
            start = end
            if self.error != nil { return }
        }
    }

    private mutating func drain(_ decoder: inout ChunkDecoder, _ bytes: ArraySlice<UInt8>) {
        decoder.append(ByteBuffer(bytes: bytes))
        do throws(RTMPError) {
            while let message = try decoder.nextMessage() { self.messages.append(message) }
        } catch {
            self.error = error
        }
    }
}

/// Expects the same outcome from `bytes` whole, byte by byte, and split at each place below `splits`.
func expectDecoded(
    _ bytes: [UInt8], _ expected: Decoded, _ name: String, limits: Limits = Limits(), splits: Int = .max,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(Decoded(bytes, limits: limits) == expected, "\(name): whole", sourceLocation: sourceLocation)
    let single = Decoded(bytes, splitAt: Array(0..<bytes.count), limits: limits)
    #expect(single == expected, "\(name): byte by byte", sourceLocation: sourceLocation)
    for offset in 0..<min(splits, bytes.count) where Decoded(bytes, splitAt: [offset], limits: limits) != expected {
        Issue.record("\(name): split at \(offset)", sourceLocation: sourceLocation)
        return
    }
}

/// Builds chunks by hand, so that no test of the decoder rests on our encoder.
struct Chunks {
    enum Form { case shortest, two, three }
    private(set) var bytes: [UInt8] = []

    static func basic(_ format: UInt8, _ id: Int, _ form: Form = .shortest) -> [UInt8] {
        let rest = id - 64
        switch form {
        case .shortest where id < 64: return [format << 6 | UInt8(id)]
        case .shortest where id < 320: return self.basic(format, id, .two)
        case .shortest: return self.basic(format, id, .three)
        case .two: return [format << 6, UInt8(rest)]
        case .three: return [format << 6 | 1, UInt8(rest & 0xFF), UInt8(rest >> 8)]
        }
    }

    static func bigEndian(_ value: UInt32, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> UInt32(8 * $0)) }
    }

    /// Adds one chunk with those of time, length, type and stream that its format carries. Formats 0 to 2 get an extended timestamp if
    /// `time` needs one.
    mutating func add(
        _ format: UInt8, _ id: Int, time: UInt32 = 0, length: Int = 0, type: UInt8 = 9, stream: UInt32 = 1, form: Form = .shortest,
        extended: UInt32? = nil, _ payload: [UInt8] = []
    ) {
        self.bytes += Self.basic(format, id, form)
        if format < 3 { self.bytes += Self.bigEndian(min(time, 0xFF_FFFF), 3) }
        if format < 2 { self.bytes += Self.bigEndian(UInt32(length), 3) + [type] }
        if format == 0 { self.bytes += Self.bigEndian(stream, 4).reversed() }
        if format < 3, time >= 0xFF_FFFF { self.bytes += Self.bigEndian(time, 4) }
        if let extended { self.bytes += Self.bigEndian(extended, 4) }
        self.bytes += payload
    }

    /// Adds a whole message in one fmt 0 chunk.
    mutating func message(_ id: Int, type: UInt8, time: UInt32 = 0, stream: UInt32 = 1, _ payload: [UInt8]) {
        self.add(0, id, time: time, length: payload.count, type: type, stream: stream, payload)
    }

    mutating func control(_ type: UInt8, _ value: UInt32) {
        self.message(2, type: type, stream: 0, Self.bigEndian(value, 4))
    }
}

extension Message {
    init(_ type: UInt8, time: UInt32 = 0, stream: UInt32 = 1, _ payload: [UInt8] = []) {
        self.init(type: MessageType(rawValue: type), streamID: stream, timestamp: time, payload: ByteBuffer(bytes: payload))
    }
}

func control(_ type: UInt8, _ value: UInt32) -> Message {
    Message(type, stream: 0, Chunks.bigEndian(value, 4))
}
