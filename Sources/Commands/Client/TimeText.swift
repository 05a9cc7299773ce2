import ArgumentParser
import Support

/// A duration in command line form: `30s`, `5m`, `2h`, `7d`, `1h30m`.
struct Span: ExpressibleByArgument, Equatable, Sendable, CustomStringConvertible {
    let milliseconds: Int64

    init(milliseconds: Int64) { self.milliseconds = milliseconds }
    init(seconds: Int64) { self.milliseconds = seconds * 1_000 }

    private static let units: [(name: String, factor: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1),
    ]

    /// Parses whole numbers with units, larger units first, each at most once. At most ten years.
    init?(argument: String) {
        var rest = Substring(argument)
        var total: Int64 = 0
        var units = Self.units[...]
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            let unit = rest[digits.endIndex...].prefix { $0.isLetter }
            guard let index = units.firstIndex(where: { $0.name == unit }), digits.count <= 12, let count = Int64(digits) else {
                return nil
            }
            let (part, overflow) = count.multipliedReportingOverflow(by: units[index].factor)
            guard !overflow, part <= 315_360_000_000 else { return nil }
            total += part
            units = units[(index + 1)...]
            rest = rest[unit.endIndex...]
        }
        guard !argument.isEmpty, total <= 315_360_000_000 else { return nil }
        self.milliseconds = total
    }

    var seconds: Double { Double(self.milliseconds) / 1_000 }

    /// Seconds for the API; an integer where possible.
    var json: ResponseJSON { self.milliseconds % 1_000 == 0 ? .integer(self.milliseconds / 1_000) : .number(self.seconds) }

    var description: String {
        guard let unit = Self.units.first(where: { self.milliseconds % $0.factor == 0 }), self.milliseconds != 0 else { return "0s" }
        return "\(self.milliseconds / unit.factor)\(unit.name)"
    }

    /// The two largest units, for ages in lists: `3m12s`, `2h05m`, `4d3h`.
    static func short(milliseconds: Int64) -> String {
        let seconds = max(0, milliseconds) / 1_000
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return switch seconds {
        case ..<60: "\(seconds)s"
        case ..<3_600: "\(seconds / 60)m\(two(seconds % 60))s"
        case ..<86_400: "\(seconds / 3_600)h\(two(seconds / 60 % 60))m"
        default: "\(seconds / 86_400)d\(seconds / 3_600 % 24)h"
        }
    }
}

/// A moment in the API's form, ISO 8601. A time without a zone is UTC; a date is its midnight.
struct Instant: ExpressibleByArgument, Equatable, Comparable, Sendable, CustomStringConvertible {
    /// Milliseconds since 1970.
    let milliseconds: Int64

    init(milliseconds: Int64) { self.milliseconds = milliseconds }

    static var now: Instant { Instant(milliseconds: WallClock.ms) }

    static func + (left: Instant, right: Span) -> Instant { Instant(milliseconds: left.milliseconds + right.milliseconds) }
    static func < (left: Instant, right: Instant) -> Bool { left.milliseconds < right.milliseconds }

    init?(argument: String) {
        // 2026-11-21T10:00:00.000Z, from left to right; seconds, fraction and zone are optional.
        var rest = Substring(argument)
        func number(_ digits: Int, upTo limit: Int, after mark: String = "") -> Int? {
            guard rest.hasPrefix(mark) else { return nil }
            let text = rest.dropFirst(mark.count).prefix(digits)
            guard text.count == digits, text.allSatisfy({ $0.isASCII && $0.isNumber }), let value = Int(text), value <= limit else {
                return nil
            }
            rest = rest[text.endIndex...]
            return value
        }
        guard let year = number(4, upTo: 9999), let month = number(2, upTo: 12, after: "-"), let day = number(2, upTo: 31, after: "-"),
            year >= 1970, month >= 1, day >= 1, day <= Self.days(of: month, in: year)
        else { return nil }
        var minutes = 0
        var milliseconds = 0
        if !rest.isEmpty {
            guard let hour = number(2, upTo: 23, after: rest.hasPrefix(" ") ? " " : "T"), let minute = number(2, upTo: 59, after: ":")
            else {
                return nil
            }
            minutes = hour * 60 + minute
            if rest.hasPrefix(":") {
                guard let second = number(2, upTo: 59, after: ":") else { return nil }
                milliseconds = second * 1_000
                if rest.hasPrefix(".") {
                    let digits = rest.dropFirst().prefix { $0.isASCII && $0.isNumber }
                    guard (1...9).contains(digits.count), let fraction = Int(String(digits + "00").prefix(3)) else { return nil }
                    milliseconds += fraction
                    rest = rest[digits.endIndex...]
                }
            }
            if rest == "Z" {
                rest = ""
            } else if let sign = rest.first, sign == "+" || sign == "-" {
                rest = rest.dropFirst()
                guard let hour = number(2, upTo: 23), let minute = number(2, upTo: 59, after: rest.hasPrefix(":") ? ":" : "") else {
                    return nil
                }
                minutes -= (sign == "+" ? 1 : -1) * (hour * 60 + minute)
            }
        }
        guard rest.isEmpty else { return nil }
        let total = (Int64(Self.daysSince1970(year, month, day)) * 1_440 + Int64(minutes)) * 60_000 + Int64(milliseconds)
        guard total >= 0 else { return nil }
        self.milliseconds = total
    }

    private static func days(of month: Int, in year: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    /// The Gregorian calendar, with years from March so that the leap day is last.
    private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let y = month > 2 ? year : year - 1
        let fromMarch = (month + 9) % 12
        return y * 365 + y / 4 - y / 100 + y / 400 + (fromMarch * 153 + 2) / 5 + day - 1 - 719_468
    }

    var description: String { Support.Instant.text(self.milliseconds) }
}
