package import NIOCore

/// A playlist's text and the offsets where child URIs end.
///
/// Requests for the same state share storage: `bytes()` is the shared buffer itself.
package struct PlaylistText: Sendable, Equatable {
    private var buffer: ByteBuffer
    /// Offsets right after each child URI, ascending.
    private var uriEnds: [Int]

    init(buffer: ByteBuffer, uriEnds: [Int]) {
        self.buffer = buffer
        self.uriEnds = uriEnds
    }

    /// Returns the playlist in UTF-8. Appends a query (`token=x`, without the question mark) to every child URI, without the characters
    /// that a URI's query cannot hold. Without a query, returns the shared buffer, not a copy.
    package func bytes(query: String = "") -> ByteBuffer {
        let query = query.utf8.filter(\.isQueryCharacter)
        guard !query.isEmpty else { return self.buffer }
        let inserted = [UInt8(ascii: "?")] + query
        var result = ByteBufferAllocator().buffer(capacity: self.buffer.readableBytes + self.uriEnds.count * inserted.count)
        let text = self.buffer.readableBytesView
        var start = 0
        for end in self.uriEnds {
            result.writeBytes(text[text.startIndex + start..<text.startIndex + end])
            result.writeBytes(inserted)
            start = end
        }
        result.writeBytes(text[(text.startIndex + start)...])
        return result
    }

    /// The playlist without a query.
    package var text: String { String(buffer: self.buffer) }
}

/// Writes a playlist line by line and records where child URIs end.
struct PlaylistWriter {
    private var buffer: ByteBuffer
    private var uriEnds: [Int] = []

    init(capacity: Int) {
        self.buffer = ByteBufferAllocator().buffer(capacity: capacity)
    }

    mutating func write(_ text: StaticString) { self.buffer.writeStaticString(text) }
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

    mutating func writeDigits(_ number: Int64, count: Int) {
        var divisor: Int64 = 1
        for _ in 1..<count { divisor *= 10 }
        while divisor > 0 {
            self.buffer.writeInteger(UInt8(ascii: "0") + UInt8(number / divisor % 10))
            divisor /= 10
        }
    }

    /// Writes milliseconds since 1970 as `2026-11-21T16:45:42.123Z` (ISO 8601, RFC 8216bis §4.4.4.6).
    mutating func writeDate(millis: Int64) {
        let day = CivilDay(daysSince1970: millis / 86_400_000)
        let time = millis % 86_400_000
        self.writeDigits(day.year, count: 4)
        self.write("-")
        self.writeDigits(day.month, count: 2)
        self.write("-")
        self.writeDigits(day.day, count: 2)
        self.write("T")
        self.writeDigits(time / 3_600_000, count: 2)
        self.write(":")
        self.writeDigits(time / 60_000 % 60, count: 2)
        self.write(":")
        self.writeDigits(time / 1_000 % 60, count: 2)
        self.write(".")
        self.writeDigits(time % 1_000, count: 3)
        self.write("Z")
    }

    mutating func writeURI(_ uri: String) {
        self.write(uri)
        self.uriEnds.append(self.buffer.readableBytes)
    }

    func finish() -> PlaylistText { PlaylistText(buffer: self.buffer, uriEnds: self.uriEnds) }
}

/// A day of the Gregorian calendar, 1970 or later.
struct CivilDay: Equatable {
    let year: Int64
    let month: Int64
    let day: Int64

    /// Counts from 1 March 0000, so that a leap day is the last day of its year; 146,097 days are 400 years.
    init(daysSince1970: Int64) {
        let days = max(daysSince1970, 0) + 719_468
        let era = days / 146_097
        let dayOfEra = days % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        self.day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        self.month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        self.year = yearOfEra + era * 400 + (self.month <= 2 ? 1 : 0)
    }
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
