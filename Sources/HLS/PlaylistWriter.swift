package import NIOCore

/// A playlist's text and the offsets where child URIs end.
///
/// Requests for the same state share storage: `bytes()` is the shared buffer itself.
package struct PlaylistText: Sendable, Equatable {
    let buffer: ByteBuffer
    /// Offsets right after each child URI, ascending.
    let uriEnds: [Int]

    /// Returns the playlist in UTF-8. Appends a query (`token=x`, without the question mark) to every child URI, without the characters
    /// that a URI's query cannot hold. Without a query, returns the shared buffer, not a copy.
    package func bytes(query: String = "") -> ByteBuffer {
        let query = query.utf8.filter(\.isQueryCharacter)
        guard !query.isEmpty else { return self.buffer }
        let inserted = [UInt8(ascii: "?")] + query
        let count = self.buffer.readableBytes + self.uriEnds.count * inserted.count
        var result = ByteBufferAllocator().buffer(capacity: count)
        self.buffer.withUnsafeReadableBytes { text in
            _ = result.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
                var (from, to) = (0, 0)
                for end in self.uriEnds {
                    room[to...].copyBytes(from: text[from..<end])
                    to += end - from
                    room[to...].copyBytes(from: inserted)
                    to += inserted.count
                    from = end
                }
                room[to...].copyBytes(from: text[from...])
                return count
            }
        }
        return result
    }

    /// The playlist without a query.
    package var text: String { String(buffer: self.buffer) }
}

/// Writes a playlist line by line and records where child URIs end.
struct PlaylistWriter {
    private var buffer: ByteBuffer
    private var uriEnds: [Int] = []

    init(capacity: Int) { self.buffer = ByteBufferAllocator().buffer(capacity: capacity) }

    mutating func write(_ text: String) { self.buffer.writeString(text) }
    mutating func write(_ number: Int) { self.buffer.writeString(String(number)) }

    /// Writes seconds with six decimals. RFC 8216bis §4.4.4.1 wants durations exact enough that their errors do not add up.
    mutating func writeSeconds(micros: Int64) {
        self.write(Int(micros / 1_000_000))
        self.buffer.writeInteger(UInt8(ascii: "."))
        self.writeDigits(micros % 1_000_000, count: 6)
    }

    /// Writes seconds with three decimals.
    mutating func writeSeconds(millis: Int64) {
        self.write(Int(millis / 1_000))
        self.buffer.writeInteger(UInt8(ascii: "."))
        self.writeDigits(millis % 1_000, count: 3)
    }

    private mutating func writeDigits(_ number: Int64, count: Int) {
        var divisor: Int64 = 1
        for _ in 1..<count { divisor *= 10 }
        while divisor > 0 {
            self.buffer.writeInteger(UInt8(ascii: "0") + UInt8(number / divisor % 10))
            divisor /= 10
        }
    }

    mutating func writeURI(_ uri: String) {
        self.write(uri)
        self.uriEnds.append(self.buffer.readableBytes)
    }

    func finish() -> PlaylistText { PlaylistText(buffer: self.buffer, uriEnds: self.uriEnds) }
}

extension UInt8 {
    /// RFC 3986 §3.4.
    var isQueryCharacter: Bool {
        if self.isLetterOrDigit { return true }
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"), UInt8(ascii: "$"),
            UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "*"), UInt8(ascii: "+"),
            UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "/"),
            UInt8(ascii: "?"), UInt8(ascii: "%"):
            return true
        default: return false
        }
    }
}
