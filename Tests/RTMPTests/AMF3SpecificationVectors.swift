@testable import RTMP

/// Vectors for each type of the AMF3 specification, written from its grammar. Those marked Py3AMF are bytes of the Py3AMF 0.9.1 encoder.
extension AMF3Vector {
    static let all: [AMF3Vector] = scalars + containers

    static let scalars: [AMF3Vector] = [
        AMF3Vector("AMF3 §3.2 … §3.5", "00 01 02 03", [.undefined, .null, .boolean(false), .boolean(true)]),
        AMF3Vector(
            "AMF3 §3.6 integers; Py3AMF", "0400 047F 048100 04FF7F 04818000 04FFFF7F 0480C08000 04BFFFFFFF",
            [0, 127, 128, 16383, 16384, 2_097_151, 2_097_152, 0x0FFF_FFFF].map { .integer($0) }),
        AMF3Vector("AMF3 §3.6 negative integers; Py3AMF", "04FFFFFFFF 04C0808000", [.integer(-1), .integer(-0x1000_0000)]),
        AMF3Vector(
            "integers beyond 29 bits are doubles; Py3AMF", "0541B0000000000000 05C1B0000001000000",
            [.double(268_435_456), .double(-268_435_457)]),
        AMF3Vector("AMF3 §1.3.1 an integer longer than need be", "0480808001", [.integer(1)], isCanonical: false),
        AMF3Vector("AMF3 §3.7 double; Py3AMF", "05 3FF8000000000000", [.double(1.5)]),
        AMF3Vector("AMF3 §3.7 -0.0 and NaN", "05 8000000000000000 05 7FF8000000000000", [.double(-0.0), .double(.nan)]),
        AMF3Vector("AMF3 §3.8 string; Py3AMF", "06 13 C3A9E282ACF09F9880", [.string("é€😀")]),
        AMF3Vector("AMF3 §3.8 empty string", "0601", [.string("")]),
        AMF3Vector(
            "AMF3 §3.8 string reference; the empty string has no index", "0601 060361 0600", [.string(""), .string("a"), .string("a")],
            isCanonical: false),
        AMF3Vector("invalid UTF-8 is repaired", "06 07 61FF62", [.string("a\u{FFFD}b")], isCanonical: false),
        AMF3Vector("AMF3 §3.9 XML document", "07 09 3C612F3E", [.xmlDocument("<a/>")]),
        AMF3Vector("AMF3 §3.10 date; Py3AMF", "08 01 42702B3621158000", [.date(milliseconds: 1_111_111_111_000)]),
        AMF3Vector("AMF3 §3.13 XML; Py3AMF", "0B 11 3C613E623C2F613E", [.xml("<a>b</a>")]),
        AMF3Vector("AMF3 §3.14 byte array; Py3AMF", "0C 07 0001FF", [.byteArray([0, 1, 255])]),
        AMF3Vector("AMF3 §3.14 empty byte array", "0C01", [.byteArray([])]),
    ]

    static let containers: [AMF3Vector] = [
        AMF3Vector(
            "AMF3 §3.11 dense array; Py3AMF", "09 09 01 0401 0402 060378 0600",
            [.array(associative: [], dense: [.integer(1), .integer(2), .string("x"), .string("x")])], isCanonical: false),
        AMF3Vector(
            "AMF3 §3.11 mixed array; Py3AMF", "09 03 036B 03 01 0405",
            [.array(associative: [AMF3Property(name: "k", value: .boolean(true))], dense: [.integer(5)])]),
        AMF3Vector("AMF3 §3.11 empty array", "09 01 01", [.array(associative: [], dense: [])]),
        AMF3Vector(
            "AMF3 §3.12 anonymous object; Py3AMF", "0A0B01 0361 0401 0362 0600 01",
            [
                .object(
                    className: "", sealed: [],
                    dynamic: [AMF3Property(name: "a", value: .integer(1)), AMF3Property(name: "b", value: .string("a"))])
            ],
            isCanonical: false),
        AMF3Vector(
            "AMF3 §3.12 sealed class, then its traits by reference; Py3AMF",
            "09 05 01 0A23 23 6F72672E6578616D706C652E506F696E74 0378 0379 0401 0402 0A01 0403 0404",
            [
                .array(
                    associative: [],
                    dense: [
                        .object(
                            className: "org.example.Point",
                            sealed: [AMF3Property(name: "x", value: .integer(1)), AMF3Property(name: "y", value: .integer(2))],
                            dynamic: nil),
                        .object(
                            className: "org.example.Point",
                            sealed: [AMF3Property(name: "x", value: .integer(3)), AMF3Property(name: "y", value: .integer(4))],
                            dynamic: nil),
                    ])
            ], isCanonical: false),
        AMF3Vector(
            "AMF3 §2.2 the same object twice; Py3AMF", "09 05 01 0A0B01 036E 04FFFFFFFF 01 0A02",
            [
                .array(
                    associative: [],
                    dense: [.object(className: "", sealed: [], dynamic: [AMF3Property(name: "n", value: .integer(-1))]), .reference(1)])
            ]),
        AMF3Vector(
            "flex ArrayCollection; Py3AMF", "0A07 43 666C65782E6D6573736167696E672E696F2E4172726179436F6C6C656374696F6E 09 03 01 060361",
            [.externalizable(className: "flex.messaging.io.ArrayCollection", .array(associative: [], dense: [.string("a")]))]),
        AMF3Vector(
            "flex ObjectProxy; Py3AMF", "0A07 3B 666C65782E6D6573736167696E672E696F2E4F626A65637450726F7879 0A0B01 0361 0401 01",
            [
                .externalizable(
                    className: "flex.messaging.io.ObjectProxy",
                    .object(className: "", sealed: [], dynamic: [AMF3Property(name: "a", value: .integer(1))]))
            ]),
        AMF3Vector("AMF3 §3.15 vector of int", "0D 05 00 00000001 FFFFFFFF", [.vectorInt([1, -1], fixed: false)]),
        AMF3Vector("AMF3 §3.15 vector of uint", "0E 05 01 00000001 FFFFFFFF", [.vectorUInt([1, 0xFFFF_FFFF], fixed: true)]),
        AMF3Vector(
            "AMF3 §3.15 vector of double", "0F 05 00 3FF8000000000000 7FF8000000000000", [.vectorDouble([1.5, .nan], fixed: false)]),
        AMF3Vector(
            "AMF3 §3.15 vector of objects", "10 05 00 0361 01 0401", [.vectorObject(typeName: "a", [.null, .integer(1)], fixed: false)]),
        AMF3Vector(
            "AMF3 §3.16 dictionary", "11 05 00 0401 060361 060362 01",
            [.dictionary([AMF3Entry(key: .integer(1), value: .string("a")), AMF3Entry(key: .string("b"), value: .null)], weakKeys: false)]),
        AMF3Vector("AMF3 §3.16 weak dictionary", "11 01 01", [.dictionary([], weakKeys: true)]),
    ]
}
