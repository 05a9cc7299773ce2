import NIOCore
import RTMP
import Testing

/// The server decoder's limits for a peer until its publish is accepted.
@Suite struct BeforePublishTests {
    private static func decoder(_ change: (inout Limits) -> Void = { _ in }) -> ChunkDecoder {
        var limits = Limits()
        change(&limits)
        return ChunkDecoder(limits: limits, maySendMedia: false)
    }

    /// Decodes `bytes`, appended in pieces of this size.
    private static func decode(_ bytes: [UInt8], pieces: Int = .max, by decoder: inout ChunkDecoder) -> Decoded {
        var decoded = Decoded()
        var rest = bytes[...]
        while !rest.isEmpty {
            decoder.append(ByteBuffer(bytes: rest.prefix(pieces)))
            rest = rest.dropFirst(pieces)
            do throws(RTMPError) {
                while let message = try decoder.nextMessage() { decoded.messages.append(message) }
            } catch {
                decoded.error = error
                return decoded
            }
        }
        return decoded
    }

    @Test(arguments: [8, 9, 22, 18, 20, 99] as [UInt8]) func `no message is larger than 64 KiB`(type: UInt8) {
        var allowed = Chunks()
        allowed.add(0, 4, length: 64 << 10, type: type, pattern(5))
        var decoder = Self.decoder()
        #expect(Self.decode(allowed.bytes, by: &decoder) == Decoded())
        for length in [(64 << 10) + 1, 1 << 20] {
            var chunks = Chunks()
            chunks.add(0, 4, length: length, type: type)
            decoder = Self.decoder()
            let error = Self.decode(chunks.bytes, by: &decoder).error
            let isMedia = type == 8 || type == 9 || type == 22
            #expect(
                error
                    == (isMedia
                        ? .messageTooLargeBeforePublish(type: type, length: length, limit: 64 << 10)
                        : .messageTooLarge(type: type, length: length, limit: 64 << 10)))
        }
    }

    /// Publish and the first picture arrive in one piece. The picture is decoded after the publish is accepted.
    @Test func `a picture that follows publish passes when it was accepted in between`() throws {
        let picture = pattern(900_000)
        var bytes = ByteBuffer()
        ChunkEncoder(chunkSize: 4_096).encode(control(1, 4_096), chunkStream: 2, into: &bytes)
        let publish = Command("publish", arguments: ["cam", "live"]).message(streamID: 1)
        ChunkEncoder(chunkSize: 4_096).encode(publish, chunkStream: 5, into: &bytes)
        ChunkEncoder(chunkSize: 4_096).encode(Message(9, picture), chunkStream: 6, into: &bytes)
        var decoder = Self.decoder()
        decoder.append(bytes)
        #expect(try decoder.nextMessage() == control(1, 4_096))
        #expect(try decoder.nextMessage() == publish)
        decoder.publishAccepted()
        #expect(try decoder.nextMessage() == Message(9, picture))
        let held = decoder.heldBytes()
        #expect(held < 1_024)
    }

    @Test func `memory follows what came, chunk stream by chunk stream`() {
        var chunks = Chunks()
        for id in 0..<63 { chunks.add(0, 3 + id, length: 64 << 10, type: 9, pattern(128)) }
        var decoder = Self.decoder()
        #expect(Self.decode(chunks.bytes, by: &decoder) == Decoded())
        #expect(HeldMemory(decoder).capacity == 63 * 128)
        let held = decoder.heldBytes()
        #expect(held == 63 * (128 + 128))
    }

    /// Storage grows in powers of two, so the capacity is less than twice the bytes received.
    @Test(arguments: [1, 7, 128, 5_000]) func `never twice what came is reserved`(pieces: Int) {
        var chunks = Chunks()
        chunks.control(1, 0x10_0000)
        chunks.add(0, 4, length: 64 << 10, type: 9, pattern(60_000))
        var decoder = Self.decoder()
        for start in stride(from: 0, to: chunks.bytes.count, by: pieces) {
            decoder.append(ByteBuffer(bytes: chunks.bytes[start..<min(start + pieces, chunks.bytes.count)]))
            while (try? decoder.nextMessage()) != nil {}
            let held = HeldMemory(decoder)
            guard held.capacity < 2 * max(held.partialBytes, 1) else {
                Issue.record("\(held.capacity) bytes for \(held.partialBytes)")
                return
            }
        }
    }

    @Test func `all together hold no more than the bound`() {
        var chunks = Chunks()
        chunks.control(1, 60_000)
        for id in 0..<4 { chunks.add(0, 3 + id, length: 64 << 10, type: 9, pattern(60_000)) }
        var decoder = Self.decoder()
        // The limit counts received bytes; `heldBytes` counts their storage, a power of two each.
        let decoded = Self.decode(chunks.bytes, by: &decoder)
        // Only Set Chunk Size is complete.
        #expect(decoded.error == nil && decoded.messages.map(\.type.rawValue) == [1])
        let held = decoder.heldBytes()
        #expect(held == 4 * (64 << 10) + 5 * 128)
        chunks.add(0, 7, length: 64 << 10, type: 9, pattern(22_000))
        decoder = Self.decoder()
        #expect(Self.decode(chunks.bytes, by: &decoder).error == .tooManyBytesBeforePublish(limit: 256 << 10))
        // A publisher may send as much.
        decoder = Self.decoder()
        decoder.publishAccepted()
        #expect(Self.decode(chunks.bytes, by: &decoder).error == nil)
    }

    @Test func `chunk streams count for what is remembered of them`() {
        var chunks = Chunks()
        for id in 0..<2_048 { chunks.message(3 + id, type: 8, []) }
        var decoder = Self.decoder()
        #expect(Self.decode(chunks.bytes, by: &decoder).error == nil)
        let held = decoder.heldBytes()
        #expect(held == 256 << 10)
        chunks.message(4_000, type: 8, [])
        decoder = Self.decoder()
        #expect(Self.decode(chunks.bytes, by: &decoder).error == .tooManyBytesBeforePublish(limit: 256 << 10))
    }

    @Test func `what is complete or aborted is given back`() {
        var chunks = Chunks()
        for round in 0..<20 {
            chunks.add(0, 4, length: 200, type: 9, pattern(128))
            if round % 2 == 0 { chunks.control(2, 4) } else { chunks.add(3, 4, pattern(72)) }
        }
        var decoder = Self.decoder()
        #expect(Self.decode(chunks.bytes, pieces: 50, by: &decoder).messages.count == 20)
        let held = decoder.heldBytes()
        #expect(held == 2 * 128)
    }
}
