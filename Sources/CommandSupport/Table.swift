/// Formats rows under a header in aligned columns. A plain value; cells are escaped when added.
package struct Table {
    package enum Alignment { case left, right }

    package struct Column {
        package let title: String
        package var alignment = Alignment.left
        /// Whether the column may be cut on a narrow terminal. The widest of these shrinks first.
        package var shrinks = false

        package static func left(_ title: String) -> Column { Column(title: title) }
        package static func right(_ title: String) -> Column { Column(title: title, alignment: .right) }
        package static func text(_ title: String) -> Column { Column(title: title, shrinks: true) }
    }

    package struct Cell: Equatable, ExpressibleByStringLiteral {
        package let text: String
        package var colour: Colour?

        /// Nil and empty text print as "-".
        package init(_ text: String?, _ colour: Colour? = nil) {
            self.text = text.flatMap { $0.isEmpty ? nil : DisplayText.escaped($0) } ?? "-"
            self.colour = colour
        }
        package init(stringLiteral value: String) { self.init(value) }
    }

    package enum Colour: String {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }

    package let columns: [Column]
    package private(set) var rows: [[Cell]] = []

    package init(_ columns: [Column]) { self.columns = columns }

    package mutating func add(_ cells: [Cell]) { self.rows.append(cells) }

    /// The header and the rows, without line ends. `width` is the terminal's columns; nil cuts nothing.
    package func lines(width: Int? = nil, colour: Bool = false) -> [String] {
        var widths = self.columns.map { DisplayText.width($0.title) }
        for row in self.rows {
            for (index, cell) in row.enumerated() { widths[index] = max(widths[index], DisplayText.width(cell.text)) }
        }
        if let width { self.shrink(&widths, to: width) }
        let header = self.columns.map { Cell($0.title, .bold) }
        return ([header] + self.rows).map { self.line($0, widths, limit: width, colour: colour) }
    }

    private static let gap = 2
    /// A narrower cut cell would say nothing.
    private static let narrowest = 8

    private func shrink(_ widths: inout [Int], to width: Int) {
        func total() -> Int { widths.reduce(0, +) + Self.gap * max(0, widths.count - 1) }
        while total() > width {
            let candidates = widths.indices.filter { self.columns[$0].shrinks && widths[$0] > Self.narrowest }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { return }
            widths[widest] -= 1
        }
    }

    private func line(_ cells: [Cell], _ widths: [Int], limit: Int?, colour: Bool) -> String {
        var out = ""
        var used = 0
        for (index, cell) in cells.enumerated() {
            var columns = widths[index]
            if index > 0 {
                out += String(repeating: " ", count: Self.gap)
                used += Self.gap
            }
            // Columns that cannot shrink are cut at the terminal's edge.
            if let limit { columns = min(columns, limit - used) }
            guard columns > 0 else { break }
            let text = DisplayText.truncated(cell.text, to: columns)
            let space = String(repeating: " ", count: columns - DisplayText.width(text))
            let painted = if colour, let colour = cell.colour { "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m" } else { text }
            out += self.columns[index].alignment == .left ? painted + space : space + painted
            used += columns
        }
        while out.hasSuffix(" ") { out.removeLast() }
        return out
    }
}
