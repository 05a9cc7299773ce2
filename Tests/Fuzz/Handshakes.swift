import NIOCore
import RTMP

extension FuzzTarget {
    /// The handshakes of both sides, simple and with digests. Cuts make no difference to the answers.
    static let handshake = FuzzTarget("handshake", maxLength: 3_100) { input in
        var input = input
        let form = input.byte()
        let cuts = Cuts(input.byte())
        let bytes = input.rest
        if form & 1 == 0 {
            let whole = HandshakeRun(server: bytes, .none)
            expect(whole == HandshakeRun(server: bytes, cuts), "cuts show")
            expect(whole.error != nil || whole.isDone == (bytes.count >= 3_073), "done after \(bytes.count) bytes")
            expect([0, 3_073].contains(whole.sent.readableBytes), "an answer of \(whole.sent.readableBytes) bytes")
        } else {
            let kind: ClientHandshake.Kind = form & 2 == 0 ? .simple : .digest(scheme: Int(form >> 2 & 1))
            let whole = HandshakeRun(client: bytes, kind, .none)
            expect(whole == HandshakeRun(client: bytes, kind, cuts), "cuts show")
            expect([1_537, 3_073].contains(whole.sent.readableBytes), "\(whole.sent.readableBytes) bytes sent")
        }
    }
}

private struct HandshakeRun: Equatable {
    var sent = ByteBuffer()
    /// The number of bytes after the handshake.
    var left = 0
    var isDone = false
    var error: RTMPError?

    init(server bytes: [UInt8], _ cuts: Cuts) {
        var server = ServerHandshake()
        self.feed(bytes, cuts) { (piece) throws(RTMPError) in
            let answer = server.isDone ? nil : try server.receive(&piece, random: Self.random)
            return (answer, server.isDone)
        }
        switch self.error {
        case nil, .unsupportedVersion?, .notRTMP?: break
        case let error?: fatalError("\(error)")
        }
    }

    init(client bytes: [UInt8], _ kind: ClientHandshake.Kind, _ cuts: Cuts) {
        var client = ClientHandshake(kind: kind)
        self.sent = client.start(random: Self.random)
        self.feed(bytes, cuts) { (piece) throws(RTMPError) in
            let answer = client.isDone ? nil : try client.receive(&piece, random: Self.random)
            return (answer, client.isDone)
        }
        switch self.error {
        case nil, .unsupportedVersion?, .handshakeDigestMismatch?: break
        case let error?: fatalError("\(error)")
        }
    }

    private mutating func feed(
        _ bytes: [UInt8], _ cuts: Cuts, _ receive: (inout ByteBuffer) throws(RTMPError) -> (answer: ByteBuffer?, isDone: Bool)
    ) {
        let start = self.sent.writerIndex
        for var piece in cuts.pieces(of: bytes) {
            do throws(RTMPError) {
                let step = try receive(&piece)
                if let answer = step.answer { self.sent.writeImmutableBuffer(answer) }
                self.isDone = step.isDone
                expect(step.isDone || piece.readableBytes == 0, "\(piece.readableBytes) bytes left over in a handshake")
                self.left += piece.readableBytes
            } catch {
                self.error = error
                // In one piece, wrong bytes suppress the answer to the bytes before them, so the answer is not compared.
                self.sent.moveWriterIndex(to: min(self.sent.writerIndex, start))
                return
            }
        }
    }

    private static func random(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) } }
}
