/// WebSocket frames of a client (RFC 6455 §5.2), right and wrong ones.
package enum ClientFrame {
    /// A client's frame by hand, masked with a visible key.
    package static func bytes(
        _ opcode: UInt8, _ payload: [UInt8], final: Bool = true, reserved: UInt8 = 0, masked: Bool = true
    ) -> [UInt8] {
        let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        var bytes: [UInt8] = [(final ? 0x80 : 0) | reserved | opcode]
        let mask: UInt8 = masked ? 0x80 : 0
        switch payload.count {
        case ...125: bytes.append(mask | UInt8(payload.count))
        case ...0xFFFF: bytes += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        default: bytes += [mask | 127] + (0..<8).map { UInt8(payload.count >> (56 - 8 * $0) & 255) }
        }
        if masked { bytes += key }
        return bytes + payload.enumerated().map { masked ? $1 ^ key[$0 & 3] : $1 }
    }
}
