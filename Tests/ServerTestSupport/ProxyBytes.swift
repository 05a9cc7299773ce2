/// Headers of the PROXY protocol, version 2, as a proxy writes them.
package enum ProxyBytes {
    package static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    package static func v2(_ command: UInt8, _ family: UInt8, _ addresses: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? addresses.count
        return self.signature + [command, family, UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)] + addresses
    }
}
