import Support

/// Writes a flat JSON object as text: the data of an event.
struct JSONText {
    private var body = ""

    mutating func add(_ name: String, _ value: String?) {
        guard let value else { return }
        self.key(name)
        Self.quote(value, into: &self.body)
    }

    mutating func add(_ name: String, _ value: Int64?) {
        guard let value else { return }
        self.key(name)
        self.body += String(value)
    }

    mutating func add(_ name: String, _ value: Int?) { self.add(name, value.map(Int64.init)) }

    mutating func add(_ name: String, _ values: [String]) {
        self.key(name)
        self.body += "["
        for (index, value) in values.enumerated() {
            if index > 0 { self.body += "," }
            Self.quote(value, into: &self.body)
        }
        self.body += "]"
    }

    private mutating func key(_ name: String) {
        if !self.body.isEmpty { self.body += "," }
        Self.quote(name, into: &self.body)
        self.body += ":"
    }

    var text: String { "{" + self.body + "}" }

    private static func quote(_ value: String, into text: inout String) { text += JSONValue.string(value).text }
}
