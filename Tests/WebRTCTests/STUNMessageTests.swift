import Support
import Testing

@testable import WebRTC

@Suite struct STUNMessageTests {
    /// RFC 5769 §2.1, without spaces in its padding read: a check with user name, integrity and fingerprint.
    static let request: [UInt8] = [
        0x00, 0x01, 0x00, 0x58, 0x21, 0x12, 0xA4, 0x42, 0xB7, 0xE7, 0xA7, 0x01, 0xBC, 0x34, 0xD6, 0x86, 0xFA, 0x87, 0xDF, 0xAE,
        0x80, 0x22, 0x00, 0x10, 0x53, 0x54, 0x55, 0x4E, 0x20, 0x74, 0x65, 0x73, 0x74, 0x20, 0x63, 0x6C, 0x69, 0x65, 0x6E, 0x74,
        0x00, 0x24, 0x00, 0x04, 0x6E, 0x00, 0x01, 0xFF, 0x80, 0x29, 0x00, 0x08, 0x93, 0x2F, 0xF9, 0xB1, 0x51, 0x26, 0x3B, 0x36,
        0x00, 0x06, 0x00, 0x09, 0x65, 0x76, 0x74, 0x6A, 0x3A, 0x68, 0x36, 0x76, 0x59, 0x20, 0x20, 0x20, 0x00, 0x08, 0x00, 0x14,
        0x9A, 0xEA, 0xA7, 0x0C, 0xBF, 0xD8, 0xCB, 0x56, 0x78, 0x1E, 0xF2, 0xB5, 0xB2, 0xD3, 0xF2, 0x49, 0xC1, 0xB5, 0x71, 0xA2,
        0x80, 0x28, 0x00, 0x04, 0xE5, 0x7A, 0x3B, 0xCF,
    ]
    static let password = Array("VOkJxbRl1RmTxUk/WvJxBt".utf8)

    private static func read(_ bytes: [UInt8]) -> STUNMessage? { bytes.withUnsafeBytes { STUNMessage($0) } }
    private static func isIntact(_ message: STUNMessage, _ bytes: [UInt8], _ password: [UInt8] = Self.password) -> Bool {
        bytes.withUnsafeBytes { message.isIntact($0, password: password) }
    }

    @Test func theSampleOfTheSpecification() throws {
        let message = try #require(Self.read(Self.request))
        #expect(message.kind == .request && message.username == "evtj:h6vY" && message.saysControlled && !message.usesCandidate)
        #expect(Self.isIntact(message, Self.request))
        #expect(!Self.isIntact(message, Self.request, Array("VOkJxbRl1RmTxUk/WvJxBT".utf8)))
    }

    /// What is written reads the same, and has the password's integrity.
    @Test func writtenMessagesAreRead() throws {
        let transaction = (0..<12).map { UInt8($0) }
        let check = STUNMessage.check("theirs:ours", transaction: transaction)
        let bytes = check.bytes(password: Self.password)
        let read = try #require(Self.read(bytes))
        #expect(read.username == "theirs:ours" && read.transaction == transaction && Self.isIntact(read, bytes))
        let conflict = STUNMessage.roleConflict(read).bytes(password: Self.password)
        #expect(Self.read(conflict)?.kind == .failure)
    }

    /// RFC 5769 §2.2 and §2.3: 192.0.2.1:32853, and an address of IPv6.
    @Test func mappedAddresses() throws {
        let request = try #require(Self.read(Self.request))
        let v4 = STUNMessage.success(request, to: DatagramAddress(ipv4: 0xC000_0201, port: 32_853))
        #expect(v4.value(0x0020) == [0, 1, 0xA1, 0x47, 0xE1, 0x12, 0xA6, 0x43])
        let v6 = STUNMessage.success(
            request, to: DatagramAddress(high: 0x2001_0DB8_1234_5678, low: 0x0011_2233_4455_6677, port: 32_853))
        #expect(
            v6.value(0x0020) == [
                0, 2, 0xA1, 0x47, 0x01, 0x13, 0xA9, 0xFA, 0xA5, 0xD3, 0xF1, 0x79, 0xBC, 0x25, 0xF4, 0xB5, 0xBE, 0xD2, 0xB9, 0xD9,
            ])
    }

    /// No changed byte up to the integrity passes, and no cut is read as a message.
    @Test func changedAndCutMessages() {
        for count in 0..<Self.request.count { #expect(Self.read(Array(Self.request.prefix(count))) == nil, "\(count) bytes") }
        for index in Self.request.indices.dropLast(8) {
            var wrong = Self.request
            wrong[index] ^= 1
            guard let message = Self.read(wrong) else { continue }
            #expect(!Self.isIntact(message, wrong), "byte \(index)")
        }
    }

    /// What follows the integrity is nobody's word.
    @Test func attributesBehindTheIntegrity() throws {
        var bytes = Array(Self.request.dropLast(8))
        bytes += [0x00, 0x25, 0x00, 0x00]
        bytes[3] = UInt8(bytes.count - 20)
        let message = try #require(Self.read(bytes))
        #expect(!message.usesCandidate)
    }

    @Test func floodsOfAttributes() {
        var bytes = Array(Self.request.prefix(20))
        for _ in 0..<40 { bytes += [0x80, 0x22, 0, 0] }
        bytes[3] = 160
        #expect(Self.read(bytes) == nil)
    }
}
