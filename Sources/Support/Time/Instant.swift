/// Converts between milliseconds since 1970 and RFC 3339 in UTC, the form of all times for people and programs.
package enum Instant {
    /// The end of the year 9999.
    package static let latest: Int64 = 253_402_300_799_999
    /// The beginning of the year 0.
    private static let earliest: Int64 = -62_167_219_200_000
    private static let dayMs: Int64 = 86_400_000

    /// "2026-11-21T10:00:00.000Z". Clamps to the years 0 to 9999, which have four digits (RFC 3339 §5.6), as callers may pass more.
    package static func text(_ ms: Int64) -> String { Self.text(ms, hasFraction: true) }

    /// "2026-11-21T10:00:00Z": the time rounded down to a second. Clamps as ``text(_:)`` does.
    package static func secondsText(_ ms: Int64) -> String { Self.text(ms, hasFraction: false) }

    /// "Sun, 06 Nov 1994 08:49:37 GMT", as HTTP has it (RFC 9110 §5.6.7). Clamps as ``text(_:)`` does.
    package static func httpText(_ ms: Int64) -> String {
        let text = self.secondsText(ms)
        let days = Self.day(of: min(max(ms, Self.earliest), Self.latest))
        // The first day of 1970 was a Thursday.
        let weekday = Int((days % 7 + 11) % 7)
        let month = Int(Self.date(days).month) - 1
        let (year, day, time) = (text.prefix(4), text.dropFirst(8).prefix(2), text.dropFirst(11).prefix(8))
        return "\(Self.weekdays[weekday]), \(day) \(Self.months[month]) \(year) \(time) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    package static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func text(_ ms: Int64, hasFraction: Bool) -> String {
        let ms = min(max(ms, Self.earliest), Self.latest)
        let days = Self.day(of: ms)
        let rest = ms - days * Self.dayMs
        let (year, month, day) = Self.date(days)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        Self.append(year, 4, "-", to: &text)
        Self.append(month, 2, "-", to: &text)
        Self.append(day, 2, "T", to: &text)
        Self.append(rest / 3_600_000, 2, ":", to: &text)
        Self.append(rest / 60_000 % 60, 2, ":", to: &text)
        Self.append(rest / 1_000 % 60, 2, hasFraction ? "." : "Z", to: &text)
        if hasFraction { Self.append(rest % 1_000, 3, "Z", to: &text) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Rounded down, because the last millisecond before 1970 belongs to the day before.
    private static func day(of ms: Int64) -> Int64 { (ms < 0 ? ms - (Self.dayMs - 1) : ms) / Self.dayMs }

    /// Appends a number with this many digits, and the character that follows it.
    private static func append(_ value: Int64, _ digits: Int, _ mark: Unicode.Scalar, to text: inout [UInt8]) {
        var divisor: Int64 = 1
        for _ in 1..<digits { divisor *= 10 }
        while divisor > 0 {
            text.append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
            divisor /= 10
        }
        text.append(UInt8(ascii: mark))
    }

    /// Reads RFC 3339 §5.6: date, "T", time with or without fraction, "Z" or an offset. Nil before 1970.
    package static func ms(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard (20...40).contains(bytes.count), bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[10] == UInt8(ascii: "T") || bytes[10] == UInt8(ascii: "t"), bytes[13] == UInt8(ascii: ":"),
            bytes[16] == UInt8(ascii: ":"), let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7]),
            let day = Self.number(bytes[8..<10]), let hour = Self.number(bytes[11..<13]), let minute = Self.number(bytes[14..<16]),
            let second = Self.number(bytes[17..<19]), (1970...9999).contains(year), (1...12).contains(month),
            (1...Self.daysIn(month, year)).contains(day), hour < 24, minute < 60, second < 60
        else { return nil }
        var rest = bytes[19...]
        var fraction: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard !digits.isEmpty else { return nil }
            fraction = Self.number(Array((digits.prefix(3) + [0x30, 0x30]).prefix(3))[...]) ?? 0
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let offset = Self.offsetMinutes(rest) else { return nil }
        let days = Self.days(year, month, day)
        let ms = ((days * 24 + hour) * 60 + minute - offset) * 60_000 + second * 1_000 + fraction
        return (0...Self.latest).contains(ms) ? ms : nil
    }

    private static func offsetMinutes(_ bytes: ArraySlice<UInt8>) -> Int64? {
        let bytes = Array(bytes)
        if bytes == [UInt8(ascii: "Z")] || bytes == [UInt8(ascii: "z")] { return 0 }
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"), let hours = Self.number(bytes[1..<3]),
            let minutes = Self.number(bytes[4..<6]),
            hours < 24, minutes < 60
        else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "+"): return hours * 60 + minutes
        case UInt8(ascii: "-"): return -(hours * 60 + minutes)
        default: return nil
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? {
        var value: Int64 = 0
        for byte in bytes {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            value = value * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        return value
    }

    private static func daysIn(_ month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    // The proleptic Gregorian calendar in eras of 400 years that begin on 1 March: leap days come last.

    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month > 2 ? year : year - 1
        let era = shifted / 400
        let yearOfEra = shifted % 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// From the year 0 on.
    private static func date(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        // Counts from March of the year -400, because the year 0 begins before its March, and no part may be negative.
        let shifted = days + 719_468 + 146_097
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + (era - 1) * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}
