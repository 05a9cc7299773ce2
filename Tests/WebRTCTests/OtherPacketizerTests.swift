import NIOCore
import Testing

@testable import WebRTC

/// H.265, VP9 and AV1 in RTP payloads, put together again as a client does.
@Suite struct OtherPacketizerTests {
    private static let sizes = [3, 60, 1_157, 1_158, 1_159, 1_160, 2_315, 2_316, 2_317, 5_000, 300_000]

    // MARK: H.265

    private static let sets = H265Packetizer.Sets(
        video: [ByteBuffer(bytes: [0x40, 1, 0x0C])], sequence: [ByteBuffer(bytes: [0x42, 1, 1, 2])],
        picture: [ByteBuffer(bytes: [0x44, 1, 9])])

    /// RFC 7798 §4.4.
    private static func h265Units(_ payloads: [[UInt8]]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        for payload in payloads {
            switch payload[0] >> 1 & 0x3F {
            case 48:
                var offset = 2
                while offset + 2 <= payload.count {
                    let length = Int(payload[offset]) << 8 | Int(payload[offset + 1])
                    units.append(Array(payload[(offset + 2)..<(offset + 2 + length)]))
                    offset += 2 + length
                }
            case 49:
                if payload[2] & 0x80 != 0 { units.append([payload[0] & 0x81 | (payload[2] & 0x3F) << 1, payload[1]]) }
                units[units.count - 1] += payload.dropFirst(3)
            default: units.append(payload)
            }
        }
        return units
    }

