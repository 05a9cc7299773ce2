package import Health
import Support

/// Prometheus' text format 0.0.4, family by family. A value.
package struct MetricsText {
    package static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    package enum Kind: String {
        case gauge, counter, histogram
    }

    /// Names and values of labels.
    package typealias Labels = KeyValuePairs<String, String>

    package private(set) var text = ""

    package init() {}

    package mutating func gauge(_ name: String, _ help: String, _ value: Double) {
        self.family(name, .gauge, help)
        self.sample(name, value)
    }

    package mutating func gauge(_ name: String, _ help: String, _ value: Int) { self.gauge(name, help, Double(value)) }

    /// A gauge with a value for each value of a label.
    package mutating func gauges(_ name: String, _ help: String, _ label: String, _ values: [(String, Double)]) {
        self.family(name, .gauge, help)
        for (value, number) in values { self.sample(name, [label: value], number) }
    }

    package mutating func counter(_ name: String, _ help: String, _ value: UInt64) {
        self.family(name, .counter, help)
        self.sample(name, Double(value))
    }

    /// A counter with a value for each value of a label.
    package mutating func counters(_ name: String, _ help: String, _ label: String, _ values: [(String, UInt64)]) {
        self.family(name, .counter, help)
        for (value, number) in values { self.sample(name, [label: value], Double(number)) }
    }

    package mutating func histogram(_ name: String, _ help: String, _ histogram: Histogram) {
        self.family(name, .histogram, help)
        self.samples(name, [:], histogram)
    }

    /// The ranges of one histogram, in seconds; `labels` distinguish it from others of its family.
    package mutating func samples(_ name: String, _ labels: Labels, _ histogram: Histogram) {
        var sum: UInt64 = 0
        for (range, count) in histogram.counts.enumerated() {
            sum &+= count
            let end = range < histogram.boundsMicros.count ? Self.number(Double(histogram.boundsMicros[range]) / 1_000_000) : "+Inf"
            self.text += "\(name)_bucket\(Self.text(labels, end: end)) \(sum)\n"
        }
        self.sample("\(name)_sum", labels, Double(histogram.sumMicros) / 1_000_000)
        self.sample("\(name)_count", labels, Double(sum))
    }

    package mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        self.text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    package mutating func sample(_ name: String, _ value: Double) { self.sample(name, [:], value) }

    package mutating func sample(_ name: String, _ labels: Labels, _ value: Double) {
        self.text += "\(name)\(Self.text(labels)) \(Self.number(value))\n"
    }

    private static func text(_ labels: Labels, end: String? = nil) -> String {
        var parts = labels.map { "\($0.key)=\"\(Self.escaped($0.value))\"" }
        if let end { parts.append("le=\"\(end)\"") }
        return parts.isEmpty ? "" : "{\(parts.joined(separator: ","))}"
    }

    /// A label's value may hold anything but a bare backslash, quote or line feed. What must not be shown as it is becomes its escape, in text.
    private static func escaped(_ value: String) -> String {
        let isPlain = value.unicodeScalars.allSatisfy { $0 != "\\" && $0 != "\"" && !ShownText.isUnsafe($0) }
        if isPlain { return value }
        return value.unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            case _ where ShownText.isUnsafe(scalar): text += "\\" + ShownText.escaped(String(scalar))
            default: text.unicodeScalars.append(scalar)
            }
        }
    }

    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : "\(value)"
    }
}
