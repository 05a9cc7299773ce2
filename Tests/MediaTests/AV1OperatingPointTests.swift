import Media
import NIOCore
import Testing

@Suite struct AV1OperatingPointTests {
    /// AV1 specification §5.5.1, bit by bit: 30 ticks a second, one each picture; operating parameters of 5 bits twice and one more;
    /// two operating points, the first with a tier, parameters and a display delay; 1280×720.
    @Test func operatingParametersAreStepped() throws {
        let header = try AV1SequenceHeader(
            ByteBuffer(bytes: [
                0x04, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x7B, 0x93, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x84, 0x00, 0x13, 0xFF, 0xFF,
                0xFF,
                0xF9, 0xCA, 0xA9, 0xFE, 0xB3, 0xC0,
            ]))
        #expect(header.width == 1_280 && header.height == 720 && header.frameRate == 30 && header.profile == 0)
    }
}
