import Testing

@testable import DTLSSRTP

/// What libsrtp 2.5 (by pylibsrtp 1.0) makes of the same packets with the same keys, and key derivation as RFC 3711 has it.
@Suite struct SRTPVectorTests {
    private struct Vector {
        let profile: SRTPProfile
        let media: [(index: UInt64, bytes: String)]
        let control: [String]
    }

    private static let vectors = [
        Vector(
            profile: .aes128CMSHA1_80,
            media: [
                (
                    0xFFFE,
                    "8060fffe000103e6123456786cbc813824891dc8bbe5d2620d7ae332beb60f0fc4f10916589e4f57b068d320fdd283cb12fb2a3f6f0a7f9d2efcf1b3dd0a"
                ),
                (
                    0xFFFF,
                    "8060ffff000103e712345678b724043d4b7693f8d5c1bc21fbe29dd3025461084076a75a3131196436e9bcf0a505d1ea4c140c362cfd687ac19d380cd4b0"
                ),
                (
                    0x1_0000,
                    "80600000000003e8123456787022dfe5054ad0acd63973ecf2a89472c1305a3a2eea0516864a43d01bfa27022b905d340b21f886e8ea233fced4de3a7aa6"
                ),
                (
                    0x1_0001,
                    "80600001000003e912345678f1239b8f587497d9fd30fa1f6d444a8f9c74b7de1e2fdc13e47ecf60e4838ae16eaeb9eb6cab4523a5d31162e68d190ada6e"
                ),
            ],
            control: [
                "80c80006123456782740229d8e832fbb4ce6d3fcec865ceb7dcdd7c980000001fa1454eeb93d6fa03174",
                "80c90001cafebabe800000019d90e5905f68bb416c34",
            ]),
        Vector(
            profile: .aeadAES128GCM,
            media: [
                (
                    0xFFFE,
                    "8060fffe000103e612345678b6ce27aaa04c33dfc1774fdc927a1e8fac9515392e3bf87c00973ce0a78119ac81a4a2ce7830236d541316705a2c3dd296f4332709d46acd"
                ),
                (
                    0xFFFF,
                    "8060ffff000103e71234567892e8dc97d457d869879f9fec0a6cfcc85660f03ffc3b15c712d82e0ba4a32459981b4356a3bdd74742d17184fa0145d3ba6f8daed65f9049"
                ),
                (
                    0x1_0000,
                    "80600000000003e81234567897060d0e912c9f415020440a155d940009e716000f001321dbca388b0b8909565438844f16ed357252117db1f24c9c3894c07ac90bf63919"
                ),
                (
                    0x1_0001,
                    "80600001000003e912345678dc435575f83c499e781ae1f639e2be347c564010664bacb3985f4fe838f8a9f7cb8af883193b2121b1a77c89ed20323a355e8014e9773cc1"
                ),
            ],
            control: [
                "80c80006123456785fffaf61a29d547d7cb4a48d47362b41a88a397a25820a7b91f135464602a868ebf9af0e80000001",
                "80c90001cafebabe238c983933f5728bbbf6ca9773c3144180000001",
            ]),
    ]

    private static let source: UInt32 = 0x1234_5678
    private static let payload = (0..<40).map { UInt8($0) }
    private static let senderReport: [UInt8] = [0x80, 0xC8, 0, 6, 0x12, 0x34, 0x56, 0x78] + (0..<20).map { UInt8($0) }

