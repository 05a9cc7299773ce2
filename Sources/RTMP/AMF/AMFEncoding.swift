/// What the encoders cut so that any value can be written: text at a character boundary, containers below `maximumDepth` as null.
enum AMFEncoding {
    /// Bytes of UTF-8 behind a 16-bit length: names and AMF0 strings.
    static let maximumShortText = 0xFFFF
    /// Bytes of UTF-8 behind a 32-bit length; a ByteBuffer holds no more than that either.
    static let maximumLongText = 0x7FFF_FFFF
    /// Bytes or entries behind a U29 whose lowest bit is a flag (AMF3 §1.3.1).
    static let maximumU29Count = 0x0FFF_FFFF
    /// Sealed members of one class: the U29 carries four flag bits (AMF3 §3.12).
    static let maximumSealed = 0x01FF_FFFF
    /// Containers inside one another; no reader accepts nearly as many, and the stack stays bounded.
    static let maximumDepth = 128
}
