@testable import RTMP

/// Vectors for each type of the AMF0 specification, written from its grammar. Those marked Py3AMF are bytes of the Py3AMF 0.9.1 encoder.
extension AMF0Vector {
    static let specification: [AMF0Vector] = [
        AMF0Vector("AMF0 §2.2 number", "00 3FF8000000000000", [1.5]),
        AMF0Vector("AMF0 §2.2 -0.0", "00 8000000000000000", [.number(-0.0)]),
        AMF0Vector("AMF0 §2.2 NaN", "00 7FF8000000000000", [.number(.nan)]),
        AMF0Vector("AMF0 §2.2 infinity", "00 7FF0000000000000 00 FFF0000000000000", [.number(.infinity), .number(-.infinity)]),
        AMF0Vector("AMF0 §2.3 booleans", "0100 0101", [false, true]),
        AMF0Vector("AMF0 §2.3 nonzero is true", "01FF", [true], isCanonical: false),
        AMF0Vector("AMF0 §2.4 string", "02 0003 666F6F", ["foo"]),
        AMF0Vector("AMF0 §2.4 empty string", "02 0000", [""]),
        AMF0Vector("AMF0 §2.4 UTF-8", "02 0009 C3A9 E282AC F09F9880", ["é€😀"]),
        AMF0Vector("invalid UTF-8 is repaired", "02 0003 61FF62", ["a\u{FFFD}b"], isCanonical: false),
        AMF0Vector("AMF0 §2.5 object", "03 0001 61 02 0001 62 000009", [["a": "b"]]),
        AMF0Vector("AMF0 §2.5 empty object", "03 000009", [[:]]),
        AMF0Vector("a property without a name", "03 0000 05 0001 61 06 000009", [["": .null, "a": .undefined]]),
        AMF0Vector(
            "order is kept, names may repeat", "03 0001 62 05 0001 61 05 0001 62 06 000009", [["b": .null, "a": .null, "b": .undefined]]),
        AMF0Vector("AMF0 §2.7 null, §2.8 undefined, §2.15 unsupported", "05 06 0D", [.null, .undefined, .unsupported]),
        AMF0Vector("AMF0 §2.9 reference", "03 000009 07 0000", [[:], .reference(0)]),
        AMF0Vector("AMF0 §2.10 ECMA array", "08 00000001 0001 30 0101 000009", [.ecmaArray([AMF0Property(name: "0", value: true)])]),
        AMF0Vector(
            "ECMA array that counts 0", "08 00000000 0001 30 0101 000009", [.ecmaArray([AMF0Property(name: "0", value: true)])],
            isCanonical: false),
        AMF0Vector(
            "ECMA array that counts 4 billion", "08 FFFFFFFF 0001 30 0101 000009", [.ecmaArray([AMF0Property(name: "0", value: true)])],
            isCanonical: false),
        AMF0Vector(
            "ECMA array without an end", "08 00000001 0001 30 0101", [.ecmaArray([AMF0Property(name: "0", value: true)])],
            isCanonical: false),
        AMF0Vector("objects without an end", "03 0001 61 03 0001 62 05", [["a": ["b": .null]]], isCanonical: false),
        AMF0Vector("AMF0 §2.12 strict array", "0A 00000002 05 02 0001 61", [.strictArray([.null, "a"])]),
        AMF0Vector("AMF0 §2.12 empty strict array", "0A 00000000", [.strictArray([])]),
        AMF0Vector("AMF0 §2.13 date", "0B 42702B3621158000 FFC4", [.date(milliseconds: 1_111_111_111_000, timeZone: -60)]),
        AMF0Vector("AMF0 §2.14 long string", "0C 00000003 666F6F", [.longString("foo")]),
        AMF0Vector("AMF0 §2.17 XML document", "0F 00000004 3C612F3E", [.xmlDocument("<a/>")]),
        AMF0Vector(
            "AMF0 §2.18 typed object; Py3AMF",
            "10 0011 6F72672E6578616D706C652E506F696E74 0001 78 00 3FF0000000000000 0001 79 00 4000000000000000 000009",
            [
                .typedObject(
                    className: "org.example.Point", properties: [AMF0Property(name: "x", value: 1), AMF0Property(name: "y", value: 2)])
            ]),
        AMF0Vector(
            "a strict array counts as a complex value; Py3AMF", "0A 00000002 03 0001 61 02 0001 62 000009 07 0001",
            [.strictArray([["a": "b"], .reference(1)])]),
        AMF0Vector(
            "AMF0 §3.1 AMF3 inside AMF0", "02 0001 61 11 0A0B01 0361 0401 0362 060361 01 05",
            [
                "a",
                .avmPlus(
                    .object(
                        className: "", sealed: [],
                        dynamic: [AMF3Property(name: "a", value: .integer(1)), AMF3Property(name: "b", value: .string("a"))])),
                .null,
            ]),
        AMF0Vector(
            "AMF3 tables last for the message", "11 060361 11 0600", [.avmPlus(.string("a")), .avmPlus(.string("a"))], isCanonical: false),
    ]
}
