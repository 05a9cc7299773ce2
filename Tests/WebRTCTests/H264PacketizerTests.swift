import NIOCore
import Testing

@testable import WebRTC

@Suite struct H264PacketizerTests {
    private static let sps = ByteBuffer(bytes: [0x67, 0x64, 0x00, 0x1F, 0xAC])
    private static let pps = ByteBuffer(bytes: [0x68, 0xEE, 0x3C])

    private static func packetizer() -> H264Packetizer { H264Packetizer(sequenceSets: [Self.sps], pictureSets: [Self.pps]) }

    private static func unit(_ header: UInt8, _ count: Int) -> ByteBuffer { Bundled.filled([header], count) }

    /// A client's side (RFC 6184 §5.7, §5.8): the units in order.
    static func depacketized(_ payloads: [[UInt8]]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        for payload in payloads {
            switch payload[0] & 0x1F {
            case 24:
                var offset = 1
                while offset + 2 <= payload.count {
                    let length = Int(payload[offset]) << 8 | Int(payload[offset + 1])
                    units.append(Array(payload[(offset + 2)..<(offset + 2 + length)]))
                    offset += 2 + length
                }
            case 28:
                if payload[1] & 0x80 != 0 { units.append([payload[0] & 0xE0 | payload[1] & 0x1F]) }
                units[units.count - 1] += payload.dropFirst(2)
            default: units.append(payload)
            }
        }
        return units
    }

    @Test func aKeyframeHasItsSetsBeforeIt() throws {
        var packetizer = Self.packetizer()
        let idr = Self.unit(0x65, 100)
        let delimiter = ByteBuffer(bytes: [0x09, 0xF0])
        let information = ByteBuffer(bytes: [0x06, 5, 1, 0, 0x80])
        let made1 = packetizer.bundle([delimiter, information, idr], time: 90_000)
        let bundle = try #require(made1)
        let made = try Bundled(bundle)
        #expect(made.isKeyframe && made.profile == .h264(H264Profile(idc: 0x64, constraints: 0)) && made.time == 90_000)
        let payloads = made.payloads
        // RFC 6184 §5.7.1.
        #expect(payloads[0] == [0x78, 0, 5, 0x67, 0x64, 0x00, 0x1F, 0xAC, 0, 3, 0x68, 0xEE, 0x3C])
        #expect(payloads[1] == Array(idr.readableBytesView) && payloads.count == 2)
    }

    @Test(arguments: [1, 2, 1_169, 1_170, 1_171, 1_172, 2_337, 2_338, 2_339, 5_000, 300_000]) func slicesOfAnySize(_ count: Int) throws {
        var packetizer = Self.packetizer()
        let slices = [Self.unit(0x41, count), Self.unit(0x41, 7)]
        let made2 = packetizer.bundle(slices, time: -5)
        let bundle = try #require(made2)
        let made = try Bundled(bundle)
        let payloads = made.payloads
        #expect(!made.isKeyframe && made.time == -5)
        #expect(payloads.allSatisfy { $0.count <= Payload.longest && !$0.isEmpty })
        #expect(Self.depacketized(payloads) == slices.map { Array($0.readableBytesView) })
        #expect(Bundled.areEven(payloads.filter { $0[0] & 0x1F == 28 }))
    }

    /// A new size comes within a picture, without a sequence header.
    @Test func setsInThePictureReplaceTheHeaders() throws {
        var packetizer = Self.packetizer()
        let other = ByteBuffer(bytes: [0x67, 0x42, 0xE0, 0x1E, 0x01])
        let made3 = packetizer.bundle([other, Self.unit(0x65, 10)], time: 0)
        let bundle = try #require(made3)
        let made = try Bundled(bundle)
        #expect(made.profile == .h264(H264Profile(idc: 0x42, constraints: 0xE0)))
        #expect(Self.depacketized(made.payloads).prefix(2) == [Array(other.readableBytesView), Array(Self.pps.readableBytesView)])
        let made4 = packetizer.bundle([Self.unit(0x65, 10)], time: 0)
        let next = try #require(made4)
        #expect(try Bundled(next).profile == .h264(H264Profile(idc: 0x42, constraints: 0xE0)), "they stay in force")
    }

    @Test func nothingToShow() {
        var packetizer = Self.packetizer()
        for units in [[], [ByteBuffer(), Self.sps]] {
            let made = packetizer.bundle(units, time: 0)
            #expect(made == nil)
        }
    }

    /// first_mb_in_slice and slice_type of H.264 §7.3.3, by hand: "1" is 0, "010" 1, "00111" 6, "00110" 5.
    @Test func slicesOfTypeB() {
        func slice(_ bits: String, header: UInt8 = 0x01) -> ByteBuffer {
            let padded = bits + String(repeating: "1", count: (8 - bits.count % 8) % 8)
            let bytes = stride(from: 0, to: padded.count, by: 8).map { UInt8(padded.dropFirst($0).prefix(8), radix: 2) ?? 0 }
            return ByteBuffer(bytes: [header] + bytes)
        }
        func order(_ bits: String, header: UInt8 = 0x01) -> PictureOrder { H264Packetizer.order(of: [slice(bits, header: header)]) }
        #expect(order("1010") == .early(isReference: false) && order("100111") == .early(isReference: false))
        #expect(order("11") == .plain && order("100110") == .plain && order("1011") == .plain)
        // nal_ref_idc.
        #expect(order("1010", header: 0x21) == .early(isReference: true) && order("1010", header: 0x41) == .early(isReference: true))
        #expect(order("1010", header: 0x65) == .plain, "an IDR picture has none")
        #expect(order("00000000000100000000000" + "010") == .early(isReference: false), "behind 2,047 macroblocks")
        for bytes in [[UInt8(0x01)], [0x01, 0, 0, 0, 0]] { #expect(H264Packetizer.order(of: [ByteBuffer(bytes: bytes)]) == .plain) }
    }

    @Test func bundlesOfOthersAreNotRead() {
        for bytes in [[], [UInt8](repeating: 0, count: 19), [UInt8](repeating: 0, count: 20), [UInt8](repeating: 0xFF, count: 40)] {
            #expect(bytes.withUnsafeBytes { PacketBundle($0) == nil })
        }
    }
}
