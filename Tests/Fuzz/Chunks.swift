import NIOCore
import RTMP

extension FuzzTarget {
    /// Decodes chunks into messages. Cuts make no difference, and the messages survive encoding and decoding.
    static let chunks = FuzzTarget("chunks", maxLength: 4_096) { input in
        var input = input
        let form = input.byte()
        let cuts = Cuts(input.byte())
        let bytes = input.rest
        let whole = ChunkRun(bytes, .none, maySendMedia: form & 1 == 0)
        expect(whole == ChunkRun(bytes, cuts, maySendMedia: form & 1 == 0), "cuts show")
        whole.checkWriting(chunkSize: 1 + Int(form), chunkStream: [3, 63, 64, 319, 320, 65_599][Int(form >> 1) % 6])
    }
}

private struct ChunkRun: Equatable {
    var messages: [Message] = []
    var error: RTMPError?

    init(_ bytes: [UInt8], _ cuts: Cuts, maySendMedia: Bool) {
        var messages: [Message] = []
        self.error = ChunkFeed.read(bytes, cuts, maySendMedia: maySendMedia) { message, _ in
            messages.append(message)
            Self.open(message)
        }
        self.messages = messages
    }

    /// Checks that an aggregate's parts lie within it.
    private static func open(_ message: Message) {
        guard message.type == .aggregate else { return }
        var parts = Aggregate(message)
        var total = 0
        do throws(RTMPError) {
            while let part = try parts.next() {
                total += part.payload.readableBytes + 11
                expect(part.streamID == message.streamID, "a part on another message stream")
            }
        } catch {
            expect(error == .malformedAggregate, "\(error)")
        }
        expect(total <= message.payload.readableBytes, "parts of \(total) bytes in \(message.payload.readableBytes)")
    }

    /// Checks that messages survive encoding and decoding. Skips control messages that change how others are read.
    func checkWriting(chunkSize: Int, chunkStream: UInt32) {
        let messages = self.messages.filter { $0.type != .setChunkSize && $0.type != .abort }
        var bytes = ByteBuffer()
        ChunkEncoder().encode(ControlMessage.setChunkSize(UInt32(chunkSize)).message, chunkStream: 2, into: &bytes)
        let encoder = ChunkEncoder(chunkSize: chunkSize)
        for message in messages { encoder.encode(message, chunkStream: chunkStream, into: &bytes) }
        var decoder = ChunkDecoder()
        decoder.append(bytes)
        var again: [Message] = []
        do throws(RTMPError) {
            while let message = try decoder.nextMessage() { again.append(message) }
        } catch {
            fatalError("what the encoder wrote: \(error)")
        }
        expect(Array(again.dropFirst()) == messages, "written and read: \(again.count - 1) messages of \(messages.count)")
    }
}
