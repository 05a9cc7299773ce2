/// Converts durations and sizes between configuration text and numbers, without loss.
package enum ConfigUnits {
    private static let durationUnits: [(name: String, factor: Int64)] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)]
    private static let sizeUnits: [(name: String, factor: Int64)] = [
        ("gib", 1 << 30), ("mib", 1 << 20), ("kib", 1 << 10), ("gb", 1_000_000_000), ("mb", 1_000_000), ("kb", 1_000), ("b", 1), ("", 1),
    ]

    /// Reads `30s`, `500ms`, `1.5m`, `12h`, `7d`, `1h30m` or a number of seconds as milliseconds; settings and the command line alike.
    package static func milliseconds(_ text: String) -> Int64? {
        let units = [("d", 86_400_000)] + self.durationUnits
        return self.scaled(text, units + [("", 1_000)]) ?? self.sum(text, units)
    }

    /// Reads whole numbers with units, larger units first, each at most once.
    private static func sum(_ text: String, _ units: [(name: String, factor: Int64)]) -> Int64? {
        var (rest, units, total) = (Substring(text), units[...], Int64(0))
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            let unit = rest[digits.endIndex...].prefix { $0.isLetter }
            guard let index = units.firstIndex(where: { $0.name == unit }), let count = Int64(digits) else { return nil }
            let (part, isTooLarge) = count.multipliedReportingOverflow(by: units[index].factor)
            let (sum, isTooMuch) = total.addingReportingOverflow(part)
            guard !isTooLarge, !isTooMuch else { return nil }
            total = sum
            units = units[(index + 1)...]
            rest = rest[unit.endIndex...]
        }
        return text.isEmpty ? nil : total
    }

    /// Reads `8MiB`, `64KiB`, `2MB` (decimal) or a number of bytes, in either case.
    package static func bytes(_ text: String) -> Int? { scaled(text.lowercased(), sizeUnits).map(Int.init) }

    /// The shortest exact form.
    package static func duration(milliseconds: Int64) -> String {
        guard milliseconds != 0, let unit = durationUnits.first(where: { milliseconds % $0.factor == 0 }) else { return "0s" }
        return "\(milliseconds / unit.factor)\(unit.name)"
    }

    /// The shortest exact form.
    package static func size(bytes: Int) -> String {
        let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        guard bytes != 0, let unit = units.first(where: { bytes % $0.1 == 0 }) else { return "\(bytes)B" }
        return "\(bytes / unit.1)\(unit.0)"
    }

    /// Reads digits, optionally with decimals, and a unit. Returns nil for other text, and for a result that is not a whole number or does not fit.
    private static func scaled(_ text: String, _ units: [(name: String, factor: Int64)]) -> Int64? {
        let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let suffix = text[digits.endIndex...].drop { $0 == " " }
        guard let unit = units.first(where: { $0.name == suffix }) else { return nil }
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), !parts.contains(where: \.isEmpty) else { return nil }
        let fraction = parts.count == 2 ? parts[1] : ""
        // 1.25 s is 125 × 1000 / 100: integers only, so nothing is rounded.
        guard fraction.count <= 9, let value = Int64(parts[0] + fraction) else { return nil }
        let (product, overflow) = value.multipliedReportingOverflow(by: unit.factor)
        let divisor = (0..<fraction.count).reduce(Int64(1)) { power, _ in power * 10 }
        return overflow || product % divisor != 0 ? nil : product / divisor
    }
}
