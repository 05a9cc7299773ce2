@testable import RTMP
import Testing

/// Values that differ in one field are unequal.
@Suite struct AMF3EqualityTests {
    private static let property = AMF3Property(name: "a", value: .integer(1))

    private static let values: [AMF3Value] = [
        .undefined, .null, .boolean(true), .boolean(false), .integer(1), .integer(2), .double(1), .double(-0.0), .double(0), .string("a"),
        .string("b"), .xmlDocument("a"), .xmlDocument("b"), .date(milliseconds: 1), .date(milliseconds: 2),
        .array(associative: [], dense: []), .array(associative: [property], dense: []), .array(associative: [], dense: [.null]),
        .array(associative: [property], dense: [.null]), .object(className: "", sealed: [], dynamic: nil),
        .object(className: "", sealed: [], dynamic: []), .object(className: "", sealed: [property], dynamic: nil),
        .object(className: "", sealed: [property], dynamic: []), .object(className: "", sealed: [], dynamic: [property]),
        .object(className: "c", sealed: [], dynamic: nil), .object(className: "c", sealed: [property], dynamic: nil),
        .externalizable(className: "c", .null), .externalizable(className: "d", .null), .externalizable(className: "c", .undefined),
        .xml("a"), .xml("b"), .byteArray([]), .byteArray([1]), .vectorInt([], fixed: false), .vectorInt([1], fixed: false),
        .vectorInt([], fixed: true), .vectorInt([1], fixed: true), .vectorUInt([], fixed: false), .vectorUInt([1], fixed: false),
        .vectorUInt([], fixed: true), .vectorUInt([1], fixed: true), .vectorDouble([], fixed: false), .vectorDouble([1], fixed: false),
        .vectorDouble([], fixed: true), .vectorDouble([1], fixed: true), .vectorObject(typeName: "", [], fixed: false),
        .vectorObject(typeName: "t", [], fixed: false), .vectorObject(typeName: "", [.null], fixed: false),
        .vectorObject(typeName: "", [], fixed: true), .vectorObject(typeName: "t", [.null], fixed: false),
        .vectorObject(typeName: "t", [.null], fixed: true), .dictionary([], weakKeys: false), .dictionary([], weakKeys: true),
        .dictionary([AMF3Entry(key: .null, value: .null)], weakKeys: false),
        .dictionary([AMF3Entry(key: .null, value: .null)], weakKeys: true),
        .reference(0), .reference(1),
    ]

    @Test func eachIsItselfAlone() {
        for (index, value) in Self.values.enumerated() {
            for (other, another) in Self.values.enumerated() { #expect((value == another) == (index == other), "\(value) \(another)") }
        }
    }
}
