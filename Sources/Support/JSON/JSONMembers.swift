/// Builds an object member by member, in the order of the calls. Nil values add nothing.
extension [JSONValue.Member] {
    package mutating func add(_ name: String, _ value: String?) {
        if let value { self.append(JSONValue.Member(name: name, value: .string(value))) }
    }

    package mutating func add(_ name: String, _ value: Int64?) {
        if let value { self.append(JSONValue.Member(name: name, value: .integer(value))) }
    }

    package mutating func add(_ name: String, _ value: Int?) { self.add(name, value.map(Int64.init)) }

    package mutating func add(_ name: String, _ values: [String]) {
        self.append(JSONValue.Member(name: name, value: .array(values.map(JSONValue.string))))
    }

    /// The object as compact JSON.
    package var text: String { JSONValue.object(self).text }
}
