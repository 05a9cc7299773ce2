import NIOCore
import RTMP
import Testing

/// Runs both sides against each other and against captures of foreign peers.
@Suite struct HandshakeTests {
    private static let noise = pattern(1536)

    /// The reaction of one side to its input. `rest` holds the bytes after the handshake.
    private struct Outcome: Equatable {
        var sent: [UInt8] = []
        var isDone = false
        var rest: [UInt8] = []
        var error: RTMPError?
    }

    private func pieces(_ bytes: [UInt8], _ splits: [Int]) -> [ByteBuffer] {
        var start = 0
        return (splits + [bytes.count]).map { end in
            defer { start = end }
            return ByteBuffer(bytes: bytes[start..<end])
        }
    }

    private func serve(_ bytes: [UInt8], splitAt splits: [Int] = [], random: [[UInt8]] = []) -> Outcome {
        var server = ServerHandshake()
        var random = random
        return self.run(bytes, splits) { (piece) throws(RTMPError) in
            let out = try server.receive(&piece) { Array((random.isEmpty ? Self.noise : random.removeFirst()).prefix($0)) }
            return (out, server.isDone)
        }
    }

    private func run(
        _ bytes: [UInt8], _ splits: [Int], _ receive: (inout ByteBuffer) throws(RTMPError) -> (ByteBuffer?, Bool)
    ) -> Outcome {
        var outcome = Outcome()
        for var piece in self.pieces(bytes, splits) {
            do throws(RTMPError) {
                if !outcome.isDone {
                    let (out, isDone) = try receive(&piece)
                    outcome.sent += Array((out ?? ByteBuffer()).readableBytesView)
                    outcome.isDone = isDone
                }
            } catch {
                outcome.error = error
                return outcome
            }
            outcome.rest += Array(piece.readableBytesView)
        }
        return outcome
    }

    private static let kinds: [ClientHandshake.Kind] = [.simple, .digest(scheme: 0), .digest(scheme: 1)]

    // MARK: Both sides in memory

    @Test(arguments: kinds) func `server and client agree at any split, and leave what follows`(kind: ClientHandshake.Kind) throws {
        let tail: [UInt8] = [0x02, 0xAA, 0xBB]
        var client = ClientHandshake(kind: kind)
        var generator = Seeded(7)
        let first = Array(client.start { generator.bytes($0) }.readableBytesView)
        #expect(first.count == 1537 && first[0] == 3)

        let answer = self.serve(first).sent
        #expect(answer.count == 3073 && answer[0] == 3)
        var copy = client
        let whole = self.run(answer + tail, []) { (piece) throws(RTMPError) in
            (try copy.receive(&piece) { Array(Self.noise.prefix($0)) }, copy.isDone)
        }
        #expect(whole.error == nil && whole.isDone && whole.rest == tail && whole.sent.count == 1536)

        let clientBytes = first + whole.sent + tail
        let expected = self.serve(clientBytes)
        #expect(expected.isDone && expected.rest == tail && expected.sent == answer && expected.error == nil)
        #expect(self.serve(clientBytes, splitAt: Array(0..<clientBytes.count)) == expected)
        for offset in 0..<clientBytes.count {
            #expect(self.serve(clientBytes, splitAt: [offset]) == expected, "server, split at \(offset)")
        }
        let serverBytes = answer + tail
        for offset in 0..<serverBytes.count {
            var copy = client
            let outcome = self.run(serverBytes, [offset]) { (piece) throws(RTMPError) in
                (try copy.receive(&piece) { Array(Self.noise.prefix($0)) }, copy.isDone)
            }
            #expect(outcome == whole, "client, split at \(offset)")
        }
        let single = self.run(serverBytes, Array(0..<serverBytes.count)) { (piece) throws(RTMPError) in
            (try client.receive(&piece) { pattern($0) }, client.isDone)
        }
        #expect(single == whole)
    }

    @Test func `a simple answer echoes C1 and keeps S1's version bytes zero`() {
        let c1 = pattern(4) + [0, 0, 0, 0] + pattern(1528, from: 99)
        let outcome = self.serve([3] + c1)
        #expect(!outcome.isDone && outcome.sent.count == 3073)
        #expect(outcome.sent[0] == 3)
        #expect(Array(outcome.sent[1..<9]) == [UInt8](repeating: 0, count: 8))
        #expect(Array(outcome.sent[1537...]) == c1)
    }

    @Test func `a version in C1 without a digest gets a simple answer`() {
        let c1 = [0, 0, 0, 0, 9, 0, 124, 2] + pattern(1528)
        #expect(Array(self.serve([3] + c1).sent[1537...]) == c1)
    }

    @Test(arguments: [
        [UInt8](repeating: 0, count: 1536), [UInt8](repeating: 0xFF, count: 1536), pattern(1536),
    ]) func `C2 is counted, not judged`(c2: [UInt8]) {
        let outcome = self.serve([3] + [UInt8](repeating: 0, count: 1536) + c2 + [9])
        #expect(outcome.isDone && outcome.rest == [9] && outcome.error == nil)
    }

    // MARK: Refusals