    /// Keys of both directions alike, so that a receiver opens what a sender of the same makes.
    static func keys(_ profile: SRTPProfile) -> SRTPKeys {
        let bytes = (0..<(16 + profile.saltBytes)).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }
        let master = SRTPKeys.Master(key: Array(bytes.prefix(16)), salt: Array(bytes.dropFirst(16)))
        return SRTPKeys(profile: profile, peer: master, own: master)
    }

    static func bytes(_ hex: String) -> [UInt8] {
        stride(from: 0, to: hex.count, by: 2).map { offset in
            let start = hex.index(hex.startIndex, offsetBy: offset)
            return UInt8(hex[start..<hex.index(start, offsetBy: 2)], radix: 16) ?? 0
        }
    }

    private static func sealed(_ sender: SRTPSender, _ header: [UInt8], _ payload: [UInt8], index: UInt64) -> [UInt8] {
        var output = header + [UInt8](repeating: 0, count: payload.count + sender.profile.overhead)
        let count = output.withUnsafeMutableBytes { output in
            payload.withUnsafeBytes { sender.protect(header: header.count, payload: $0, ssrc: Self.source, index: index, into: output) }
        }
        return Array(output.prefix(count))
    }

    @Test(arguments: SRTPProfile.allCases) func mediaIsAsLibsrtpHasIt(_ profile: SRTPProfile) throws {
        let vector = try #require(Self.vectors.first { $0.profile == profile })
        let sender = try SRTPSender(Self.keys(profile))
        let receiver = try SRTPReceiver(Self.keys(profile))
        for (index, hex) in vector.media {
            let expected = Self.bytes(hex)
            #expect(Self.sealed(sender, Array(expected.prefix(12)), Self.payload, index: index) == expected)
            let opened = try #require(expected.withUnsafeBytes { receiver.open($0, header: 12) })
            #expect(opened.packet == expected.prefix(12) + Self.payload && opened.index == index)
            // The same again is a replay.
            #expect(expected.withUnsafeBytes { receiver.open($0, header: 12) } == nil)
        }
    }

    @Test(arguments: SRTPProfile.allCases) func controlIsAsLibsrtpHasIt(_ profile: SRTPProfile) throws {
        let vector = try #require(Self.vectors.first { $0.profile == profile })
        let sender = try SRTPSender(Self.keys(profile))
        let receiver = try SRTPReceiver(Self.keys(profile))
        // libsrtp counts from 1.
        _ = sender.protectControl(Self.senderReport)
        let expected = Self.bytes(vector.control[0])
        #expect(sender.protectControl(Self.senderReport) == expected)
        #expect(expected.withUnsafeBytes { receiver.openControl($0) } == Self.senderReport)
        #expect(expected.withUnsafeBytes { receiver.openControl($0) } == nil, "a replay")
        let empty = Self.bytes(vector.control[1])
        #expect(empty.withUnsafeBytes { receiver.openControl($0) } == Array(empty.prefix(8)), "a header alone")
    }

    /// Each byte of a packet is covered, and no length is too short to be refused.
    @Test(arguments: SRTPProfile.allCases) func changedAndCutPacketsAreRefused(_ profile: SRTPProfile) throws {
        let vector = try #require(Self.vectors.first { $0.profile == profile })
        let receiver = try SRTPReceiver(Self.keys(profile))
        for (right, isControl) in [(Self.bytes(vector.media[0].bytes), false), (Self.bytes(vector.control[0]), true)] {
            func open(_ bytes: [UInt8]) -> Bool {
                bytes.withUnsafeBytes { isControl ? receiver.openControl($0) != nil : receiver.open($0, header: 12) != nil }
            }
            for index in right.indices {
                var wrong = right
                wrong[index] ^= 0x10
                #expect(!open(wrong), "byte \(index)")
            }
            for count in 0..<right.count { #expect(!open(Array(right.prefix(count))), "\(count) bytes") }
            #expect(open(right))
        }
    }

    /// RFC 3711 appendix B.3.
    @Test func keyDerivation() throws {
        let master = SRTPKeys.Master(
            key: Self.bytes("e1f97a0d3e018be0d64fa32c06de4139"), salt: Self.bytes("0ec675ad498afeebb6960b3aabe6"))
        #expect(try SessionKeys.derive(master, .encryption, count: 16) == Self.bytes("c61e7a93744f39ee10734afe3ff7a087"))
        #expect(try SessionKeys.derive(master, .salt, count: 14) == Self.bytes("30cbbc08863d8c85d49db34a9ae1"))
        #expect(
            try SessionKeys.derive(master, .authentication, count: 20) == Self.bytes("cebe321f6ff7716b6fd4ab49af256a156d38baa4"))
    }

    /// RFC 3711 §3.3.1: from the first number seen, over roll-overs in both directions.
    @Test func indicesFollowTheSequence() {
        let cases: [(UInt16, UInt64, UInt64)] = [
            (0, 0xFFFF, 0x1_0000), (0xFFFF, 0x1_0000, 0xFFFF), (0x7FFF, 0, 0x7FFF), (0xFFFF, 0, 0xFFFF), (5, 0x2_0003, 0x2_0005),
            (0x8000, 0x1_0001, 0x1_8000), (0x8002, 0x1_0001, 0x8002),
        ]
        for (sequence, highest, index) in cases { #expect(SRTPReceiver.index(of: sequence, near: highest) == index) }
    }

    @Test func windowForgetsWhatIsOld() {
        var window = ReplayWindow()
        for index in [UInt64(100), 101, 103] {
            #expect(window.accepts(index))
            window.note(index)
        }
        #expect(window.accepts(102) && !window.accepts(101) && !window.accepts(103) && window.accepts(40))
        window.note(1_126)
        #expect(!window.accepts(102) && !window.accepts(103) && window.accepts(104) && window.accepts(1_125) && !window.accepts(1_126))
        window.note(104)
        #expect(!window.accepts(104) && window.accepts(105))
        window.note(100_000)
        #expect(!window.accepts(1_125) && window.accepts(99_999) && window.accepts(98_977) && !window.accepts(98_976))
    }

    /// A peer cannot make the receiver remember any number of sources.
    @Test func sourcesAreBounded() throws {
        let receiver = try SRTPReceiver(Self.keys(.aeadAES128GCM))
        let sender = try SRTPSender(Self.keys(.aeadAES128GCM))
        var accepted = 0
        for source in UInt32(1)...100 {
            var header: [UInt8] = [0x80, 0x60, 0, 1, 0, 0, 0, 0]
            header += withUnsafeBytes(of: source.bigEndian) { Array($0) }
            var output = header + [UInt8](repeating: 0, count: 16)
            let count = output.withUnsafeMutableBytes {
                sender.protect(header: 12, payload: UnsafeRawBufferPointer(start: nil, count: 0), ssrc: source, index: 1, into: $0)
            }
            #expect(count == 28)
            if output.withUnsafeBytes({ receiver.open($0, header: 12) }) != nil { accepted += 1 }
        }
        #expect(accepted == 32)
    }
}
