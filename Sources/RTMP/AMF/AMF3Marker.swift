/// AMF3 §3.1: the byte that names a value's type.
enum AMF3Marker {
    static let undefined: UInt8 = 0x00
    static let null: UInt8 = 0x01
    static let `false`: UInt8 = 0x02
    static let `true`: UInt8 = 0x03
    static let integer: UInt8 = 0x04
    static let double: UInt8 = 0x05
    static let string: UInt8 = 0x06
    static let xmlDocument: UInt8 = 0x07
    static let date: UInt8 = 0x08
    static let array: UInt8 = 0x09
    static let object: UInt8 = 0x0A
    static let xml: UInt8 = 0x0B
    static let byteArray: UInt8 = 0x0C
    static let vectorInt: UInt8 = 0x0D
    static let vectorUInt: UInt8 = 0x0E
    static let vectorDouble: UInt8 = 0x0F
    static let vectorObject: UInt8 = 0x10
    static let dictionary: UInt8 = 0x11
}
