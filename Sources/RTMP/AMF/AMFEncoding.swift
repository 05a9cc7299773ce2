/// Limits that let the encoders write any value. Text is cut at a Unicode scalar, containers below `maximumDepth` become null.
enum AMFEncoding {
    /// Bytes of UTF-8 after a 16-bit length: names and AMF0 strings.
    static let maximumShortText = 0xFFFF
    /// Bytes of UTF-8 after a 32-bit length, kept below 2 GiB.
    static let maximumLongText = 0x7FFF_FFFF
    /// Bytes or entries counted by a U29 whose lowest bit is a flag (AMF3 §1.3.1).
    static let maximumU29Count = 0x0FFF_FFFF
    /// Sealed members of one class: the U29 carries four flag bits (AMF3 §3.12).
    static let maximumSealed = 0x01FF_FFFF
    /// Nesting depth of containers. Bounds the stack; readers accept far less.
    static let maximumDepth = 128
}