    @Test(arguments: sizes) func h265(_ count: Int) throws {
        var packetizer = H265Packetizer(Self.sets, profile: 1)
        // IDR_W_RADL, with a delimiter and supplemental information before it, which stay behind.
        let slices = [Bundled.filled([0x26, 1], count), Bundled.filled([0x26, 1], 9)]
        let made = packetizer.bundle(
            [ByteBuffer(bytes: [0x46, 1, 0x50]), ByteBuffer(bytes: [0x4E, 1, 5, 1])] + slices, time: 7, isKeyframe: false)
        let bundle = try Bundled(try #require(made))
        #expect(bundle.isKeyframe && bundle.profile == .h265(1) && bundle.time == 7)
        #expect(bundle.payloads[0] == [0x60, 1, 0, 3, 0x40, 1, 0x0C, 0, 4, 0x42, 1, 1, 2, 0, 3, 0x44, 1, 9])
        #expect(bundle.payloads.allSatisfy { $0.count <= Payload.longest })
        #expect(Self.h265Units(bundle.payloads).dropFirst(3).map { $0 } == slices.map { Array($0.readableBytesView) })
        #expect(Bundled.areEven(bundle.payloads.filter { $0[0] >> 1 & 0x3F == 49 }))
        // TRAIL_R: no keyframe, no sets.
        let next = packetizer.bundle([Bundled.filled([0x02, 1], count)], time: 8, isKeyframe: false)
        let following = try Bundled(try #require(next))
        #expect(!following.isKeyframe && Self.h265Units(following.payloads).count == 1)
    }

    /// Sets within a picture replace the header's.
    @Test func h265SetsWithinAPicture() throws {
        var packetizer = H265Packetizer(Self.sets, profile: 1)
        let other = ByteBuffer(bytes: [0x42, 1, 7, 7, 7])
        for units in [[other, Bundled.filled([0x26, 1], 9)], [Bundled.filled([0x26, 1], 9)]] {
            let made = packetizer.bundle(units, time: 0, isKeyframe: true)
            let read = Self.h265Units(try Bundled(try #require(made)).payloads)
            #expect(read.count == 4 && read[1] == [0x42, 1, 7, 7, 7] && read[0] == [0x40, 1, 0x0C])
        }
        let nothing = packetizer.bundle([ByteBuffer(), ByteBuffer(bytes: [0x26]), other], time: 0, isKeyframe: true)
        #expect(nothing == nil)
    }

    /// H.265 Table 7-1: TRAIL_N, RASL_N and the like are made use of by none, in the highest layer.
    @Test func h265References() {
        func isReference(_ type: UInt8, layer: UInt8 = 0, of layers: Int = 1) -> Bool {
            H265Packetizer.isReference(
                [ByteBuffer(bytes: [0x4E, 1, 5]), ByteBuffer(bytes: [type << 1, layer + 1, 0x80])], layers: layers)
        }
        #expect([0, 2, 4, 6, 8].allSatisfy { !isReference($0) })
        #expect([1, 3, 7, 9, 16, 19, 20, 21].allSatisfy { isReference($0) })
        #expect(isReference(0, layer: 0, of: 2) && !isReference(0, layer: 1, of: 2) && !isReference(0, of: 0))
        #expect(H265Packetizer.isReference([], layers: 1))
    }

    // MARK: VP9

    @Test(arguments: sizes) func vp9(_ count: Int) throws {
        var packetizer = VP9Packetizer()
        // frame_marker 2, then profile 2: low bit 0, high bit 1.
        let picture = Bundled.filled([0x92, 0x49], count)
        let made = packetizer.bundle([picture], time: 3, isKeyframe: true)
        let bundle = try Bundled(try #require(made))
        #expect(bundle.isKeyframe && bundle.profile == .vp9(2) && bundle.payloads.allSatisfy { $0.count <= Payload.longest })
        #expect(bundle.payloads.flatMap { $0.dropFirst() } == Array(picture.readableBytesView))
        // B of the first, E of the last (RFC 9628 §4.2); nothing else is there to be read.
        let last = bundle.payloads.count - 1
        #expect(bundle.payloads.indices.allSatisfy { bundle.payloads[$0][0] == ($0 == 0 ? 8 : 0) | ($0 == last ? 4 : 0) })
        #expect(Bundled.areEven(bundle.payloads))
        let next = packetizer.bundle([picture], time: 4, isKeyframe: false)
        #expect(try Bundled(try #require(next)).payloads.allSatisfy { $0[0] & 0xF0 == 0x40 })
        let nothing = packetizer.bundle([ByteBuffer()], time: 5, isKeyframe: false)
        #expect(nothing == nil)
    }

    // MARK: AV1

    /// The units, without sizes: AV1's payload format §4.4.
    private static func av1Units(_ payloads: [[UInt8]]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        for payload in payloads {
            var isFirst = true
            var rest = payload.dropFirst()
            let count = payload[0] >> 4 & 3
            while !rest.isEmpty {
                var length = rest.count
                if count == 0 {
                    length = 0
                    var shift = 0
                    while let byte = rest.popFirst() {
                        length |= Int(byte & 0x7F) << shift
                        shift += 7
                        if byte & 0x80 == 0 { break }
                    }
                }
                let element = Array(rest.prefix(length))
                rest = rest.dropFirst(length)
                if isFirst, payload[0] & 0x80 != 0 { units[units.count - 1] += element } else { units.append(element) }
                isFirst = false
            }
        }
        return units
    }

    private static func leb(_ value: Int) -> [UInt8] {
        value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7F) | 0x80] + Self.leb(value >> 7)
    }

    /// A unit as files have it, with its size, and as packets have it.
    private static func unit(_ type: UInt8, _ count: Int) -> (stored: [UInt8], sent: [UInt8]) {
        let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        return ([type << 3 | 2] + Self.leb(count) + body, [type << 3] + body)
    }

    @Test(arguments: sizes) func av1(_ count: Int) throws {
        let (header, other) = (Self.unit(1, 11), Self.unit(1, 12))
        var packetizer = AV1Packetizer(ByteBuffer(bytes: header.stored), profile: 0)
        let (delimiter, frame) = (Self.unit(2, 0), Self.unit(6, count))
        // A keyframe without a sequence header gets the configuration's.
        let made = packetizer.bundle([ByteBuffer(bytes: delimiter.stored + frame.stored)], time: 3, isKeyframe: true)
        let bundle = try Bundled(try #require(made))
        #expect(bundle.isKeyframe && bundle.profile == .av1(0) && bundle.payloads.allSatisfy { $0.count <= Payload.longest })
        #expect(Self.av1Units(bundle.payloads) == [header.sent, frame.sent])
        #expect(bundle.payloads.map { $0[0] & 0x08 != 0 } == bundle.payloads.indices.map { $0 == 0 }, "N of the first alone")
        // Z of all but the first, Y of all but the last: so libwebrtc tells pictures apart.
        let last = bundle.payloads.count - 1
        #expect(bundle.payloads.indices.allSatisfy { bundle.payloads[$0][0] & 0xF0 == ($0 == 0 ? 0 : 0x80) | ($0 == last ? 0 : 0x40) })
        let sizes = bundle.payloads.map(\.count)
        #expect(
            sizes.allSatisfy { $0 <= sizes[0] } && sizes.dropLast().allSatisfy { $0 > sizes[0] - 4 },
            "\(sizes.prefix(4)), \(sizes.suffix(2))")
        // One that has its own keeps it, and so do those behind it.
        for units in [other.stored + frame.stored, frame.stored] {
            let made = packetizer.bundle([ByteBuffer(bytes: units)], time: 4, isKeyframe: true)
            #expect(Self.av1Units(try Bundled(try #require(made)).payloads) == [other.sent, frame.sent])
        }
        let next = packetizer.bundle([ByteBuffer(bytes: frame.stored)], time: 5, isKeyframe: false)
        let following = try Bundled(try #require(next))
        #expect(Self.av1Units(following.payloads) == [frame.sent] && following.payloads.allSatisfy { $0[0] & 0x08 == 0 })
    }

    /// Layers in a unit's header; a last unit without a size; bytes that are no units.
    @Test func av1UnitsOfOtherForms() throws {
        var packetizer = AV1Packetizer(ByteBuffer(), profile: 1)
        let made = packetizer.bundle([ByteBuffer(bytes: [0x36, 0x20, 2, 5, 6, 0x30, 7, 8])], time: 0, isKeyframe: false)
        #expect(Self.av1Units(try Bundled(try #require(made)).payloads) == [[0x34, 0x20, 5, 6], [0x30, 7, 8]])
        for bytes: [UInt8] in [[], [0xFF, 1, 2], [0x12, 0], [0x32, 0x80], [0x32, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x32, 9, 1]] {
            let nothing = packetizer.bundle([ByteBuffer(bytes: bytes)], time: 0, isKeyframe: true)
            #expect(nothing == nil, "\(bytes)")
        }
    }
}
