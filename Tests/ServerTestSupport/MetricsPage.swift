import Testing

/// A page of metrics, as Prometheus reads it.
package enum MetricsPage {
    /// Returns the values by series. Throws if a line is malformed.
    package static func values(of page: Substring) throws -> [String: Double] {
        let line = try Regex(
            #"^(?:# HELP [a-z_]+ .+|# TYPE [a-z_]+ (?:counter|gauge|histogram)|([a-z_]+(?:\{[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})?) ([-0-9.e+]+))$"#
        )
        var values: [String: Double] = [:]
        for text in page.split(separator: "\n") {
            let match = try #require(try line.wholeMatch(in: text), "\(text)")
            if let name = match.output[1].substring, let value = match.output[2].substring { values[String(name)] = Double(value) }
        }
        return values
    }
}
