import NIOCore
@testable import RTMP
import Testing

@Suite struct AMF3Tests {
    @Test(arguments: AMF3Vector.all) func `a vector decodes to its values`(_ vector: AMF3Vector) throws {
        var decoder = AMF3Decoder(vector.buffer)
        #expect(try decoder.all() == vector.values)
        #expect(try decoder.next() == nil)
    }

    @Test(arguments: AMF3Vector.all) func `values encode to their vector`(_ vector: AMF3Vector) throws {
        var buffer = ByteBuffer()
        for value in vector.values { buffer.writeAMF3(value) }
        if vector.isCanonical { #expect(buffer == vector.buffer) }
        var decoder = AMF3Decoder(buffer)
        #expect(try decoder.all() == vector.values)
    }

    /// A cut leaves exactly the values before it, because AMF3 closes every container.
    @Test(arguments: AMF3Vector.all) func `a cut vector never traps`(_ vector: AMF3Vector) {
        let whole = vector.buffer
        for length in 0..<whole.readableBytes {
            var decoder = AMF3Decoder(whole.getSlice(at: 0, length: length) ?? ByteBuffer())
            guard let values = try? decoder.all() else { continue }
            #expect(values.count < vector.values.count)
            #expect(values[...] == vector.values.prefix(values.count))
        }
    }

    /// AMF3 §1.3.1. Its table ends at 3FFFFFFF, but four bytes carry 29 bits: only the low 29 are written.
    @Test(
        arguments: [
            (0x00, "00"), (0x7F, "7F"), (0x80, "8100"), (0x3FFF, "FF7F"), (0x4000, "818000"), (0x1F_FFFF, "FFFF7F"),
            (0x20_0000, "80C08000"),
            (0x0FFF_FFFF, "BFFFFFFF"), (0x1FFF_FFFF, "FFFFFFFF"), (0x3FFF_FFFF, "FFFFFFFF"),
        ] as [(UInt32, String)])
    func `U29 at its boundaries`(_ value: UInt32, _ hex: String) {
        var buffer = ByteBuffer()
        buffer.writeAMF3U29(value)
        #expect(buffer == amfBuffer(hex))
        for length in 0..<buffer.readableBytes {
            var cut = buffer.getSlice(at: 0, length: length) ?? ByteBuffer()
            #expect(cut.readAMF3U29() == nil)
            #expect(cut.readableBytes == length)
        }
        #expect(buffer.readAMF3U29() == value & 0x1FFF_FFFF)
        #expect(buffer.readableBytes == 0)
    }

    @Test(arguments: [Int32.min, -0x1000_0001, -0x1000_0000, -1, 0, 0x0FFF_FFFF, 0x1000_0000, .max])
    func `an integer outside 29 bits is written as a double`(_ integer: Int32) throws {
        var buffer = ByteBuffer()
        buffer.writeAMF3(.integer(integer))
        var decoder = AMF3Decoder(buffer)
        let value = try #require(try decoder.next())
        #expect(value.number == Double(integer))
        #expect(value == ((-0x1000_0000...0x0FFF_FFFF).contains(integer) ? .integer(integer) : .double(Double(integer))))
    }

    @Test func `object references are kept and resolve; one to an open object does not yet`() throws {
        var decoder = AMF3Decoder(amfBuffer("0A0B01 0361 0A00 0362 0C03FF 01 0902 0804"))
        let object = AMF3Value.object(
            className: "", sealed: [],
            dynamic: [AMF3Property(name: "a", value: .reference(0)), AMF3Property(name: "b", value: .byteArray([255]))])
        #expect(try decoder.all() == [object, .reference(1), .reference(2)])
        #expect(decoder.resolve(0) == object)
        #expect(decoder.resolve(1) == .byteArray([255]))
        #expect(decoder.resolve(2) == nil)
        #expect(decoder.resolve(-1) == nil)
    }

    @Test func `what AMF3 cannot hold is cut`() throws {
        var deep = AMF3Value.null
        for depth in 0..<2_000 {
            deep =
                depth.isMultiple(of: 2)
                ? .array(associative: [], dense: [deep]) : .dictionary([AMF3Entry(key: .null, value: deep)], weakKeys: false)
        }
        var buffer = ByteBuffer()
        buffer.writeAMF3(deep)
        #expect(buffer.readableBytes < 2_000)
        buffer.clear()
        for index in [-1, .min, .max, 0x1000_0000] { buffer.writeAMF3(.reference(index)) }
        buffer.writeAMF3(.reference(0x0FFF_FFFF))
        buffer.writeAMF3(.array(associative: [AMF3Property(name: "", value: .null), AMF3Property(name: "a", value: .null)], dense: []))
        var decoder = AMF3Decoder(buffer)
        let array = AMF3Value.array(associative: [AMF3Property(name: "a", value: .null)], dense: [])
        #expect(try decoder.all() == [.null, .null, .null, .null, .reference(0x0FFF_FFFF), array])
    }

    @Test func `members are found by name`() {
        let value = AMF3Value.array(
            associative: [AMF3Property(name: "a", value: .integer(1)), AMF3Property(name: "b", value: .integer(2))], dense: [.integer(3)])
        #expect(value["a"] == .integer(1) && value["b"] == .integer(2) && value["c"] == nil)
    }
}
