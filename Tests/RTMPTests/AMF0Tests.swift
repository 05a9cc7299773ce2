import NIOCore
@testable import RTMP
import Testing

@Suite struct AMF0Tests {
    @Test(arguments: AMF0Vector.all) func `a vector decodes to its values`(_ vector: AMF0Vector) throws {
        var decoder = AMF0Decoder(vector.buffer)
        #expect(try decoder.all() == vector.values)
        #expect(try decoder.next() == nil)
    }

    @Test(arguments: AMF0Vector.all) func `values encode to their vector`(_ vector: AMF0Vector) throws {
        var buffer = ByteBuffer()
        for value in vector.values { buffer.writeAMF0(value) }
        if vector.isCanonical { #expect(buffer == vector.buffer) }
        var decoder = AMF0Decoder(buffer)
        #expect(try decoder.all() == vector.values)
    }

    /// A cut vector yields an error or the values before the cut. The last may be incomplete: AMF0 tolerates a missing object end.
    @Test(arguments: AMF0Vector.all) func `a cut vector never traps`(_ vector: AMF0Vector) {
        let whole = vector.buffer
        for length in 0..<whole.readableBytes {
            var decoder = AMF0Decoder(whole.getSlice(at: 0, length: length) ?? ByteBuffer())
            guard let values = try? decoder.all() else { continue }
            #expect(values.count <= vector.values.count)
            #expect(values.dropLast() == vector.values.prefix(max(values.count - 1, 0)))
        }
    }

    @Test func `a buffer that does not begin at index 0 is read from its reader index`() throws {
        var buffer = amfBuffer("FFFF 05 04")
        buffer.moveReaderIndex(forwardBy: 2)
        var decoder = AMF0Decoder(buffer)
        #expect(try decoder.next() == .null)
        #expect(throws: AMFError.unexpectedMarker(0x04, .amf0, offset: 1)) { try decoder.next() }
    }

    @Test func `references are kept, and resolve to completed complex values in order of appearance`() throws {
        // An object that holds an ECMA array, a strict array and a reference to itself.
        var decoder = AMF0Decoder(amfBuffer("03 0001 61 08 00000000 000009 0001 62 0A 00000000 0001 63 07 0000 000009 07 0002"))
        let object: AMF0Value = ["a": .ecmaArray([]), "b": .strictArray([]), "c": .reference(0)]
        #expect(try decoder.all() == [object, .reference(2)])
        #expect(decoder.resolve(0) == object)
        #expect(decoder.resolve(1) == .ecmaArray([]))
        #expect(decoder.resolve(2) == .strictArray([]))
        #expect(decoder.resolve(3) == nil)
        #expect(decoder.resolve(.max) == nil)
    }

    @Test func `AMF3 references inside AMF0 resolve in their own table`() throws {
        var decoder = AMF0Decoder(amfBuffer("03 000009 11 0C0301 11 0C00"))
        #expect(try decoder.all() == [[:], .avmPlus(.byteArray([1])), .avmPlus(.reference(0))])
        #expect(decoder.resolve(0) == [:])
    }

    @Test func `accessors see through AMF3`() throws {
        let value: AMF0Value = ["app": "live", "on": true, "n": 3, "long": .longString("x")]
        #expect(value["app"]?.string == "live")
        #expect(value["on"]?.boolean == true)
        #expect(value["n"]?.number == 3)
        #expect(value["long"]?.string == "x")
        #expect(value["none"] == nil)
        #expect(value["app"]?.number == nil)
        let plus = AMF0Value.avmPlus(
            .object(
                className: "", sealed: [AMF3Property(name: "n", value: .integer(3))],
                dynamic: [AMF3Property(name: "s", value: .string("x"))]))
        #expect(plus["n"]?.number == 3)
        #expect(plus["s"]?.string == "x")
    }

    @Test(arguments: [65_535, 65_536, 65_537]) func `a string over 65535 bytes becomes a long string`(_ length: Int) throws {
        let text = String(repeating: "x", count: length)
        var buffer = ByteBuffer()
        buffer.writeAMF0(.string(text))
        #expect(buffer.readableBytes == length + (length > 65_535 ? 5 : 3))
        var decoder = AMF0Decoder(buffer)
        #expect(try decoder.all() == [length > 65_535 ? .longString(text) : .string(text)])
    }

    @Test(arguments: 0..<4) func `a property name over 65535 bytes is cut between characters`(_ shift: Int) throws {
        let name = String(repeating: "x", count: shift) + String(repeating: "😀", count: 20_000)
        var buffer = ByteBuffer()
        buffer.writeAMF0([name: .null])
        var decoder = AMF0Decoder(buffer)
        let cut = try #require(try decoder.next()?.properties?.first?.name)
        #expect(name.hasPrefix(cut))
        #expect((65_532...65_535).contains(cut.utf8.count))
    }

    @Test func `deep values of our own are cut, not followed without end`() {
        var value = AMF0Value.null
        for depth in 0..<2_000 { value = depth.isMultiple(of: 2) ? .strictArray([value]) : ["a": value] }
        var buffer = ByteBuffer()
        buffer.writeAMF0(value)
        #expect(buffer.readableBytes < 2_000)
        var decoder = AMF0Decoder(buffer, limits: AMFLimits(depth: 1_000))
        #expect(throws: Never.self) { try decoder.all() }
    }

    @Test func `equality goes by bits`() {
        #expect(AMF0Value.number(.nan) == .number(.nan))
        #expect(AMF0Value.number(0) != .number(-0.0))
        #expect(AMF0Value.string("a") != .longString("a"))
    }
}
