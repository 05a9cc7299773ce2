import NIOCore
import RTMP
import Testing

/// Decodes chunk streams of foreign peers and compares the messages with those that another implementation read.
@Suite struct CaptureTests {
    static let names = [
        "ffmpeg-publish", "ffmpeg-publish-extended", "ffmpeg-play", "librtmp-publish", "librtmp-publish-extended", "gstreamer-publish",
        "gstreamer-play", "rtmpdump-play", "rtmpdump-play-digest", "nginx-play",
    ]

    /// "type stream timestamp length name", as Vectors/capture.py writes it.
    private func line(_ message: Message) throws -> String {
        var name = ""
        if message.type == .commandAMF0 || message.type == .dataAMF0 {
            var decoder = AMF0Decoder(message.payload)
            name = try decoder.next()?.string ?? ""
        }
        return "\(message.type.rawValue) \(message.streamID) \(message.timestamp) \(message.payload.readableBytes) \(name)"
    }

    @Test(arguments: names) func `every message is found, however the bytes are split`(name: String) throws {
        let bytes = try Capture.chunks(name)
        let whole = Decoded(bytes)
        #expect(whole.error == nil)
        let lines = try whole.messages.map(self.line)
        #expect(lines == (try Capture.text(name + ".messages")).split(separator: "\n").map(String.init))
        #expect(Decoded(bytes, splitAt: Array(0..<bytes.count)) == whole)

        // Splits the capture in two at each of its first 150 bytes, then into random pieces.
        for offset in 0..<min(150, bytes.count) { #expect(Decoded(bytes, splitAt: [offset]) == whole, "split at \(offset)") }
        var generator = Seeded(UInt64(bytes.count))
        for _ in 0..<12 {
            var splits: [Int] = []
            var offset = 0
            while offset < bytes.count {
                splits.append(offset)
                offset += 1 + Int(generator.next() % (generator.next() % 3 == 0 ? 4000 : 40))
            }
            #expect(Decoded(bytes, splitAt: splits) == whole)
        }
    }

    /// Splits at every byte, but reads only 200 bytes beyond each split: linear in the capture's length.
    @Test(arguments: names) func `a split at any byte loses nothing`(name: String) throws {
        let bytes = try Capture.chunks(name)
        let whole = Decoded(bytes).messages
        var decoder = ChunkDecoder()
        var count = 0
        for offset in bytes.indices {
            var copy = decoder
            copy.append(ByteBuffer(bytes: bytes[offset..<min(offset + 200, bytes.count)]))
            var next = count
            while let message = try copy.nextMessage() {
                guard message == whole[next] else {
                    Issue.record("split at \(offset)")
                    return
                }
                next += 1
            }
            decoder.append(ByteBuffer(bytes: [bytes[offset]]))
            while try decoder.nextMessage() != nil { count += 1 }
        }
        #expect(count == whole.count)
    }

    @Test(arguments: names.filter { !$0.hasPrefix("nginx") }) func `a server session takes each client from connect to its end`(
        name: String
    ) throws {
        var session = ServerSession()
        var outputs: [ServerSessionOutput] = []
        for message in Decoded(try Capture.chunks(name)).messages {
            try session.receive(message)
            while let output = session.nextOutput() {
                outputs.append(output)
                switch output {
                case .connect: session.acceptConnect()
                case .publish(let id, let address):
                    #expect(address.path == "live/cam")
                    session.acceptPublish(id)
                case .play(let id, let address):
                    #expect(address.path == "live/cam")
                    session.acceptPlay(id)
                default: break
                }
            }
        }
        #expect(session.isConnected)
        if name.contains("publish") {
            #expect(outputs.contains { if case .publish(streamID: 1, _) = $0 { true } else { false } })
            #expect(outputs.filter { if case .data(streamID: 1, 0, _) = $0 { true } else { false } }.count == 1)
            #expect(outputs.filter { $0 == .unpublish(streamID: 1) }.count == 1)
            #expect(!session.isPublishing(1))
        } else {
            #expect(outputs.contains { if case .play(streamID: 1, _) = $0 { true } else { false } })
            // gstreamer disconnects without stopping.
            #expect(outputs.contains(.stop(streamID: 1)) == !name.hasPrefix("gstreamer"))
        }
    }

    @Test func `a client session reads a foreign server's play`() throws {
        var session = ClientSession()
        session.connect(app: "live", tcUrl: "rtmp://127.0.0.1/live")
        session.createStream()
        while session.nextOutput() != nil {}
        var outputs: [ClientSessionOutput] = []
        for message in Decoded(try Capture.chunks("nginx-play")).messages {
            try session.receive(message)
            while let output = session.nextOutput() {
                outputs.append(output)
                if case .streamCreated(let id) = output { session.play("cam", on: id) }
            }
        }
        #expect(outputs.contains { if case .connected = $0 { true } else { false } })
        #expect(outputs.contains(.streamCreated(streamID: 1)))
        #expect(outputs.contains(.playStarted(streamID: 1)))
        // nginx sends Set Peer Bandwidth; the client answers with a window.
        #expect(outputs.contains { if case .send(let message) = $0 { message.type == .windowAcknowledgementSize } else { false } })
        #expect(outputs.filter { if case .media = $0 { true } else { false } }.count == 189)
    }
}
