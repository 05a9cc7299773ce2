/// Members of an object by their type; nil for one that is missing or of another type.
extension JSONValue {
    package func integer(_ name: String) -> Int64? { if case .integer(let value)? = self[name] { value } else { nil } }
    package func string(_ name: String) -> String? { if case .string(let value)? = self[name] { value } else { nil } }
    package func bool(_ name: String) -> Bool? { if case .bool(let value)? = self[name] { value } else { nil } }

    package func strings(_ name: String) -> [String]? {
        guard case .array(let items)? = self[name] else { return nil }
        let texts = items.compactMap { if case .string(let text) = $0 { text } else { nil } }
        return texts.count == items.count ? texts : nil
    }
}

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
