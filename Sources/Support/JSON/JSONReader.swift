/// Reads JSON into another target's own type, keeping each number's digits as written. A value.
package struct JSONReader<Value> {
    private let null: Value
    private let bool: (Bool) -> Value
    private let number: (String) -> Value
    private let string: (String) -> Value
    private let array: ([Value]) -> Value
    private let object: ([(name: String, value: Value)]) -> Value

    package init(
        null: Value, bool: @escaping (Bool) -> Value, number: @escaping (String) -> Value, string: @escaping (String) -> Value,
        array: @escaping ([Value]) -> Value, object: @escaping ([(name: String, value: Value)]) -> Value
    ) {
        self.null = null
        self.bool = bool
        self.number = number
        self.string = string
        self.array = array
        self.object = object
    }

    /// Reads the whole text as one value. Throws when it is not JSON, or nested deeper than answers are.
    package func read(_ bytes: some Sequence<UInt8>) throws -> Value {
        self.value(try JSONParser.parse(bytes, deepest: JSONParser.deepestAnswer))
    }

    private func value(_ json: JSONValue) -> Value {
        switch json {
        case .null: self.null
        case .bool(let value): self.bool(value)
        case .integer, .number, .digits: self.number(json.text)
        case .string(let text): self.string(text)
        case .array(let values): self.array(values.map(self.value))
        case .object(let members): self.object(members.map { (name: $0.name, value: self.value($0.value)) })
        }
    }
}
