import Media
import NIOCore
import Testing

@Suite struct AV1OperatingPointTests {
    /// A sequence header of 1280×720, written bit by bit from the AV1 specification §5.5.1. It has 30 ticks a second, one per picture, and
    /// two operating points, the first with a tier, a display delay and operating parameters: twice 5 bits and one more.
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
