extension String {
    /// At most `limit` bytes of UTF-8; a longer text is cut and ends with "…". Counts bytes, since one character may have thousands of them.
    package func shortened(toBytes limit: Int) -> String {
        guard self.utf8.count > limit else { return self }
        var end = self.utf8.index(self.startIndex, offsetBy: max(0, limit - "…".utf8.count))
        // Do not cut within a scalar.
        while end > self.startIndex, self.utf8[end] & 0xC0 == 0x80 { end = self.utf8.index(before: end) }
        return self[..<end] + "…"
    }
}
