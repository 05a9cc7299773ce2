import Rooms
package import Support

/// Writes one type of value into answers. Writer and schema are one declaration, so that they cannot diverge.
package struct OutputType<Value>: Sendable {
    package let schema: Schema
    package let write: @Sendable (Value) -> JSONValue

    package init(_ schema: Schema, _ write: @escaping @Sendable (Value) -> JSONValue) {
        self.schema = schema
        self.write = write
    }
}

/// One member of an object in an answer. Always present; an absent value is null.
package struct Field<Value>: Sendable {
    package let property: Schema.Property
    package let write: @Sendable (Value) -> JSONValue

    package static func field<Inner>(
        _ name: String, _ outputType: OutputType<Inner>, _ help: String, _ get: @escaping @Sendable (Value) -> Inner
    ) -> Field {
        Field(property: .init(name: name, schema: outputType.schema, help: help, isRequired: true)) { outputType.write(get($0)) }
    }

    /// The same field of a value that has this one within.
    package func within<Outer>(_ get: @escaping @Sendable (Outer) -> Value) -> Field<Outer> {
        Field<Outer>(property: self.property) { [write] in write(get($0)) }
    }
}

extension OutputType {
    /// An object; with a name, its schema is written once in the document.
    package static func object(_ name: String? = nil, _ fields: [Field<Value>]) -> OutputType {
        let schema = Schema.object(fields.map(\.property))
        return OutputType(name.map { .named($0, schema) } ?? schema) { value in
            .object(fields.map { JSONValue.Member(name: $0.property.name, value: $0.write(value)) })
        }
    }

    package static func list<Element>(_ element: OutputType<Element>) -> OutputType where Value == [Element] {
        OutputType(.list(element.schema)) { .array($0.map(element.write)) }
    }

    package static func nullable<Wrapped>(_ outputType: OutputType<Wrapped>) -> OutputType where Value == Wrapped? {
        OutputType(.nullable(outputType.schema)) { $0.map(outputType.write) ?? .null }
    }

    /// An object with a member for each key, sorted by key.
    package static func map<Element>(_ element: OutputType<Element>) -> OutputType where Value == [String: Element] {
        OutputType(.map(element.schema)) { values in
            .object(values.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: element.write($0.value)) })
        }
    }

    /// A case of an enumeration, as its raw value.
    package static func choice() -> OutputType where Value: RawRepresentable<String> & CaseIterable & Sendable {
        .choice(of: Array(Value.allCases))
    }

    /// One of these values, as its raw value.
    package static func choice(of cases: [Value]) -> OutputType where Value: RawRepresentable<String> & Sendable {
        OutputType(.words(cases.map(\.rawValue))) { .string($0.rawValue) }
    }
}

extension Schema {
    package static func words(_ words: [String]) -> Schema { .keywords("string", ("enum", .array(words.map(JSONValue.string)))) }
}

extension OutputType<String> {
    package static var text: OutputType { OutputType(.keywords("string")) { .string($0) } }
    package static var uri: OutputType { OutputType(.keywords("string", ("format", "uri"))) { .string($0) } }
    /// Stored text that holds a JSON object.
    package static var jsonObject: OutputType {
        OutputType(.keywords("object")) { text in
            // The text was checked before it was stored.
            guard let value = try? JSONParser.parse(text.utf8, deepest: JSONParser.deepestAnswer), case .object = value else {
                return .object([])
            }
            return value
        }
    }

    package static func words(_ words: [String]) -> OutputType { OutputType(.words(words)) { .string($0) } }
}

extension OutputType<Bool> {
    package static var flag: OutputType { OutputType(.keywords("boolean")) { .bool($0) } }
}

extension OutputType<Int> {
    package static var count: OutputType { OutputType(.keywords("integer", ("minimum", 0))) { .integer(Int64($0)) } }
    package static func whole(_ range: ClosedRange<Int>) -> OutputType {
        OutputType(.keywords("integer", ("minimum", .integer(Int64(range.lowerBound))), ("maximum", .integer(Int64(range.upperBound))))) {
            .integer(Int64($0))
        }
    }
}

extension OutputType<UInt64> {
    package static var count: OutputType { OutputType(.keywords("integer", ("minimum", 0))) { .integer(Int64(clamping: $0)) } }
}

extension OutputType<Double> {
    package static var number: OutputType { OutputType(.keywords("number")) { .number($0) } }
}

extension OutputType<Int64> {
    package static var count: OutputType { OutputType(.keywords("integer", ("minimum", 0))) { .integer($0) } }
    /// Writes milliseconds as seconds.
    package static var seconds: OutputType { OutputType(.keywords("number", ("minimum", 0))) { .number(Double($0) / 1_000) } }
    /// Writes milliseconds since 1970 as RFC 3339.
    package static var instant: OutputType { OutputType(.keywords("string", ("format", "date-time"))) { .string(Instant.text($0)) } }
}

extension OutputType<Void> {
    /// Null, for calls without data.
    package static var nothing: OutputType { OutputType(.keywords("null")) { .null } }
}