    private static let refusals: [(bytes: [UInt8], error: RTMPError)] = [
        ([0], .unsupportedVersion(0)), ([2], .unsupportedVersion(2)), ([4], .unsupportedVersion(4)),
        ([6], .unsupportedVersion(6)), ([8], .unsupportedVersion(8)), ([0xFF], .unsupportedVersion(0xFF)),
        (Array("GET / HTTP/1.1\r\n\r\n".utf8), .notRTMP("an HTTP request")),
        (Array("POST /open/1 HTTP/1.1\r\n".utf8), .notRTMP("an HTTP request")),
        (Array("HEAD / HTTP/1.0\r\n".utf8), .notRTMP("an HTTP request")),
        (Array("OPTIONS * HTTP/1.1\r\n".utf8), .notRTMP("an HTTP request")),
        ([0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3], .notRTMP("a TLS hello")),
    ]

    @Test(arguments: refusals) func `another protocol is refused at its first byte`(bytes: [UInt8], error: RTMPError) {
        #expect(self.serve(bytes) == Outcome(error: error))
        #expect(self.serve([bytes[0]]) == Outcome(error: error))
    }

    @Test func `a server of another version is refused`() {
        var client = ClientHandshake()
        _ = client.start { pattern($0) }
        var bytes = ByteBuffer(bytes: [5])
        #expect(throws: RTMPError.unsupportedVersion(5)) { try client.receive(&bytes) { pattern($0) } }
    }

    @Test(arguments: [0, 1]) func `a wrong signature in S2 is refused, wherever the flipped bit is`(scheme: Int) {
        for offset in [1537, 2000, 3040, 3041, 3072] {
            var client = ClientHandshake(kind: .digest(scheme: scheme))
            let first = Array(client.start { pattern($0) }.readableBytesView)
            var answer = self.serve(first).sent
            answer[offset] ^= 0x10
            var bytes = ByteBuffer(bytes: answer)
            #expect(throws: RTMPError.handshakeDigestMismatch) { try client.receive(&bytes) { pattern($0) } }
        }
    }

    // MARK: Foreign peers

    private static let clients = [
        "ffmpeg-publish", "ffmpeg-publish-extended", "ffmpeg-play", "librtmp-publish", "librtmp-publish-extended", "gstreamer-publish",
        "gstreamer-play", "rtmpdump-play", "rtmpdump-play-digest",
    ]

    @Test(arguments: clients) func `foreign clients are answered and their chunks left alone`(name: String) throws {
        let bytes = try Capture.bytes(name + ".bin")
        let expected = self.serve(bytes)
        #expect(expected.isDone && expected.error == nil)
        #expect(expected.rest == Array(bytes.dropFirst(Capture.handshakeLength)))
        for offset in [0, 1, 2, 9, 1536, 1537, 1538, 3072, 3073, 3074] + Array(stride(from: 0, to: 3080, by: 61)) {
            #expect(self.serve(bytes, splitAt: [offset]) == expected, "split at \(offset)")
        }
        #expect(self.serve(bytes, splitAt: Array(0..<bytes.count)) == expected)
        // ffmpeg and rtmpdump -W send digests; the others send zeros as the version.
        let isSimple = Array(expected.sent[1537...]) == Array(bytes[1..<1537])
        #expect(isSimple == !(name.hasPrefix("ffmpeg") || name.hasSuffix("digest")))
    }

    /// These clients verified the recorded S1 and S2, so ours must be the same from the same random bytes.
    @Test(arguments: ["rtmpdump-play-digest", "ffmpeg-play"]) func `our digests are those that foreign clients verified`(name: String)
        throws
    {
        let random = try Capture.bytes(name + ".random")
        let outcome = self.serve(try Capture.bytes(name + ".bin"), random: [Array(random[..<1536]), Array(random[1536...])])
        #expect(outcome.sent == (try Capture.bytes(name + ".sent")))
    }

    private static let servers: [(name: String, kind: ClientHandshake.Kind)] = [
        ("nginx-simple", .simple), ("nginx-digest0", .digest(scheme: 0)), ("nginx-digest1", .digest(scheme: 1)),
        ("nginx-play", .digest(scheme: 0)), ("ffmpeg-listen", .digest(scheme: 0)),
    ]

    @Test(arguments: servers) func `foreign servers' answers are accepted at any split`(name: String, kind: ClientHandshake.Kind) throws {
        let random = try Capture.bytes(name + ".random")
        let sent = try Capture.bytes(name + ".sent")
        let bytes = try Capture.bytes(name + ".bin")
        var client = ClientHandshake(kind: kind)
        // The server accepted this C1. nginx found its digest, if any; ffmpeg-listen answers simple whatever is offered.
        #expect(Array(client.start { Array(random.prefix($0)) }.readableBytesView) == Array(sent[..<1537]))
        for splits in [[], Array(0..<3080).filter { $0 < bytes.count }] + stride(from: 0, to: 3073, by: 37).map({ [$0] }) {
            var copy = client
            let outcome = self.run(bytes, splits) { (piece) throws(RTMPError) in
                (try copy.receive(&piece) { Array(random[1536...].prefix($0)) }, copy.isDone)
            }
            #expect(outcome.error == nil && outcome.isDone)
            #expect(outcome.sent == Array(sent[1537...]))
            #expect(outcome.rest == Array(bytes.dropFirst(Capture.handshakeLength)))
        }
    }

    @Test func `a foreign server's answer to another C1 is refused`() throws {
        var client = ClientHandshake(kind: .digest(scheme: 0))
        _ = client.start { pattern($0) }
        var bytes = ByteBuffer(bytes: try Capture.bytes("nginx-digest0.bin"))
        #expect(throws: RTMPError.handshakeDigestMismatch) { try client.receive(&bytes) { pattern($0) } }
    }
}
