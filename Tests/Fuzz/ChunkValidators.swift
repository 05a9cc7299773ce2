import NIOCore
import RTMP

@testable import LinkTransport

extension FuzzTarget {
    /// A server's bytes to a link. librtmp gets the chunks that the guard passes, and must read the same messages as our decoder. It
    /// allocates the length that a header announces, up to the guard's limit.
    static let chunkValidator = FuzzTarget("chunk-validator", maxLength: 4_096, allocationMiB: 18) { input in
        var input = input
        let cuts = Cuts(input.byte())
        let bytes = input.rest
        let whole = LinkRun(bytes, .none)
        let pieces = LinkRun(bytes, cuts)
        expect(whole.messages == pieces.messages && whole.error == pieces.error, "cuts show")
        whole.compare(bytes)
    }
}

private struct LinkRun {
    var messages: [Message] = []
    var error: LinkError?

    init(_ bytes: [UInt8], _ cuts: Cuts) {
        do throws(LinkError) {
            try self.read(bytes, cuts)
        } catch {
            guard case .protocolViolation(let words) = error else { fatalError("\(error)") }
            // If librtmp cannot read what the guard passed, their states of the chunk streams differ.
            expect(!words.contains("librtmp"), words)
            self.error = error
        }
    }

    private mutating func read(_ bytes: [UInt8], _ cuts: Cuts) throws(LinkError) {
        // Without a socket, librtmp can read only the bytes fed to it.
        var link = try LibRTMP.make(-1, url: LinkURL(parsing: "rtmp://host/app/name"), publishes: false, timeoutMs: 1_000)
        var chunks = ChunkValidator(limits: ClientConnection.limits)
        var input = ByteBuffer()
        for var piece in cuts.pieces(of: bytes) {
            input.writeBuffer(&piece)
            while let message = try link.nextMessage(in: &input, chunks: &chunks) {
                self.messages.append(message)
                guard message.type == .setChunkSize,
                    let size = message.payload.getInteger(at: message.payload.readerIndex, as: UInt32.self)
                else { continue }
                try chunks.setChunkSize(size)
                link.setReadChunkSize(chunks.chunkSize)
            }
        }
    }

    /// Compares the messages with those of our decoder, up to an Abort, which librtmp does not know.
    func compare(_ bytes: [UInt8]) {
        var decoder = ChunkDecoder(limits: ClientConnection.limits)
        decoder.append(ByteBuffer(bytes: bytes))
        for message in self.messages {
            guard message.type != .abort else { return }
            do throws(RTMPError) {
                let own = try decoder.nextMessage()
                expect(own == message, "librtmp read \(message), the decoder \(String(describing: own))")
            } catch {
                fatalError("librtmp read \(message), the decoder: \(error)")
            }
        }
    }
}
