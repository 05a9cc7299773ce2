import Rooms
package import Support

/// The subset of JSON Schema (2020-12) that the API's document needs. A value; made once.
package indirect enum Schema: Sendable {
    /// Keywords, written as they are.
    case plain([JSONValue.Member])
    case list(Schema)
    /// An object with these members and no others.
    case object([Property])
    /// An object whose members all have this schema, whatever their names.
    case map(Schema)
    case nullable(Schema)
    /// Written once under this name; every use is a reference.
    case named(String, Schema)
    /// An object in one of these variants. Its member with the name `by` identifies the variant.
    case variants(by: String, [Variant])

    package struct Property: Sendable {
        package let name: String
        package let schema: Schema
        package let help: String
        package let isRequired: Bool
        /// Members of one group are either all present or all absent.
        package let group: String?

        package init(name: String, schema: Schema, help: String, isRequired: Bool, group: String? = nil) {
            self.name = name
            self.schema = schema
            self.help = help
            self.isRequired = isRequired
            self.group = group
        }
    }

    /// One variant of ``variants(by:_:)``.
    package struct Variant: Sendable {
        /// The only value of the member that identifies the variant.
        package let value: String
        /// The schema's name, which the discriminator's mapping needs.
        package let name: String
        package let properties: [Property]

        package init(value: String, name: String, properties: [Property]) {
            self.value = value
            self.name = name
            self.properties = properties
        }

        package var schema: Schema { .named(self.name, .object(self.properties)) }
    }

    /// A schema of this type and more keywords.
    package static func keywords(_ type: String, _ more: (String, JSONValue)...) -> Schema {
        .plain([JSONValue.Member(name: "type", value: .string(type))] + more.map(JSONValue.Member.init))
    }

    /// The "type" keyword, if there is exactly one.
    package var type: String? {
        switch self {
        case .plain(let members): if case .string(let type)? = JSONValue.object(members)["type"] { type } else { nil }
        case .list: "array"
        case .object, .map, .variants: "object"
        case .nullable: nil
        case .named(_, let schema): schema.type
        }
    }

    package func hasProperty(_ name: String) -> Bool {
        switch self {
        case .object(let properties): properties.contains { $0.name == name }
        case .named(_, let schema): schema.hasProperty(name)
        case .variants(_, let variants): variants.allSatisfy { $0.schema.hasProperty(name) }
        case .plain, .list, .map, .nullable: false
        }
    }

    /// Renders JSON. Named schemas go to `components`, and the result refers to them.
    package func json(_ components: inout [String: JSONValue]) -> JSONValue {
        switch self {
        case .plain(let members): return .object(members)
        case .list(let element): return ["type": "array", "items": element.json(&components)]
        case .map(let element): return ["type": "object", "additionalProperties": element.json(&components)]
        case .nullable(let schema):
            return ["anyOf": [schema.json(&components), ["type": "null"]]]
        case .named(let name, let schema):
            if components[name] == nil {
                components[name] = .null
                components[name] = schema.json(&components)
            }
            return ["$ref": .string("#/components/schemas/\(name)")]
        case .variants(let name, let variants):
            let references = variants.map { $0.schema.json(&components) }
            // OpenAPI 3.1.0, "Discriminator Object".
            let mapping = zip(variants, references).map { JSONValue.Member(name: $0.value, value: $1["$ref"] ?? .null) }
            return [
                "oneOf": .array(references), "discriminator": ["propertyName": .string(name), "mapping": .object(mapping)],
            ]
        case .object(let properties):
            var members: [JSONValue.Member] = [.init(name: "type", value: "object")]
            let required = properties.filter(\.isRequired).map { JSONValue.string($0.name) }
            if !required.isEmpty { members.append(.init(name: "required", value: .array(required))) }
            let dependent = Self.dependent(properties)
            if !dependent.isEmpty { members.append(.init(name: "dependentRequired", value: .object(dependent))) }
            members.append(
                .init(
                    name: "properties",
                    value: .object(
                        properties.map { .init(name: $0.name, value: $0.schema.described($0.help, &components)) })))
            members.append(.init(name: "additionalProperties", value: false))
            return .object(members)
        }
    }

    /// For each member of a group, the others (JSON Schema 2020-12 Validation §6.5.4).
    private static func dependent(_ properties: [Property]) -> [JSONValue.Member] {
        properties.compactMap { property in
            guard let group = property.group else { return nil }
            let others = properties.filter { $0.group == group && $0.name != property.name }
            return .init(name: property.name, value: .array(others.map { .string($0.name) }))
        }
    }

    /// Renders JSON with a description.
    package func described(_ help: String, _ components: inout [String: JSONValue]) -> JSONValue {
        guard !help.isEmpty, case .object(let members) = self.json(&components) else { return self.json(&components) }
        return .object(members + [.init(name: "description", value: .string(help))])
    }
}
