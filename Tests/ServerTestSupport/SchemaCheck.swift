package import Support

/// Validates a JSON value against a schema of the API's document. Supports only the keywords in use there.
package struct SchemaCheck {
    package let document: JSONValue

    package init(document: JSONValue) { self.document = document }

    /// Each violation with its place; empty for a valid value.
    package func problems(_ value: JSONValue, _ schema: JSONValue, at location: String = "$") -> [String] {
        guard case .object(let keywords) = schema else { return ["\(location): \(schema.text) is no schema"] }
        return keywords.flatMap { self.problem(value, $0.name, $0.value, schema, location) }
    }

    private func problem(_ value: JSONValue, _ keyword: String, _ rule: JSONValue, _ schema: JSONValue, _ location: String) -> [String] {
        // Made when it is needed: most values are as they should be, and a check looks at each of them a few times.
        var wrong: [String] { ["\(location): \(value.text.prefix(200)) breaks \(keyword) \(rule.text.prefix(200))"] }
        switch (keyword, value) {
        // A discriminator is read by `oneOf`.
        case ("description", _), ("deprecated", _), ("examples", _), ("discriminator", _): return []
        case ("$ref", _):
            guard let target = self.resolve(rule.shown) else { return ["\(location): \(rule.text) leads nowhere"] }
            return self.problems(value, target, at: location)
        case ("type", _): return Self.fits(value, rule.shown) ? [] : wrong
        case ("const", _): return value == rule ? [] : wrong
        case ("enum", _):
            guard case .array(let words) = rule else { return wrong }
            return words.contains(value) ? [] : wrong
        case ("anyOf", _):
            guard case .array(let choices) = rule else { return wrong }
            let all = choices.map { self.problems(value, $0, at: location) }
            return all.contains(where: \.isEmpty) ? [] : wrong + all.joined()
        case ("oneOf", _):
            if let form = self.form(of: value, schema["discriminator"]) { return self.problems(value, form, at: location) }
            guard case .array(let choices) = rule else { return wrong }
            return choices.count { self.problems(value, $0, at: location).isEmpty } == 1 ? [] : wrong
        case ("dependentRequired", .object(let members)):
            return members.flatMap { member -> [String] in
                guard case .array(let names)? = rule[member.name] else { return [] }
                return names.filter { value[$0.shown] == nil }.map { "\(location): \($0.shown) is missing beside \(member.name)" }
            }
        case ("items", .array(let elements)):
            return elements.enumerated().flatMap { self.problems($1, rule, at: "\(location)[\($0)]") }
        case ("properties", .object(let members)):
            return members.flatMap { member in
                rule[member.name].map { self.problems(member.value, $0, at: "\(location).\(member.name)") } ?? []
            }
        case ("required", .object(let members)):
            guard case .array(let names) = rule else { return wrong }
            return names.filter { name in !members.contains { $0.name == name.shown } }.map { "\(location): \($0.shown) is missing" }
        case ("additionalProperties", .object(let members)):
            let others = members.filter { schema["properties"]?[$0.name] == nil }
            if rule == false { return others.map { "\(location): \($0.name) is not in the schema" } }
            return others.flatMap { self.problems($0.value, rule, at: "\(location).\($0.name)") }
        case ("minimum", _): return Self.number(value).map { $0 >= Self.number(rule) ?? .infinity } ?? true ? [] : wrong
        case ("maximum", _): return Self.number(value).map { $0 <= Self.number(rule) ?? -.infinity } ?? true ? [] : wrong
        case ("format", .string(let text)):
            switch rule {
            case "date-time": return Instant.ms(text) == nil ? wrong : []
            case "uri": return text.contains("://") ? [] : wrong
            default: return wrong
            }
        case ("items", _), ("properties", _), ("required", _), ("dependentRequired", _), ("additionalProperties", _), ("format", _):
            return []
        default: return ["\(location): the keyword \(keyword) is not known here"]
        }
    }

    /// The form that a discriminator names for this value.
    private func form(of value: JSONValue, _ discriminator: JSONValue?) -> JSONValue? {
        guard let name = discriminator?["propertyName"]?.shown, let word = value[name]?.shown else { return nil }
        return (discriminator?["mapping"]?[word]).flatMap { self.resolve($0.shown) }
    }

    /// Resolves a reference such as "#/components/schemas/Room".
    package func resolve(_ reference: String) -> JSONValue? {
        guard reference.hasPrefix("#/") else { return nil }
        return reference.dropFirst(2).split(separator: "/").reduce(self.document) { $0?[String($1)] }
    }

    private static func fits(_ value: JSONValue, _ type: String) -> Bool {
        switch (type, value) {
        case ("object", .object), ("array", .array), ("string", .string), ("boolean", .bool), ("null", .null), ("integer", .integer),
            ("number", .integer), ("number", .number), ("number", .digits):
            true
        default: false
        }
    }

    private static func number(_ value: JSONValue) -> Double? { value.double }
}
