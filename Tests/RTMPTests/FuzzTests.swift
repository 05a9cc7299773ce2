import NIOCore
import RTMP
import Testing

/// Feeds seeded mutations of captures and hand-made sessions to every decoder and session. Nothing traps or exceeds the limits, and every
/// failure is a typed error. ``saved`` keeps the inputs that once failed.
@Suite struct FuzzTests {
    private static let limits: Limits = {
        var limits = Limits()
        limits.partialBytes = 64 << 10
        return limits
    }()

    /// Handshakes of every foreign client and server.
    private static func handshakes() throws -> [[UInt8]] {
        try CaptureTests.names.map { Array(try Capture.bytes($0 + ".bin").prefix(Capture.handshakeLength + 40)) }
    }

    /// The beginnings of the captured chunk streams, where the commands are, and the hand-made sessions.
    private static func sessions() throws -> [[UInt8]] {
        let captured = try CaptureTests.names.flatMap { name in
            let bytes = try Capture.chunks(name)
            // 700 bytes reach about from connect to the first media.
            return [Array(bytes.prefix(700)), Array(bytes.prefix(250))]
        }
        return captured + [FuzzCorpus.commands, FuzzCorpus.control, FuzzCorpus.headers, FuzzCorpus.aggregate]
    }

    // MARK: Targets

    @Test func `chunks and aggregates`() throws {
        let corpus = try Self.sessions()
        var mutator = Mutator(seed: 1)
        var whole = 0
        for round in 0..<30_000 {
            let bytes = mutator.mutate(corpus[round % corpus.count])
            whole += fuzzChunks(bytes, splitAt: mutator.offset(in: bytes), limits: Self.limits)
        }
        #expect(whole > 30_000, "messages that came out")
    }

    @Test func `server handshake`() throws {
        let corpus = try Self.handshakes()
        var mutator = Mutator(seed: 2)
        var done = 0
        for round in 0..<4_000 where fuzzServerHandshake(mutator.mutate(corpus[round % corpus.count]), mutator.offset(in: corpus[0])) {
            done += 1
        }
        #expect(done > 1_000)
    }

    @Test func `client handshake`() throws {
        let corpus = try ["nginx-simple", "nginx-digest0", "nginx-digest1"].map { try Capture.bytes($0 + ".bin") }
        let random = try Capture.bytes("nginx-digest0.random")
        var mutator = Mutator(seed: 3)
        var done = 0
        for round in 0..<4_000 {
            let bytes = mutator.mutate(corpus[round % corpus.count])
            if fuzzClientHandshake(bytes, mutator.offset(in: bytes), random: random) { done += 1 }
        }
        #expect(done > 500)
    }

    @Test func `commands`() throws {
        let corpus = FuzzCorpus.commandBodies
        var mutator = Mutator(seed: 4)
        var read = 0
        for round in 0..<30_000 where fuzzCommand(mutator.mutate(corpus[round % corpus.count]), amf3: round % 5 == 0) { read += 1 }
        #expect(read > 3_000)
    }

    @Test func `server session behind the decoder`() throws {
        let corpus = try Self.sessions()
        var mutator = Mutator(seed: 5)
        var connected = 0
        for round in 0..<20_000 {
            let bytes = mutator.mutate(corpus[round % corpus.count])
            if fuzzServerSession(bytes, splitAt: mutator.offset(in: bytes), limits: Self.limits) { connected += 1 }
        }
        #expect(connected > 3_000)
    }

    @Test func `client session behind the decoder`() throws {
        let corpus = try [Array(Capture.chunks("nginx-play").prefix(900)), FuzzCorpus.answers, FuzzCorpus.control, FuzzCorpus.headers]
        var mutator = Mutator(seed: 6)
        var connected = 0
        for round in 0..<15_000 {
            let bytes = mutator.mutate(corpus[round % corpus.count])
            if fuzzClientSession(bytes, splitAt: mutator.offset(in: bytes), limits: Self.limits) { connected += 1 }
        }
        #expect(connected > 1_000)
    }

    /// Random bytes with no session behind them.
    @Test func noise() {
        var mutator = Mutator(seed: 7)
        for _ in 0..<5_000 {
            let bytes = mutator.generator.bytes(Int(mutator.generator.next() % 200))
            _ = fuzzChunks(bytes, splitAt: 0, limits: Self.limits)
            _ = fuzzServerSession(bytes, splitAt: 0, limits: Self.limits)
            _ = fuzzClientSession(bytes, splitAt: 0, limits: Self.limits)
            _ = fuzzServerHandshake(bytes, 0)
        }
    }

    /// Chunk streams that once trapped, overran a limit or hung.
    private static let saved: [(what: String, bytes: [UInt8])] = [
        // An id at the end of the range made the next createStream's ids repeat.
        ("publish on message stream 2^32 - 1, then createStream", FuzzCorpus.lastStreamID)
    ]

    @Test(arguments: saved) func `saved inputs`(what: String, bytes: [UInt8]) {
        for offset in bytes.indices {
            _ = fuzzChunks(bytes, splitAt: offset, limits: Self.limits)
            _ = fuzzServerSession(bytes, splitAt: offset, limits: Self.limits)
            _ = fuzzClientSession(bytes, splitAt: offset, limits: Self.limits)
        }
    }
}
