package import NIOCore

/// The RTP payloads of one picture or one run of sound, cut for all viewers alike. Each viewer puts its own header before every one, and encrypts.
///
/// ```
/// tag 1 | kind 1 | flags 1 | codec 1 | length 4 | count 2 | profile 1 | constraints 1 | time 8, in the track's clock | (length 2, payload)…
/// ```
/// In the machine's own byte order: it never leaves the process. The tag is what an FLV tag's body of coded media may begin with, so that the relay can
/// carry bundles as it carries any frame. A value that only reads; the owner keeps the bytes.
package struct PacketBundle {
    package enum Kind: UInt8, Sendable {
        case video = 0
        case opus, pcmu, pcma

        /// Hz
        package var clockRate: Int64 {
            switch self {
            case .video: 90_000
            case .opus: 48_000
            case .pcmu, .pcma: 8_000
            }
        }

        package var sound: Negotiation.Sound? { Negotiation.Sound(rawValue: self.rawValue) }
    }

    static let headerBytes = 20
    private static let keyframe: UInt8 = 1
    private static let codecAt = 3
    private static let lengthAt = 4
    private static let countAt = 8
    private static let profileAt = 10
    private static let timeAt = 12

    /// FLV 10.1 §E.4.2.1 and §E.4.3.1: MP3; a keyframe or another picture of Sorenson H.263.
    private static func tag(_ kind: Kind, isKeyframe: Bool) -> UInt8 { kind == .video ? isKeyframe ? 0x12 : 0x22 : 0x2F }

    package let bytes: UnsafeRawBufferPointer
    package let kind: Kind

    /// Nil for bytes that no ``Writer`` wrote.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headerBytes, Int(bytes.loadUnaligned(fromByteOffset: Self.lengthAt, as: UInt32.self)) == bytes.count,
            let kind = Kind(rawValue: bytes[1])
        else { return nil }
        self.bytes = bytes
        self.kind = kind
    }

    package var isKeyframe: Bool { self.bytes[2] & Self.keyframe != 0 }
    package var count: Int { Int(self.bytes.loadUnaligned(fromByteOffset: Self.countAt, as: UInt16.self)) }
    /// Of pictures.
    package var profile: VideoProfile {
        VideoProfile(
            VideoProfile.Codec(rawValue: self.bytes[Self.codecAt]) ?? .h264, self.bytes[Self.profileAt],
            constraints: self.bytes[Self.profileAt + 1])
    }
    /// On the stream's timeline, in units of the kind's clock.
    package var time: Int64 { self.bytes.loadUnaligned(fromByteOffset: Self.timeAt, as: Int64.self) }

    /// Calls `body` with each payload and whether it is the last.
    @inline(__always)
    package func forEach(_ body: (UnsafeRawBufferPointer, Bool) -> Void) {
        var offset = Self.headerBytes
        while offset + 2 <= self.bytes.count {
            let length = Int(self.bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
            let end = offset + 2 + length
            guard end <= self.bytes.count else { return }
            body(UnsafeRawBufferPointer(rebasing: self.bytes[(offset + 2)..<end]), end == self.bytes.count)
            offset = end
        }
    }

    /// The payload with this number, and whether it is the last.
    package func payload(_ number: Int) -> (bytes: UnsafeRawBufferPointer, isLast: Bool)? {
        var index = 0
        var found: (UnsafeRawBufferPointer, Bool)?
        self.forEach { payload, isLast in
            if index == number { found = (payload, isLast) }
            index += 1
        }
        return found
    }

    /// Writes a bundle.
    package struct Writer {
        private var bytes: ByteBuffer
        private var count: UInt16 = 0

        package init(_ kind: Kind, time: Int64, isKeyframe: Bool = false, profile: VideoProfile? = nil, capacity: Int) {
            self.bytes = ByteBufferAllocator().buffer(capacity: PacketBundle.headerBytes + capacity)
            self.bytes.writeBytes([
                PacketBundle.tag(kind, isKeyframe: isKeyframe), kind.rawValue, isKeyframe ? PacketBundle.keyframe : 0,
                profile?.codec.rawValue ?? 0,
            ])
            self.bytes.writeInteger(UInt32(0), endianness: .host)
            self.bytes.writeInteger(UInt16(0), endianness: .host)
            self.bytes.writeBytes([profile?.number ?? 0, profile?.constraints ?? 0])
            self.bytes.writeInteger(time, endianness: .host)
        }

        /// Adds a payload of these parts, at most 65,535 bytes together.
        mutating func add(_ prefix: [UInt8], _ rest: ByteBuffer) {
            self.bytes.writeInteger(UInt16(truncatingIfNeeded: prefix.count + rest.readableBytes), endianness: .host)
            self.bytes.writeBytes(prefix)
            self.bytes.writeImmutableBuffer(rest)
            self.count += 1
        }

        package mutating func add(_ payload: ByteBuffer) { self.add([], payload) }

        package var isEmpty: Bool { self.count == 0 }

        package consuming func finish() -> ByteBuffer {
            self.bytes.setInteger(UInt32(truncatingIfNeeded: self.bytes.readableBytes), at: PacketBundle.lengthAt, endianness: .host)
            self.bytes.setInteger(self.count, at: PacketBundle.countAt, endianness: .host)
            return self.bytes
        }
    }
}
