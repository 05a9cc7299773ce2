/// Draws the figures: a panel of bars per scenario, and the curve of viewers against latency and CPU. A plain value.
struct Chart {
    private let figures: Figures

    init(_ figures: Figures) { self.figures = figures }

    private static let width = 860.0
    private static let barHeight = 18.0
    private static let labelWidth = 150.0
    private static let colours = ["earshot": "#0b7285", "bare": "#868e96", "nginx": "#e8590c"]

    /// Scenarios that appear only in the curve are named curve-N.
    private static let curvePrefix = "curve-"

    var svg: String {
        var body = ""
        var y = 16.0
        for scenario in self.figures.scenarios where !scenario.hasPrefix(Self.curvePrefix) {
            guard let first = self.figures.servers(in: scenario).first, let mode = self.figures.rounds(scenario, first).first?.mode else {
                continue
            }
            for measure in Self.measures(of: mode) {
                y = self.panel(scenario, measure, at: y, into: &body)
            }
        }
        y = self.curve(at: y, into: &body)
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Self.number(Self.width))" height="\(Self.number(y + 8))" font-family="sans-serif" font-size="12">
            <rect width="100%" height="100%" fill="#ffffff"/>
            \(body)</svg>

            """
    }

    private static func measures(of mode: RunResult.Mode) -> [Measure] {
        switch mode {
        case .fanout: [.cpu, .latencyP99]
        case .idle: [.perViewer]
        case .join: [.joinP99]
        case .stall: [.latencyP99]
        }
    }

    /// Draws one figure of a scenario, a bar per server. Returns where the next panel starts.
    private func panel(_ scenario: String, _ measure: Measure, at top: Double, into body: inout String) -> Double {
        let rows = self.figures.servers(in: scenario).compactMap { server in
            self.figures.rounds(scenario, server).median(measure).map { (server, $0, self.figures.rounds(scenario, server).text(measure)) }
        }
        guard let most = rows.map(\.1).max(), most > 0 else { return top }
        body += Self.text(8, top + 12, "\(scenario): \(measure.name)", isBold: true)
        var y = top + 20
        for (server, value, text) in rows {
            let length = max(1, value / most * (Self.width - Self.labelWidth - 230))
            body += Self.text(16, y + 13, server)
            body += Self.box(Self.labelWidth, y + 2, length, Self.barHeight - 4, Self.colour(server))
            body += Self.text(Self.labelWidth + length + 6, y + 13, text)
            y += Self.barHeight
        }
        return y + 12
    }

    /// Draws viewers against latency (p50, p99) and CPU, for earshot alone.
    private func curve(at top: Double, into body: inout String) -> Double {
        let points = self.figures.scenarios.filter { $0.hasPrefix(Self.curvePrefix) || $0.hasPrefix("capacity-") }
            .map { self.figures.rounds($0, "earshot") }
            .compactMap { rounds -> (Double, Double, Double, Double)? in
                guard let viewers = rounds.median(.viewers), let p50 = rounds.median(.latencyP50), let p99 = rounds.median(.latencyP99),
                    let load = rounds.median(.load)
                else { return nil }
                return (viewers, p50, p99, load)
            }.sorted { $0.0 < $1.0 }
        guard points.count > 1, let mostViewers = points.last?.0, let mostMs = points.map(\.2).max(), mostMs > 0 else { return top }
        let (left, height, right) = (60.0, 220.0, Self.width - 60)
        let bottom = top + 30 + height
        body += Self.text(8, top + 12, "viewers of one stream on one core: latency and CPU", isBold: true)
        func x(_ viewers: Double) -> Double { left + viewers / mostViewers * (right - left) }
        func line(_ colour: String, _ name: String, _ at: Double, _ scale: Double, _ value: ((Double, Double, Double, Double)) -> Double) {
            let path = points.map { "\(Self.number(x($0.0))),\(Self.number(bottom - value($0) / scale * height))" }.joined(separator: " ")
            body += "<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"2\"/>\n"
            body += Self.box(at, top + 18, 10, 4, colour) + Self.text(at + 14, top + 24, name)
        }
        line("#0b7285", "p50, ms", left, mostMs) { $0.1 }
        line("#c92a2a", "p99, ms", left + 90, mostMs) { $0.2 }
        line("#868e96", "CPU, % (right)", left + 180, 100) { $0.3 }
        body += Self.box(left, bottom, right - left, 1, "#343a40")
        for share in [0.0, 0.5, 1] {
            let y = bottom - share * height + 4
            body += Self.text(8, y, RunResult.format(share * mostMs)) + Self.text(right + 8, y, RunResult.format(share * 100))
            body += Self.text(x(share * mostViewers) - 14, bottom + 16, RunResult.format((share * mostViewers).rounded()))
        }
        return bottom + 30
    }

    private static func colour(_ server: String) -> String {
        self.colours.first { server.hasPrefix($0.key) }?.value ?? "#495057"
    }

    private static func text(_ x: Double, _ y: Double, _ text: String, isBold: Bool = false) -> String {
        let escaped = text.map { $0 == "&" ? "&amp;" : $0 == "<" ? "&lt;" : String($0) }.joined()
        return "<text x=\"\(self.number(x))\" y=\"\(self.number(y))\"\(isBold ? " font-weight=\"bold\"" : "")>\(escaped)</text>\n"
    }

    private static func box(_ x: Double, _ y: Double, _ width: Double, _ height: Double, _ colour: String) -> String {
        "<rect x=\"\(self.number(x))\" y=\"\(self.number(y))\" width=\"\(self.number(width))\" height=\"\(self.number(height))\" fill=\"\(colour)\"/>\n"
    }

    private static func number(_ value: Double) -> String { RunResult.format(value) }
}
