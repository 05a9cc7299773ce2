import CQREncode

/// A QR code (ISO/IEC 18004) of a text, error correction level M. A value.
package struct QRCode: Sendable, Equatable {
    /// Modules in a row, without the quiet zone.
    let width: Int
    /// Row by row; true is dark.
    let isDark: [Bool]

    /// Light modules that a reader needs around the code (§5.3.8 of the standard).
    static let quietZone = 4

    package struct TooLong: Error {}

    /// Throws when the text does not fit into the largest code (2,331 bytes at level M).
    package init(_ text: String) throws(TooLong) {
        // Strings with a NUL end there in C; URLs have none.
        guard !text.utf8.contains(0), let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M) else { throw TooLong() }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        guard width > 0, let data = code.pointee.data else { throw TooLong() }
        self.width = width
        // The lowest bit of each byte is the colour.
        self.isDark = UnsafeBufferPointer(start: data, count: width * width).map { $0 & 1 == 1 }
    }

    /// Modules in a row, with the quiet zone.
    var fullWidth: Int { self.width + 2 * Self.quietZone }

    /// Whether the module at this position, quiet zone included, is dark.
    func isDark(column: Int, row: Int) -> Bool {
        let (x, y) = (column - Self.quietZone, row - Self.quietZone)
        guard (0..<self.width).contains(x), (0..<self.width).contains(y) else { return false }
        return self.isDark[y * self.width + x]
    }

    /// An SVG with one path; each run of dark modules in a row is a box in it.
    package func svg(moduleSize: Int) -> String {
        var path = ""
        for row in 0..<self.fullWidth {
            var column = 0
            while column < self.fullWidth {
                var end = column
                while self.isDark(column: end, row: row) { end += 1 }
                if end > column { path += "M\(column) \(row)h\(end - column)v1h-\(end - column)z" }
                column = max(end, column + 1)
            }
        }
        let pixels = self.fullWidth * moduleSize
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(pixels)" height="\(pixels)" viewBox="0 0 \(self.fullWidth) \(self.fullWidth)" \
            shape-rendering="crispEdges"><rect width="100%" height="100%" fill="#fff"/><path fill="#000" d="\(path)"/></svg>

            """
    }

    /// A greyscale picture of one bit a pixel.
    package func png(moduleSize: Int) -> [UInt8] {
        let pixels = self.fullWidth * moduleSize
        var lines: [UInt8] = []
        lines.reserveCapacity(pixels * (pixels / 8 + 2))
        for row in 0..<self.fullWidth {
            // Filter 0, then eight pixels a byte, white bits set.
            var line = [UInt8](repeating: 0, count: 1 + (pixels + 7) / 8)
            for x in 0..<pixels where !self.isDark(column: x / moduleSize, row: row) { line[1 + x / 8] |= 0x80 >> UInt8(x % 8) }
            for _ in 0..<moduleSize { lines += line }
        }
        return PNG.oneBitGrey(width: pixels, height: pixels, lines: lines)
    }
}
