import NIOCore
import RTMP
import Testing

/// A hostile peer's depths, counts and lengths, and the error that each causes.
@Suite struct AMFLimitTests {
    private func repeated(_ hex: String, _ count: Int) -> ByteBuffer {
        var unit = amfBuffer(hex)
        let bytes = unit.readBytes(length: unit.readableBytes) ?? []
        var buffer = ByteBuffer()
        for _ in 0..<count { buffer.writeBytes(bytes) }
        return buffer
    }

    @Test(arguments: ["03 0000", "08 00000001 0000", "0A 00000001", "10 0000 0000", "11 09 03 01"])
    func `10000 containers inside one another are refused`(_ opening: String) {
        let error = amf0Error(repeated(opening, 10_000))
        if opening.hasPrefix("11") {
            // AMF3 reads the next marker 0x11 as a dictionary with a false count.
            #expect(error != nil)
        } else if case .tooDeep(32, _)? = error {
        } else {
            Issue.record("\(String(describing: error))")
        }
    }

    @Test(arguments: [
        "09 03 01", "0A 0B 01 0361", "10 03 00 01", "11 03 00",
        "0A07 43 666C65782E6D6573736167696E672E696F2E4172726179436F6C6C656374696F6E",
    ])
    func `10000 AMF3 containers inside one another are refused`(_ opening: String) {
        guard case .tooDeep(32, _)? = amf3Error(repeated(opening, 10_000)) else {
            Issue.record("\(String(describing: amf3Error(repeated(opening, 10_000))))")
            return
        }
    }

    @Test func `AMF3 inside AMF0 counts on from the depth where it stands`() {
        var value = AMF3Value.null
        for _ in 0..<20 { value = .array(associative: [], dense: [value]) }
        var outer = AMF0Value.avmPlus(value)
        for level in 0..<14 {
            var buffer = ByteBuffer()
            buffer.writeAMF0(outer)
            let error = amf0Error(buffer)
            #expect(level <= 12 ? error == nil : error != nil, "\(level)")
            outer = .strictArray([outer])
        }
    }

    @Test func `depth 32 is allowed and 33 is not`() {
        for (depth, allowed) in [(32, true), (33, false)] {
            var buffer = repeated("0A 00000001", depth)
            buffer.writeInteger(0x05, as: UInt8.self)
            #expect((amf0Error(buffer) == nil) == allowed)
        }
    }

    @Test func `lying AMF0 counts and lengths are refused`() {
        #expect(amf0Error(amfBuffer("0A FFFFFFFF 05")) == .countTooLarge(.strictArray, count: 0xFFFF_FFFF, maximum: 1, offset: 5))
        #expect(amf0Error(amfBuffer("0A 00000003 0505")) == .countTooLarge(.strictArray, count: 3, maximum: 2, offset: 5))
        #expect(amf0Error(amfBuffer("0C FFFFFFFF 61")) == .truncated(.longString, needed: 0xFFFF_FFFF, available: 1, offset: 5))
        #expect(amf0Error(amfBuffer("0F 80000000 61")) == .truncated(.xml, needed: 0x8000_0000, available: 1, offset: 5))
        #expect(amf0Error(amfBuffer("02 0002 61")) == .truncated(.string, needed: 2, available: 1, offset: 3))
        #expect(amf0Error(amfBuffer("03 FFFF 61")) == .truncated(.propertyName, needed: 0xFFFF, available: 1, offset: 3))
    }

    @Test(arguments: ["09", "0A", "07", "0B", "0C", "0D", "0E", "0F", "10", "11", "06"])
    func `lying AMF3 counts and lengths are refused`(_ marker: String) {
        for header in ["FFFFFFFF", "FFFF7F", "FFFFFFFB"] {
            for rest in ["", "00", "01", "00010101", "01010101010101010101"] {
                #expect(amf3Error(amfBuffer("11" + marker + header + rest)) != nil)
                let error = amf3Error(amfBuffer(marker + header + rest))
                #expect(error != nil || marker == "0B" || marker == "08", "\(marker) \(header) \(rest)")
            }
        }
    }

