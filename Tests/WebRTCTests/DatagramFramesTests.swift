import Testing

@testable import WebRTC

@Suite struct DatagramFramesTests {
    private static let datagrams: [[UInt8]] = [
        [1], Array(repeating: 7, count: 300), Array((0..<2_048).map { UInt8($0 & 0xFF) }), [0, 1, 0, 0],
    ]

    private static func framed(_ datagrams: [[UInt8]]) -> [UInt8] {
        datagrams.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 0xFF)] + $0 }
    }

    private static func read(_ pieces: some Sequence<ArraySlice<UInt8>>, by frames: inout DatagramFrames) throws -> [[UInt8]] {
        var found: [[UInt8]] = []
        for piece in pieces { try piece.withUnsafeBytes { try frames.read($0) { found.append(Array($0)) } } }
        return found
    }

    @Test(arguments: [1, 2, 3, 7, 1_460, 100_000]) func `datagrams come out whole however the stream is cut`(_ size: Int) throws {
        let bytes = Self.framed(Self.datagrams + Self.datagrams)
        let pieces = stride(from: 0, to: bytes.count, by: size).map { bytes[$0..<min($0 + size, bytes.count)] }
        var frames = DatagramFrames()
        #expect(try Self.read(pieces, by: &frames) == Self.datagrams + Self.datagrams)
    }

    @Test func `a frame without a byte is none`() throws {
        var frames = DatagramFrames()
        #expect(try Self.read([[0, 0, 0, 1, 9, 0][...], [0][...]], by: &frames) == [[9]])
    }

    @Test func `a longer one than any datagram is refused at its header`() throws {
        var frames = DatagramFrames()
        #expect(throws: DatagramFrames.Problem.tooLong(2_049)) { try Self.read([[8, 1][...]], by: &frames) }
    }

    /// HTTP begins with a letter, TLS with 22.
    @Test func `what begins as HTTP or TLS is no frame`() {
        #expect(DatagramFrames.mayBegin(with: 0) && DatagramFrames.mayBegin(with: 8))
        #expect((9...255).allSatisfy { !DatagramFrames.mayBegin(with: $0) })
    }
}
