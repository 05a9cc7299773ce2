extension String {
    /// The UTF-8 bytes, cut before the Unicode scalar that would cross `maximum` bytes.
    func utf8Prefix(_ maximum: Int) -> Substring.UTF8View {
        guard utf8.count > maximum else { return self[...].utf8 }
        var end = utf8.index(utf8.startIndex, offsetBy: maximum)
        // A continuation byte (10xxxxxx) at the cut belongs to the scalar before it.
        while end > utf8.startIndex, utf8[end] & 0xC0 == 0x80 { end = utf8.index(before: end) }
        return self[..<end].utf8
    }
}