    @Test func `entries of one container are limited`() {
        let name = "0001 61 05"
        for (count, allowed) in [(1024, true), (1025, false)] {
            var object = amfBuffer("03")
            object.writeImmutableBuffer(repeated(name, count))
            #expect((amf0Error(object) == nil) == allowed)
            var array = amfBuffer("0A")
            array.writeInteger(UInt32(count))
            array.writeImmutableBuffer(repeated("05", count))
            #expect((amf0Error(array) == nil) == allowed)
            var dense = amfBuffer("09")
            dense.writeAMF3U29(UInt32(count) << 1 | 1)
            dense.writeImmutableBuffer(repeated("01", count + 1))
            #expect((amf3Error(dense) == nil) == allowed)
            var dynamic = amfBuffer("0A 0B 01")
            dynamic.writeImmutableBuffer(repeated("0361 01", count))
            dynamic.writeAMF3U29(1)
            #expect((amf3Error(dynamic) == nil) == allowed)
        }
    }

    @Test func `values of one message are limited`() {
        #expect(amf0Error(repeated("05", 16_384)) == nil)
        #expect(amf0Error(repeated("05", 16_385)) == .tooManyValues(maximum: 16_384, offset: 16_385))
        #expect(amf3Error(repeated("01", 16_384)) == nil)
        #expect(amf3Error(repeated("01", 16_385)) == .tooManyValues(maximum: 16_384, offset: 16_385))
        // 8,192 AMF3 nulls inside AMF0 are 16,384 values: the marker counts too.
        #expect(amf0Error(repeated("11 01", 8_192)) == nil)
        #expect(amf0Error(repeated("11 01", 8_193)) != nil)
    }

    @Test func `text repeated by reference is limited`() {
        var strings = ByteBuffer()
        strings.writeAMF3(.string(String(repeating: "x", count: 10_000)))
        strings.writeImmutableBuffer(repeated("0600", 25))
        #expect(amf3Error(strings) == nil)
        strings.writeImmutableBuffer(repeated("0600", 1))
        guard case .tooMuchText(262_144, _)? = amf3Error(strings) else {
            Issue.record("expected too much text")
            return
        }
        var traits = ByteBuffer()
        traits.writeAMF3(.object(className: String(repeating: "x", count: 10_000), sealed: [], dynamic: nil))
        traits.writeImmutableBuffer(repeated("0A01", 26))
        guard case .tooMuchText(262_144, _)? = amf3Error(traits) else {
            Issue.record("expected too much text")
            return
        }
    }

    @Test func `references to nothing are refused where they must be replaced`() {
        #expect(amf3Error(amfBuffer("0600")) == .unknownReference(.string, index: 0, count: 0, offset: 1))
        #expect(amf3Error(amfBuffer("060361 0602")) == .unknownReference(.string, index: 1, count: 1, offset: 4))
        #expect(amf3Error(amfBuffer("0A05")) == .unknownReference(.traits, index: 1, count: 0, offset: 2))
    }

    @Test(arguments: [
        ("04", "movieclip (0x04, reserved)"), ("0E", "recordset (0x0e, reserved)"), ("09", "object end (0x09)"),
        ("12", "unknown marker 0x12"),
    ])
    func `an unusable AMF0 marker is named with its offset`(_ marker: String, _ name: String) throws {
        let error = try #require(amf0Error(amfBuffer("05" + marker)))
        #expect(error == .unexpectedMarker(UInt8(marker, radix: 16) ?? 0, .amf0, offset: 1))
        #expect(error.description == "offset 1: expected the marker of an AMF0 value, found \(name)")
    }

    @Test func `an unknown AMF3 marker or externalizable class is named`() throws {
        #expect(amf3Error(amfBuffer("01 12")) == .unexpectedMarker(0x12, .amf3, offset: 1))
        let error = try #require(amf3Error(amfBuffer("0A07 05 610A")))
        #expect(error == .unknownExternalizable(className: "a\n", offset: 2))
        #expect(error.description == #"offset 2: expected a known externalizable class, found "a\n""#)
    }

    @Test func `every error describes what was found and what was expected`() {
        let errors: [AMFError] = [
            .truncated(.number, needed: 8, available: 3, offset: 1), .unexpectedMarker(0x7F, .amf3, offset: 0),
            .countTooLarge(.array, count: 9, maximum: 1, offset: 2), .tooDeep(maximum: 32, offset: 5),
            .tooManyValues(maximum: 1, offset: 1),
            .tooMuchText(maximum: 4, offset: 3), .unknownReference(.traits, index: 3, count: 1, offset: 2),
            .unknownExternalizable(className: String(repeating: "x", count: 10_000), offset: 1),
        ]
        for error in errors {
            #expect(error.description.contains("expected") && error.description.contains("found"))
            #expect(error.description.utf8.count < 200)
        }
    }
}
