package import Rooms
package import Support

/// What a ``Form`` is made of: inputs, whatever their types.
package protocol RequestInput: Sendable {
    var erased: AnyInput { get }
}

/// One named value of a request's path, query or body. Handlers use it as a key and get its typed value.
package struct Input<Value: Sendable>: RequestInput {
    package let name: String
    package let kind: InputType<Value>
    package let help: String
    /// The value used when the request has none.
    package let fallback: Value?
    package let isRequired: Bool

    package init(_ name: String, _ kind: InputType<Value>, _ help: String, fallback: Value? = nil) {
        self.name = name
        self.kind = kind
        self.help = help
        self.fallback = fallback
        self.isRequired = false
    }

    private init(required input: Input) {
        self.name = input.name
        self.kind = input.kind
        self.help = input.help
        self.fallback = nil
        self.isRequired = true
    }

    package var required: Input { Input(required: self) }

    /// The same input without its type, for a ``Form``.
    package var erased: AnyInput {
        AnyInput(name: self.name, schema: self.kind.schema, help: self.help, isRequired: self.isRequired) {
            [kind] (json: JSONValue) throws(BrokenRule) in try kind.read(json)
        }
    }
}

/// A type-erased ``Input``.
package struct AnyInput: RequestInput {
    package let name: String
    package let schema: Schema
    package let help: String
    package let isRequired: Bool
    package let read: @Sendable (JSONValue) throws(BrokenRule) -> any Sendable
    package var erased: AnyInput { self }
}

/// The inputs that a part of a request may hold. Any other name is an error.
package struct Form: Sendable {
    package let inputs: [AnyInput]
    package let schema: Schema

    package static let empty = Form([])

    package init(_ inputs: [any RequestInput]) {
        let inputs = inputs.map(\.erased)
        self.inputs = inputs
        self.schema = .object(inputs.map { .init(name: $0.name, schema: $0.schema, help: $0.help, isRequired: $0.isRequired) })
    }

    package func input(_ name: String) -> AnyInput? { self.inputs.first { $0.name == name } }

    /// True when no input is required.
    package var isOptional: Bool { !self.inputs.contains(where: \.isRequired) }

    /// Reads every member. Throws for a member that is unknown, missing, repeated or breaks its rule. `what` names members in errors: "field", "query
    /// parameter", "part of the path".
    package func read(_ members: [JSONValue.Member], what: String) throws(FieldError) -> InputValues {
        var values = InputValues()
        for member in members {
            guard let input = self.input(member.name) else { throw self.unknown(member, what) }
            guard !values.has(input.name) else { throw FieldError(member.name, member.value.shown, "is given twice") }
            do {
                values.set(input.name, try input.read(member.value))
            } catch {
                throw error.error(member.name, member.value)
            }
        }
        for input in self.inputs where input.isRequired && !values.has(input.name) {
            throw FieldError(input.name, "", "is required")
        }
        return values
    }

    private func unknown(_ member: JSONValue.Member, _ what: String) -> FieldError {
        let known = self.inputs.map(\.name)
        let hint =
            if let nearest = Suggestion.nearest(member.name, known) {
                "did you mean \(nearest)?"
            } else if known.isEmpty {
                "none is expected here"
            } else {
                "expected one of \(known.joined(separator: ", "))"
            }
        return FieldError(String(member.name.prefix(60)), member.value.shown, "there is no such \(what); \(hint)")
    }
}

/// The values that a request gave, by name.
package struct InputValues: Sendable {
    private var values: [String: any Sendable] = [:]

    package mutating func set(_ name: String, _ value: any Sendable) { self.values[name] = value }

    package func has(_ name: String) -> Bool { self.values[name] != nil }

    package mutating func add(_ others: InputValues) { self.values.merge(others.values) { $1 } }

    /// A given text, whatever the input's form is.
    package func text(_ name: String) -> String? { self.values[name] as? String }

    /// The stream that `app` and `name` name.
    package var stream: StreamPath? { self.text("app").flatMap { app in self.text("name").map { StreamPath(app: app, name: $0) } } }

    /// The given value, or the input's fallback.
    package subscript<Value>(input: Input<Value>) -> Value? {
        if let value = self.values[input.name] { return value as? Value }
        return input.fallback
    }
}
