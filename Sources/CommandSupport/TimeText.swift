import ArgumentParser
import ServerConfiguration
package import Support

/// A duration: `30s`, `5m`, `2h`, `7d`, `1h30m`.
package struct Span: ExpressibleByArgument, Equatable, Sendable, CustomStringConvertible {
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }
    package init(seconds: Int64) { self.milliseconds = seconds * 1_000 }

    private static let units: [(name: String, factor: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1),
    ]

    /// Reads a duration as the settings do. At most ten years.
    package init?(argument: String) {
        guard let ms = ConfigUnits.milliseconds(argument), ms <= 315_360_000_000 else { return nil }
        self.milliseconds = ms
    }

    package var seconds: Double { Double(self.milliseconds) / 1_000 }

    /// Seconds for the API; an integer where possible.
    package var json: JSONValue { self.milliseconds % 1_000 == 0 ? .integer(self.milliseconds / 1_000) : .number(self.seconds) }

    package var description: String {
        guard let unit = Self.units.first(where: { self.milliseconds % $0.factor == 0 }), self.milliseconds != 0 else { return "0s" }
        return "\(self.milliseconds / unit.factor)\(unit.name)"
    }

    /// The two largest units, for ages in lists: `3m12s`, `2h05m`, `4d3h`.
    package static func short(milliseconds: Int64) -> String {
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
package struct Moment: ExpressibleByArgument, Equatable, Comparable, Sendable, CustomStringConvertible {
    /// Milliseconds since 1970.
    package let milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static var now: Moment { Moment(milliseconds: WallClock.ms) }

    package static func < (left: Moment, right: Moment) -> Bool { left.milliseconds < right.milliseconds }

    package init?(argument: String) {
        // What RFC 3339 wants and people leave out: the time, its seconds, the zone and the colon in it; "T" may be a space.
        let date = argument.prefix(10)
        var time = argument.dropFirst(10)
        let mark = time.popFirst() ?? "T"
        guard mark == "T" || mark == " " else { return nil }
        let zone = time.drop { !"Z+-".contains($0) }
        time = time.prefix(upTo: zone.startIndex)
        let clock = time.isEmpty && zone.isEmpty && date.count == argument.count ? "00:00:00" : time.count == 5 ? "\(time):00" : "\(time)"
        let offset = zone.isEmpty ? "Z" : zone.count == 5 ? "\(zone.prefix(3)):\(zone.suffix(2))" : "\(zone)"
        guard let ms = Instant.ms("\(date)T\(clock)\(offset)") else { return nil }
        self.milliseconds = ms
    }

    package var description: String { Instant.text(self.milliseconds) }
}
