@testable import RTMP
import Testing

/// The position of the digest in C1 and S1. It follows four offset bytes (the 9th to 12th, or the 773rd to 776th) after as many bytes as
/// their sum modulo 728.
@Suite struct DigestPositionTests {
    @Test(
        arguments: [
            ([0, 0, 0, 0], 0), ([1, 2, 3, 4], 10), ([255, 255, 217, 0], 727), ([255, 255, 218, 0], 0), ([0, 218, 255, 255], 0),
            ([255, 255, 255, 255], 292),
        ] as [([UInt8], Int)])
    func offsets(_ bytes: [UInt8], _ offset: Int) {
        var packet = [UInt8](repeating: 9, count: 1_536)
        packet.replaceSubrange(8..<12, with: bytes)
        #expect(HandshakeDigest.position(in: packet, scheme: .digestFirst) == offset + 12)
        packet = [UInt8](repeating: 9, count: 1_536)
        packet.replaceSubrange(772..<776, with: bytes)
        #expect(HandshakeDigest.position(in: packet, scheme: .digestSecond) == offset + 776)
    }
}
