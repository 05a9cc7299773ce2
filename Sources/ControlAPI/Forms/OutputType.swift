import Rooms
import Support

/// Writes one type of value into answers. Writer and schema are one declaration, so that they cannot diverge.
struct OutputType<Value>: Sendable {
    let schema: Schema
    let write: @Sendable (Value) -> JSONValue

    init(_ schema: Schema, _ write: @escaping @Sendable (Value) -> JSONValue) {
        self.schema = schema
        self.write = write
    }
}

/// One member of an object in an answer. Always present; an absent value is null.
package struct Field<Value>: Sendable {
    let property: Schema.Property
    let write: @Sendable (Value) -> JSONValue

    static func field<Inner>(
        _ name: String, _ outputType: OutputType<Inner>, _ help: String, _ get: @escaping @Sendable (Value) -> Inner
    ) -> Field {
        Field(property: .init(name: name, schema: outputType.schema, help: help, isRequired: true)) { outputType.write(get($0)) }
    }
}

extension OutputType {
    /// An object; with a name, its schema is written once in the document.
    static func object(_ name: String? = nil, _ fields: [Field<Value>]) -> OutputType {
        let schema = Schema.object(fields.map(\.property))
        return OutputType(name.map { .named($0, schema) } ?? schema) { value in
            .object(fields.map { JSONValue.Member(name: $0.property.name, value: $0.write(value)) })
        }
    }

    static func list<Element>(_ element: OutputType<Element>) -> OutputType where Value == [Element] {
        OutputType(.list(element.schema)) { .array($0.map(element.write)) }
    }

    static func nullable<Wrapped>(_ outputType: OutputType<Wrapped>) -> OutputType where Value == Wrapped? {
        OutputType(.nullable(outputType.schema)) { $0.map(outputType.write) ?? .null }
    }

    /// An object with a member for each key, sorted by key.
    package static func map<Element>(_ element: OutputType<Element>) -> OutputType where Value == [String: Element] {
        OutputType(.map(element.schema)) { values in
            .object(values.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: element.write($0.value)) })
        }
    }

    /// A case of an enumeration, as its raw value.
    static func choice() -> OutputType where Value: RawRepresentable<String> & CaseIterable & Sendable {
        .choice(of: Array(Value.allCases))
    }

    /// One of these values, as its raw value.
    static func choice(of cases: [Value]) -> OutputType where Value: RawRepresentable<String> & Sendable {
        OutputType(.words(cases.map(\.rawValue))) { .string($0.rawValue) }
    }
}

extension Schema {
    static func words(_ words: [String]) -> Schema { .keywords("string", ("enum", .array(words.map(JSONValue.string)))) }
}

extension OutputType<String> {
    static var text: OutputType { OutputType(.keywords("string")) { .string($0) } }
    static var uri: OutputType { OutputType(.keywords("string", ("format", "uri"))) { .string($0) } }
    /// Stored text that holds a JSON object.
    static var jsonObject: OutputType {
        OutputType(.keywords("object")) { text in
            // The text was checked before it was stored.
            guard let value = try? JSONParser.parse(text.utf8, deepest: JSONParser.deepestAnswer), case .object = value else {
                return .object([])
            }
            return value
        }
    }

    static func words(_ words: [String]) -> OutputType { OutputType(.words(words)) { .string($0) } }
}

extension OutputType<Bool> {
    static var flag: OutputType { OutputType(.keywords("boolean")) { .bool($0) } }
}

extension OutputType<Int> {
    package static var count: OutputType { OutputType(.keywords("integer", ("minimum", 0))) { .integer(Int64($0)) } }
    static func whole(_ range: ClosedRange<Int>) -> OutputType {
        OutputType(.keywords("integer", ("minimum", .integer(Int64(range.lowerBound))), ("maximum", .integer(Int64(range.upperBound))))) {
            .integer(Int64($0))
        }
    }
}

extension OutputType<UInt64> {
    package static var count: OutputType { OutputType(.keywords("integer", ("minimum", 0))) { .integer(Int64(clamping: $0)) } }
}

extension OutputType<Double> {
    static var number: OutputType { OutputType(.keywords("number")) { .number($0) } }
}

extension OutputType<Int64> {
    package static var count: OutputType { OutputType(.keywords("integer", ("minimum", 0))) { .integer($0) } }
    /// Writes milliseconds as seconds.
    package static var seconds: OutputType { OutputType(.keywords("number", ("minimum", 0))) { .number(Double($0) / 1_000) } }
    /// Writes milliseconds since 1970 as RFC 3339.
    static var instant: OutputType { OutputType(.keywords("string", ("format", "date-time"))) { .string(Instant.text($0)) } }
}

extension OutputType<Void> {
    /// Null, for calls without data.
    package static var nothing: OutputType { OutputType(.keywords("null")) { .null } }
}
