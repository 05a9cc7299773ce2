/// JSON and instants as text, for messages that are put together from parts which are JSON already.
enum JSONText {
    /// A JSON string of it, quotes included.
    static func quoted(_ text: some StringProtocol) -> String {
        var out = "\""
        out.reserveCapacity(text.utf8.count + 2)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case "\u{0}"..."\u{1F}", "\u{7F}", "\u{2028}", "\u{2029}": out += "\\u" + self.hex16(scalar.value)
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    /// "null", or a string.
    static func quoted(_ text: String?) -> String { text.map { self.quoted($0) } ?? "null" }

    /// Lower case, two digits a byte.
    static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var out: [UInt8] = []
        for byte in bytes {
            out.append(digits[Int(byte >> 4)])
            out.append(digits[Int(byte & 15)])
        }
        return String(decoding: out, as: UTF8.self)
    }

    private static func hex16(_ value: UInt32) -> String { self.hex([UInt8(value >> 8 & 255), UInt8(value & 255)]) }

    /// Milliseconds since 1970 as ISO 8601 in UTC: "2026-11-21T10:00:00.000Z".
    static func instant(_ milliseconds: Int64) -> String {
        let (days, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        // Before 1970 the remainder is negative.
        let day = rest < 0 ? days - 1 : days
        let ofDay = rest < 0 ? rest + 86_400_000 : rest
        let date = self.civil(day)
        let seconds = ofDay / 1_000
        return
            "\(self.padded(date.year, 4))-\(self.padded(date.month, 2))-\(self.padded(date.day, 2))"
            + "T\(self.padded(seconds / 3_600, 2)):\(self.padded(seconds / 60 % 60, 2)):\(self.padded(seconds % 60, 2))"
            + ".\(self.padded(ofDay % 1_000, 3))Z"
    }

    private static func padded(_ value: Int64, _ digits: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }

    /// The Gregorian date of a day counted from 1970-01-01. Years are counted from March, so that the leap day ends one.
    private static func civil(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let fromMarch0 = day + 719_468
        let era = (fromMarch0 >= 0 ? fromMarch0 : fromMarch0 - 146_096) / 146_097
        let dayOfEra = fromMarch0 - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }
}
