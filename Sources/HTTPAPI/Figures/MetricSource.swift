/// A part of the server that adds its own figures to Prometheus' page.
package protocol MetricSource: Sendable {
    /// How often its limits were hit, by their settings' names.
    var limitHits: [(name: String, count: UInt64)] { get }
    func write(to page: inout MetricsText)
}
