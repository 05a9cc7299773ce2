internal import CZlib
internal import DTLSSRTP
package import Support

/// A STUN message (RFC 8489 §5), of those that ICE sends. A value.
///
/// ```
/// 00 | method and class 14 bits | length 16 | magic cookie 32 | transaction id 96 | attributes: type 16 | length 16 | value, padded to 4
/// ```
package struct STUNMessage: Sendable, Equatable {
    package enum Kind: UInt16, Sendable, CaseIterable {
        case request = 0x0000
        case indication = 0x0010
        case success = 0x0100
        case failure = 0x0110
    }

    package struct Attribute: Sendable, Equatable {
        package var type: UInt16
        package var value: [UInt8]
    }

    /// RFC 8489 §18.3, RFC 8445 §16.1.
    enum AttributeType {
        static let username: UInt16 = 0x0006
        static let messageIntegrity: UInt16 = 0x0008
        static let errorCode: UInt16 = 0x0009
        static let xorMappedAddress: UInt16 = 0x0020
        static let useCandidate: UInt16 = 0x0025
        static let fingerprint: UInt16 = 0x8028
        static let iceControlled: UInt16 = 0x8029
    }

    package var kind: Kind
    package var transaction: [UInt8]
    package var attributes: [Attribute]
    /// Bytes before the integrity's attribute, which its code is of.
    private var integrityOffset: Int?

    package static let headerBytes = 20
    package static let transactionBytes = 12
    static let cookie: UInt32 = 0x2112_A442
    /// Method Binding, the only one of ICE.
    private static let binding: UInt16 = 0x0001
    /// Real checks have some eight.
    private static let mostAttributes = 32
    private static let longest = 1_500
    private static let fingerprintMask: UInt32 = 0x5354_554E

    package init(_ kind: Kind, transaction: [UInt8], _ attributes: [Attribute] = []) {
        self.kind = kind
        self.transaction = transaction
        self.attributes = attributes
    }

    /// Whether a datagram is STUN's, by its first byte (RFC 7983 §7).
    package static func isMessage(_ firstByte: UInt8) -> Bool { firstByte < 4 }

    /// Reads a Binding message; nil for anything else. What follows the integrity, but for the fingerprint, is not heeded (RFC 8489 §14.5).
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headerBytes, bytes.count <= Self.longest, bytes.count % 4 == 0 else { return nil }
        let type = Self.integer(bytes, 0)
        guard type & 0xC000 == 0, type & ~0x0110 == Self.binding, let kind = Kind(rawValue: type & 0x0110),
            Int(Self.integer(bytes, 2)) == bytes.count - Self.headerBytes,
            UInt32(Self.integer(bytes, 4)) << 16 | UInt32(Self.integer(bytes, 6)) == Self.cookie
        else { return nil }
        self.kind = kind
        self.transaction = Array(bytes[8..<Self.headerBytes])
        self.attributes = []
        var offset = Self.headerBytes
        while offset < bytes.count {
            guard offset + 4 <= bytes.count, self.attributes.count < Self.mostAttributes else { return nil }
            let type = Self.integer(bytes, offset)
            let length = Int(Self.integer(bytes, offset + 2))
            let end = offset + 4 + length
            guard end <= bytes.count else { return nil }
            if type == AttributeType.fingerprint {
                // §14.7: the last attribute. Others would each cost a sum of all before.
                guard length == 4, end == bytes.count, Self.checkSum(Array(bytes[..<offset])) == Array(bytes[(offset + 4)..<end]) else {
                    return nil
                }
            } else if self.integrityOffset == nil {
                if type == AttributeType.messageIntegrity { self.integrityOffset = offset }
                self.attributes.append(Attribute(type: type, value: Array(bytes[(offset + 4)..<end])))
            }
            offset = (end + 3) & ~3
        }
    }

    /// The first half of a request's user name, which tells for whom it is; nothing else is looked at. Nil for other messages.
    package static func addressee(of bytes: UnsafeRawBufferPointer) -> String? {
        guard bytes.count >= Self.headerBytes, bytes.count <= Self.longest, Self.integer(bytes, 0) == Self.binding else { return nil }
        var offset = Self.headerBytes
        for _ in 0..<Self.mostAttributes {
            guard offset + 4 <= bytes.count else { return nil }
            let end = offset + 4 + Int(Self.integer(bytes, offset + 2))
            guard end <= bytes.count else { return nil }
            if Self.integer(bytes, offset) == AttributeType.username {
                return String(decoding: bytes[(offset + 4)..<end].prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
            }
            offset = (end + 3) & ~3
        }
        return nil
    }

    private static func integer(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt16 {
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self).bigEndian
    }

    package func value(_ type: UInt16) -> [UInt8]? { self.attributes.first { $0.type == type }?.value }
    package var username: String? { self.value(AttributeType.username).map { String(decoding: $0, as: UTF8.self) } }
    package var usesCandidate: Bool { self.value(AttributeType.useCandidate) != nil }
    /// The sender believes that it is the controlled side, which this server is.
    package var saysControlled: Bool { self.value(AttributeType.iceControlled) != nil }

    /// Whether its integrity was made with this password. `bytes`: the message as it came.
    package func isIntact(_ bytes: UnsafeRawBufferPointer, password: [UInt8]) -> Bool {
        guard let offset = self.integrityOffset, let code = self.value(AttributeType.messageIntegrity), offset <= bytes.count else {
            return false
        }
        var covered = Array(bytes[..<offset])
        Self.setLength(&covered, Self.attributeBytes(MessageIntegrity.byteCount) + offset - Self.headerBytes)
        return MessageIntegrity.code(key: password, covered).map { MessageIntegrity.isEqual($0, code) } ?? false
    }

    /// The message with integrity and fingerprint behind it.
    package func bytes(password: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append16(Self.binding | self.kind.rawValue)
        bytes.append16(0)
        bytes.append32(Self.cookie)
        bytes += self.transaction
        for attribute in self.attributes { bytes.append(attribute) }
        Self.setLength(&bytes, bytes.count - Self.headerBytes + Self.attributeBytes(MessageIntegrity.byteCount))
        if let code = MessageIntegrity.code(key: password, bytes) {
            bytes.append(Attribute(type: AttributeType.messageIntegrity, value: code))
        }
        Self.setLength(&bytes, bytes.count - Self.headerBytes + Self.attributeBytes(4))
        bytes.append(Attribute(type: AttributeType.fingerprint, value: Self.checkSum(bytes)))
        return bytes
    }

    private static func attributeBytes(_ value: Int) -> Int { 4 + value }

    private static func setLength(_ bytes: inout [UInt8], _ length: Int) {
        bytes[2] = UInt8(truncatingIfNeeded: length >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: length)
    }

    /// RFC 8489 §14.7: CRC-32, with a mask. The length in `bytes` counts the fingerprint already.
    private static func checkSum(_ bytes: [UInt8]) -> [UInt8] {
        let sum = UInt32(truncatingIfNeeded: crc32(0, bytes, UInt32(truncatingIfNeeded: bytes.count))) ^ Self.fingerprintMask
        var out: [UInt8] = []
        out.append32(sum)
        return out
    }

    // MARK: The messages of ICE

    /// The answer to a check, which says from where it came (§14.2).
    package static func success(_ request: STUNMessage, to address: DatagramAddress) -> STUNMessage {
        var value: [UInt8] = [0, address.isIPv4 ? 1 : 2]
        value.append16(address.port ^ UInt16(Self.cookie >> 16))
        var mask: [UInt8] = []
        mask.append32(Self.cookie)
        mask += request.transaction
        for (byte, other) in zip(address.bytes, mask) { value.append(byte ^ other) }
        return STUNMessage(
            .success, transaction: request.transaction, [Attribute(type: AttributeType.xorMappedAddress, value: value)])
    }

    /// RFC 8445 §7.3.1.1: both sides cannot be controlled.
    package static func roleConflict(_ request: STUNMessage) -> STUNMessage {
        STUNMessage(
            .failure, transaction: request.transaction,
            [Attribute(type: AttributeType.errorCode, value: [0, 0, 4, 87] + Array("Role Conflict".utf8))])
    }

    /// A check of ours. ICE-lite needs none; this one proves that the peer wants what is sent to that address.
    package static func check(_ username: String, transaction: [UInt8]) -> STUNMessage {
        var controlled: [UInt8] = []
        controlled += transaction.prefix(8)
        return STUNMessage(
            .request, transaction: transaction,
            [
                Attribute(type: AttributeType.username, value: Array(username.utf8)),
                // PRIORITY (RFC 8445 §7.1.1), that of a host candidate.
                Attribute(type: 0x0024, value: [0x7E, 0x00, 0x00, 0xFF]),
                Attribute(type: AttributeType.iceControlled, value: controlled),
            ])
    }
}

extension [UInt8] {
    mutating func append16(_ value: UInt16) {
        self.append(UInt8(truncatingIfNeeded: value >> 8))
        self.append(UInt8(truncatingIfNeeded: value))
    }

    mutating func append32(_ value: UInt32) {
        self.append16(UInt16(truncatingIfNeeded: value >> 16))
        self.append16(UInt16(truncatingIfNeeded: value))
    }

    fileprivate mutating func append(_ attribute: STUNMessage.Attribute) {
        self.append16(attribute.type)
        self.append16(UInt16(truncatingIfNeeded: attribute.value.count))
        self += attribute.value
        // Padding.
        while self.count % 4 != 0 { self.append(0) }
    }
}
