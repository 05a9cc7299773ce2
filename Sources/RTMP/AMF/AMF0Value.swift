/// One AMF0 value (AMF0 §2). A plain value; containers keep their properties in the order received.
///
/// Equality compares doubles by bit pattern: NaN equals itself, and -0.0 is not 0.0.
package indirect enum AMF0Value: Sendable {
    case number(Double)
    case boolean(Bool)
    /// Written as a long string when its UTF-8 exceeds 65,535 bytes.
    case string(String)
    case object([AMF0Property])
    case null
    case undefined
    /// The index of an earlier complex value of the same message; see ``AMF0Decoder/resolve(_:)``.
    case reference(UInt16)
    case ecmaArray([AMF0Property])
    case strictArray([AMF0Value])
    /// Milliseconds since 1970-01-01 UTC; the time zone is reserved and should be 0 (AMF0 §2.13).
    case date(milliseconds: Double, timeZone: Int16)
    case longString(String)
    case unsupported
    case xmlDocument(String)
    case typedObject(className: String, properties: [AMF0Property])
    /// A value that switched to AMF3 (AMF0 §3.1).
    case avmPlus(AMF3Value)
}

/// A named value in an AMF0 object or ECMA array. A plain value.
package struct AMF0Property: Sendable, Equatable {
    package var name: String
    package var value: AMF0Value

    package init(name: String, value: AMF0Value) {
        self.name = name
        self.value = value
    }
}

extension AMF0Value {
    /// The first property of that name in an object, ECMA array or typed object. Also searches AMF3 objects and arrays.
    package subscript(name: String) -> AMF0Value? {
        switch self {
        case .avmPlus(let value): value[name].map { .avmPlus($0) }
        default: properties?.first { $0.name == name }?.value
        }
    }

    /// The properties of an object, ECMA array or typed object.
    package var properties: [AMF0Property]? {
        switch self {
        case .object(let properties), .ecmaArray(let properties), .typedObject(_, let properties): properties
        default: nil
        }
    }

    package var number: Double? {
        switch self {
        case .number(let number): number
        case .avmPlus(let value): value.number
        default: nil
        }
    }

    /// The text of a string or long string.
    package var string: String? {
        switch self {
        case .string(let string), .longString(let string): string
        case .avmPlus(let value): value.string
        default: nil
        }
    }

    package var boolean: Bool? {
        switch self {
        case .boolean(let boolean): boolean
        case .avmPlus(let value): value.boolean
        default: nil
        }
    }
}

extension AMF0Value: Equatable {
    package static func == (left: AMF0Value, right: AMF0Value) -> Bool {
        switch (left, right) {
        case (.number(let a), .number(let b)): a.bitPattern == b.bitPattern
        case (.boolean(let a), .boolean(let b)): a == b
        case (.string(let a), .string(let b)): a == b
        case (.object(let a), .object(let b)): a == b
        case (.null, .null), (.undefined, .undefined), (.unsupported, .unsupported): true
        case (.reference(let a), .reference(let b)): a == b
        case (.ecmaArray(let a), .ecmaArray(let b)): a == b
        case (.strictArray(let a), .strictArray(let b)): a == b
        case (.date(let a, let zoneA), .date(let b, let zoneB)): a.bitPattern == b.bitPattern && zoneA == zoneB
        case (.longString(let a), .longString(let b)): a == b
        case (.xmlDocument(let a), .xmlDocument(let b)): a == b
        case (.typedObject(let nameA, let a), .typedObject(let nameB, let b)): nameA == nameB && a == b
        case (.avmPlus(let a), .avmPlus(let b)): a == b
        default: false
        }
    }
}

extension AMF0Value: ExpressibleByStringLiteral, ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    package init(stringLiteral value: String) { self = .string(value) }
    package init(floatLiteral value: Double) { self = .number(value) }
    package init(integerLiteral value: Int) { self = .number(Double(value)) }
    package init(booleanLiteral value: Bool) { self = .boolean(value) }
}

extension AMF0Value: ExpressibleByDictionaryLiteral {
    /// An object with the properties in the order written.
    package init(dictionaryLiteral elements: (String, AMF0Value)...) {
        self = .object(elements.map { AMF0Property(name: $0.0, value: $0.1) })
    }
}
