/// Formats milliseconds since 1970 as ISO 8601 in UTC: "2026-11-21T10:00:00.000Z". Clamps to the years 0 to 9999, as callers may pass more.
package func isoText(_ instant: Int64) -> String {
    let ms = min(max(instant, -62_167_219_200_000), 253_402_300_799_999)
    let day: Int64 = 86_400_000
    let days = ms >= 0 ? ms / day : (ms - day + 1) / day
    let inDay = ms - days * day
    // Civil date from days since 1970: eras of 400 years that begin in March, so that leap days come last.
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func padded(_ value: Int64, _ width: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
    }
    let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfYear - (153 * monthFromMarch + 2) / 5 + 1, 2))"
    let time = "\(padded(inDay / 3_600_000, 2)):\(padded(inDay / 60_000 % 60, 2)):\(padded(inDay / 1_000 % 60, 2))"
    return "\(date)T\(time).\(padded(inDay % 1_000, 3))Z"
}
