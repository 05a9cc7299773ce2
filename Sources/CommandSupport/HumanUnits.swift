/// Formats figures for lists.
package enum HumanUnits {
    /// "2.5 Mb/s", "128 kb/s".
    package static func bitRate(_ bitsPerSecond: Int64?) -> String? {
        bitsPerSecond.map { self.scaled($0, by: 1_000, ["b/s", "kb/s", "Mb/s", "Gb/s"]) }
    }

    /// "1.2 MB", decimal.
    package static func bytes(_ bytes: Int64?) -> String? {
        bytes.map { self.scaled($0, by: 1_000, ["B", "kB", "MB", "GB", "TB"]) }
    }

    /// "29.97", "30".
    package static func decimal(_ value: Double?, digits: Int = 2) -> String? {
        guard let value, value.isFinite, abs(value) < 1e12 else { return nil }
        let factor = (0..<digits).reduce(1.0) { power, _ in power * 10 }
        let rounded = (value * factor).rounded() / factor
        return rounded == rounded.rounded() ? String(Int64(rounded)) : String(rounded)
    }

    private static func scaled(_ value: Int64, by factor: Double, _ units: [String]) -> String {
        var scaled = Double(value)
        var index = 0
        // Otherwise 999.5 would print as "1000".
        while scaled >= factor - 0.5, index < units.count - 1 {
            scaled /= factor
            index += 1
        }
        return "\(self.decimal(scaled, digits: index > 0 && scaled < 99.95 ? 1 : 0) ?? "?") \(units[index])"
    }
}
