/// Writes one kind of value into answers. Writer and schema are one declaration, so that they cannot diverge.
struct Shape<Value>: Sendable {
    let schema: Schema
    let write: @Sendable (Value) -> JSONValue

    init(_ schema: Schema, _ write: @escaping @Sendable (Value) -> JSONValue) {
        self.schema = schema
        self.write = write
    }
}

/// One member of an object in an answer. Always present; an absent value is null.
struct Field<Value>: Sendable {
    let property: Schema.Property
    let write: @Sendable (Value) -> JSONValue

    static func field<Inner>(
        _ name: String, _ shape: Shape<Inner>, _ help: String, _ get: @escaping @Sendable (Value) -> Inner
    ) -> Field {
        Field(property: .init(name: name, schema: shape.schema, help: help, isRequired: true)) { shape.write(get($0)) }
    }

    /// The same value under its former name, for clients that still read it.
    static func former<Inner>(
        _ name: String, of present: String, _ shape: Shape<Inner>, _ get: @escaping @Sendable (Value) -> Inner
    ) -> Field {
        Field(
            property: .init(name: name, schema: shape.schema, help: "Former name of \(present).", isRequired: true, isDeprecated: true)
        ) { shape.write(get($0)) }
    }
}

extension Shape {
    /// An object; with a name, its schema is written once in the document.
    static func object(_ name: String? = nil, _ fields: [Field<Value>]) -> Shape {
        let schema = Schema.object(fields.map(\.property))
        return Shape(name.map { .named($0, schema) } ?? schema) { value in
            .object(fields.map { JSONValue.Member(name: $0.property.name, value: $0.write(value)) })
        }
    }

    static func list<Element>(_ element: Shape<Element>) -> Shape where Value == [Element] {
        Shape(.list(element.schema)) { .array($0.map(element.write)) }
    }

    static func nullable<Wrapped>(_ shape: Shape<Wrapped>) -> Shape where Value == Wrapped? {
        Shape(.nullable(shape.schema)) { $0.map(shape.write) ?? .null }
    }

    /// An object with a member for each key, sorted by key.
    static func map<Element>(_ element: Shape<Element>) -> Shape where Value == [String: Element] {
        Shape(.map(element.schema)) { values in
            .object(values.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: element.write($0.value)) })
        }
    }

    /// A case of an enumeration, as its raw value.
    static func choice() -> Shape where Value: RawRepresentable<String> & CaseIterable & Sendable {
        Shape(.words(Value.allCases.map(\.rawValue))) { .string($0.rawValue) }
    }
}

extension Schema {
    static func words(_ words: [String]) -> Schema { .keywords("string", ("enum", .array(words.map(JSONValue.string)))) }
}

extension Shape<String> {
    static var text: Shape { Shape(.keywords("string")) { .string($0) } }
    static var uri: Shape { Shape(.keywords("string", ("format", "uri"))) { .string($0) } }
    /// Stored text that holds a JSON object.
    static var jsonObject: Shape {
        Shape(.keywords("object")) { text in
            // The text was checked before it was stored.
            guard let value = try? JSONParser.parse(text.utf8, deepest: JSONParser.deepestAnswer), case .object = value else {
                return .object([])
            }
            return value
        }
    }

    static func words(_ words: [String]) -> Shape { Shape(.words(words)) { .string($0) } }
}

extension Shape<Bool> {
    static var flag: Shape { Shape(.keywords("boolean")) { .bool($0) } }
}

extension Shape<Int> {
    static var count: Shape { Shape(.keywords("integer", ("minimum", 0))) { .integer(Int64($0)) } }
    static func whole(_ range: ClosedRange<Int>) -> Shape {
        Shape(.keywords("integer", ("minimum", .integer(Int64(range.lowerBound))), ("maximum", .integer(Int64(range.upperBound))))) {
            .integer(Int64($0))
        }
    }
}

extension Shape<UInt64> {
    static var count: Shape { Shape(.keywords("integer", ("minimum", 0))) { .integer(Int64(clamping: $0)) } }
}

extension Shape<Double> {
    static var number: Shape { Shape(.keywords("number")) { .number($0) } }
}

extension Shape<Int64> {
    static var count: Shape { Shape(.keywords("integer", ("minimum", 0))) { .integer($0) } }
    /// Writes milliseconds as seconds.
    static var seconds: Shape { Shape(.keywords("number", ("minimum", 0))) { .number(Double($0) / 1_000) } }
    /// Writes milliseconds since 1970 as RFC 3339.
    static var instant: Shape { Shape(.keywords("string", ("format", "date-time"))) { .string(Instant.text($0)) } }
}

extension Shape<Void> {
    /// Null, for calls without data.
    static var nothing: Shape { Shape(.keywords("null")) { .null } }
}
