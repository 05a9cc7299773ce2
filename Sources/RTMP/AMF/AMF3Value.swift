/// One AMF3 value (AMF3 §3). A plain value; containers keep their members in the order received.
///
/// Equality compares doubles by bit pattern: NaN equals itself, and -0.0 is not 0.0.
package indirect enum AMF3Value: Sendable {
    case undefined
    case null
    case boolean(Bool)
    /// -2^28 … 2^28-1; written as a double when outside.
    case integer(Int32)
    case double(Double)
    case string(String)
    case xmlDocument(String)
    /// Milliseconds since 1970-01-01 UTC.
    case date(milliseconds: Double)
    case array(associative: [AMF3Property], dense: [AMF3Value])
    /// `dynamic` is nil for a class that is not dynamic; an anonymous object has an empty class name.
    case object(className: String, sealed: [AMF3Property], dynamic: [AMF3Property]?)
    /// A class with a format of its own. Only classes that write exactly one value can be read.
    case externalizable(className: String, AMF3Value)
    case xml(String)
    case byteArray([UInt8])
    case vectorInt([Int32], fixed: Bool)
    case vectorUInt([UInt32], fixed: Bool)
    case vectorDouble([Double], fixed: Bool)
    case vectorObject(typeName: String, [AMF3Value], fixed: Bool)
    case dictionary([AMF3Entry], weakKeys: Bool)
    /// The index of an earlier complex value of the same message; see ``AMF3Decoder/resolve(_:)``.
    case reference(Int)
}

/// A named member of an AMF3 object or array. A plain value.
package struct AMF3Property: Sendable, Equatable {
    package var name: String
    package var value: AMF3Value
}

/// A key and its value in an AMF3 dictionary. A plain value.
package struct AMF3Entry: Sendable, Equatable {
    package var key: AMF3Value
    package var value: AMF3Value
}

extension AMF3Value {
    /// The first member of that name: sealed or dynamic in an object, associative in an array.
    package subscript(name: String) -> AMF3Value? {
        switch self {
        case .object(_, let sealed, let dynamic):
            (sealed.first { $0.name == name } ?? dynamic?.first { $0.name == name })?.value
        case .array(let associative, _): associative.first { $0.name == name }?.value
        case .externalizable(_, let value): value[name]
        default: nil
        }
    }

    package var number: Double? {
        switch self {
        case .integer(let integer): Double(integer)
        case .double(let double): double
        default: nil
        }
    }

    package var string: String? { if case .string(let string) = self { string } else { nil } }

    package var boolean: Bool? { if case .boolean(let boolean) = self { boolean } else { nil } }
}

extension AMF3Value: Equatable {
    package static func == (left: AMF3Value, right: AMF3Value) -> Bool {
        switch (left, right) {
        case (.undefined, .undefined), (.null, .null): true
        case (.boolean(let a), .boolean(let b)): a == b
        case (.integer(let a), .integer(let b)): a == b
        case (.double(let a), .double(let b)): a.bitPattern == b.bitPattern
        case (.string(let a), .string(let b)): a == b
        case (.xmlDocument(let a), .xmlDocument(let b)): a == b
        case (.date(let a), .date(let b)): a.bitPattern == b.bitPattern
        case (.array(let namedA, let a), .array(let namedB, let b)): namedA == namedB && a == b
        case (.object(let nameA, let a, let moreA), .object(let nameB, let b, let moreB)): nameA == nameB && a == b && moreA == moreB
        case (.externalizable(let nameA, let a), .externalizable(let nameB, let b)): nameA == nameB && a == b
        case (.xml(let a), .xml(let b)): a == b
        case (.byteArray(let a), .byteArray(let b)): a == b
        case (.vectorInt(let a, let fixedA), .vectorInt(let b, let fixedB)): a == b && fixedA == fixedB
        case (.vectorUInt(let a, let fixedA), .vectorUInt(let b, let fixedB)): a == b && fixedA == fixedB
        case (.vectorDouble(let a, let fixedA), .vectorDouble(let b, let fixedB)):
            a.elementsEqual(b) { $0.bitPattern == $1.bitPattern } && fixedA == fixedB
        case (.vectorObject(let nameA, let a, let fixedA), .vectorObject(let nameB, let b, let fixedB)):
            nameA == nameB && a == b && fixedA == fixedB
        case (.dictionary(let a, let weakA), .dictionary(let b, let weakB)): a == b && weakA == weakB
        case (.reference(let a), .reference(let b)): a == b
        default: false
        }
    }
}
