package import NIOCore

/// Decodes the AMF0 values of one message, one at a time. Owned by the holder of the message; a plain value without a thread of its own.
///
/// After an error the remaining bytes cannot be decoded: make a new decoder for the next message.
package struct AMF0Decoder: Sendable {
    private var reader: AMFReader
    /// Complex values in the order in which they start; nil while one is still being read (AMF0 §2.9).
    private var complex: [AMF0Value?] = []
    private var amf3 = AMF3Tables()

    package init(_ buffer: ByteBuffer, limits: AMFLimits = .init()) {
        reader = AMFReader(buffer, limits: limits)
    }

    /// The next value, or nil at the end of the bytes.
    package mutating func next() throws(AMFError) -> AMF0Value? {
        guard reader.remaining > 0 else { return nil }
        return try value(depth: 0)
    }

    /// Decodes all remaining values.
    package mutating func all() throws(AMFError) -> [AMF0Value] {
        var values: [AMF0Value] = []
        while let value = try next() { values.append(value) }
        return values
    }

    /// Resolves `.reference(index)`; nil unless that value is complete. It is an object, typed object, ECMA array or strict array.
    package func resolve(_ index: UInt16) -> AMF0Value? {
        Int(index) < complex.count ? complex[Int(index)] : nil
    }

    private mutating func value(depth: Int) throws(AMFError) -> AMF0Value {
        let offset = reader.offset
        let marker: UInt8 = try reader.integer(.marker)
        try reader.countValue()
        switch marker {
        case AMF0Marker.number: return .number(try reader.double(.number))
        case AMF0Marker.boolean: return .boolean(try reader.integer(.boolean, as: UInt8.self) != 0)  // AMF0 §2.3
        case AMF0Marker.string: return .string(try shortText(.string))
        case AMF0Marker.object: return try object(depth: depth)
        case AMF0Marker.null: return .null
        case AMF0Marker.undefined: return .undefined
        case AMF0Marker.reference: return .reference(try reader.integer(.reference))
        case AMF0Marker.ecmaArray: return try ecmaArray(depth: depth)
        case AMF0Marker.strictArray: return try strictArray(depth: depth)
        case AMF0Marker.date:
            try reader.require(10, for: .date)
            return .date(milliseconds: try reader.double(.date), timeZone: try reader.integer(.date))
        case AMF0Marker.longString: return .longString(try longText(.longString))
        case AMF0Marker.unsupported: return .unsupported
        case AMF0Marker.xmlDocument: return .xmlDocument(try longText(.xml))  // AMF0 §2.17: a long UTF-8 string
        case AMF0Marker.typedObject: return try typedObject(depth: depth)
        case AMF0Marker.avmPlus: return .avmPlus(try amf3.value(from: &reader, depth: depth))
        default: throw .unexpectedMarker(marker, .amf0, offset: offset)
        }
    }

    /// Reads UTF-8 with a 16-bit length prefix (AMF0 §1.3.1).
    private mutating func shortText(_ field: AMFField) throws(AMFError) -> String {
        try reader.text(Int(try reader.integer(field, as: UInt16.self)), field)
    }

    /// Reads UTF-8 with a 32-bit length prefix (AMF0 §1.3.1).
    private mutating func longText(_ field: AMFField) throws(AMFError) -> String {
        try reader.text(Int(try reader.integer(field, as: UInt32.self)), field)
    }

    /// AMF0 §2.5.
    private mutating func object(depth: Int) throws(AMFError) -> AMF0Value {
        let slot = reserve()
        let value = AMF0Value.object(try properties(depth: depth, mayLackEnd: true))
        complex[slot] = value
        return value
    }

    /// Reads an ECMA array (AMF0 §2.10). The object end decides; the count is a hint, since some encoders write 0 or a wrong one.
    private mutating func ecmaArray(depth: Int) throws(AMFError) -> AMF0Value {
        let slot = reserve()
        _ = try reader.integer(.ecmaArray, as: UInt32.self)
        let value = AMF0Value.ecmaArray(try properties(depth: depth, mayLackEnd: true))
        complex[slot] = value
        return value
    }

    /// AMF0 §2.18.
    private mutating func typedObject(depth: Int) throws(AMFError) -> AMF0Value {
        let slot = reserve()
        let className = try shortText(.className)
        let value = AMF0Value.typedObject(className: className, properties: try properties(depth: depth, mayLackEnd: false))
        complex[slot] = value
        return value
    }

    /// Reads a strict array (AMF0 §2.12). Only the count ends it, so the count must fit the bytes left: each entry is at least its marker
    /// byte.
    private mutating func strictArray(depth: Int) throws(AMFError) -> AMF0Value {
        let inside = try reader.deeper(depth)
        let slot = reserve()
        let count = Int(try reader.integer(.strictArray, as: UInt32.self))
        try reader.check(count: count, of: .strictArray)
        var entries: [AMF0Value] = []
        for _ in 0..<count { entries.append(try value(depth: inside)) }
        let value = AMF0Value.strictArray(entries)
        complex[slot] = value
        return value
    }

    /// Reads names and values up to the object end. Some encoders omit the end when the list is the last thing in the message.
    private mutating func properties(depth: Int, mayLackEnd: Bool) throws(AMFError) -> [AMF0Property] {
        let inside = try reader.deeper(depth)
        var properties: [AMF0Property] = []
        while !reader.objectEnd() {
            if mayLackEnd, reader.remaining == 0 { break }
            try reader.checkRoom(after: properties.count, in: .propertyList)
            let name = try shortText(.propertyName)
            properties.append(AMF0Property(name: name, value: try value(depth: inside)))
        }
        return properties
    }

    private mutating func reserve() -> Int {
        complex.append(nil)
        return complex.count - 1
    }
}
