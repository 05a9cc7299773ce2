/// The values of one message that references may point to (AMF3 §2.2). Owned by a decoder; a plain value.
///
/// References to strings and traits are resolved, and their text is counted each time. References to complex values stay references, so
/// that a few bytes cannot expand into a tree of any size, and a cycle is only a number.
struct AMF3Tables: Sendable {
    /// AMF3 §3.12: the shape that objects of one class share.
    struct Traits: Sendable {
        var className: String
        var sealed: [String] = []
        var isDynamic = false
        var isExternalizable = false
        /// Bytes of UTF-8 that each use of these traits adds to the result.
        var textBytes: Int { sealed.reduce(className.utf8.count) { $0 + $1.utf8.count } }
    }

    /// Externalizable classes whose body is one AMF3 value: Flex's wrappers around an array and an object.
    private static let wrappers: Set<String> = ["flex.messaging.io.ArrayCollection", "flex.messaging.io.ObjectProxy"]

    private var strings: [String] = []
    private var traits: [Traits] = []
    /// Complex values in the order in which they start; nil while one is still being read.
    private var objects: [AMF3Value?] = []

    func object(_ index: Int) -> AMF3Value? { objects.indices.contains(index) ? objects[index] : nil }

    mutating func value(from reader: inout AMFReader, depth: Int) throws(AMFError) -> AMF3Value {
        let offset = reader.offset
        let marker: UInt8 = try reader.integer(.marker)
        try reader.countValue()
        switch marker {
        case AMF3Marker.undefined: return .undefined
        case AMF3Marker.null: return .null
        case AMF3Marker.false: return .boolean(false)
        case AMF3Marker.true: return .boolean(true)
        case AMF3Marker.integer: return .integer(Self.signed(try reader.u29(.integer)))
        case AMF3Marker.double: return .double(try reader.double(.number))
        case AMF3Marker.string: return .string(try string(from: &reader, .string))
        case AMF3Marker.xmlDocument, AMF3Marker.date, AMF3Marker.array, AMF3Marker.object, AMF3Marker.xml, AMF3Marker.byteArray,
            AMF3Marker.vectorInt, AMF3Marker.vectorUInt, AMF3Marker.vectorDouble, AMF3Marker.vectorObject, AMF3Marker.dictionary:
            // AMF3 §2.2: the lowest bit of the U29 is 0 for a reference into the one table of complex values.
            let header = try reader.u29(.length)
            guard header & 1 == 1 else { return .reference(Int(header >> 1)) }
            objects.append(nil)
            let slot = objects.count - 1
            let value = try complex(marker, header: Int(header >> 1), from: &reader, depth: depth)
            objects[slot] = value
            return value
        default: throw .unexpectedMarker(marker, .amf3, offset: offset)
        }
    }

    /// AMF3 §3.6: 29 bits in two's complement.
    private static func signed(_ value: UInt32) -> Int32 { Int32(truncatingIfNeeded: value << 3) >> 3 }

    /// Reads a complex value sent inline; `header` is its U29 without the reference bit.
    private mutating func complex(
        _ marker: UInt8, header: Int, from reader: inout AMFReader, depth: Int
    ) throws(AMFError) -> AMF3Value {
        switch marker {
        case AMF3Marker.xmlDocument: return .xmlDocument(try countedText(header, .xml, from: &reader))
        case AMF3Marker.xml: return .xml(try countedText(header, .xml, from: &reader))
        case AMF3Marker.date: return .date(milliseconds: try reader.double(.date))
        case AMF3Marker.byteArray: return .byteArray(try reader.bytes(header, .byteArray))
        case AMF3Marker.array: return try array(count: header, from: &reader, depth: depth)
        case AMF3Marker.dictionary: return try dictionary(count: header, from: &reader, depth: depth)
        case AMF3Marker.object: return try object(header: header, from: &reader, depth: depth)
        default: return try vector(marker, count: header, from: &reader, depth: depth)
        }
    }

    private func countedText(_ count: Int, _ field: AMFField, from reader: inout AMFReader) throws(AMFError) -> String {
        let text = try reader.text(count, field)
        try reader.countText(text.utf8.count)
        return text
    }

    /// Reads UTF-8-vr (AMF3 §1.3.2): a string or a reference to one.
    private mutating func string(from reader: inout AMFReader, _ field: AMFField) throws(AMFError) -> String {
        let offset = reader.offset
        let header = try reader.u29(field)
        let value = Int(header >> 1)
        if header & 1 == 1 {
            let string = try countedText(value, field, from: &reader)
            if value > 0 { strings.append(string) }  // AMF3 §1.3.2: the empty string is never sent by reference
            return string
        }
        guard value < strings.count else {
            throw .unknownReference(.string, index: value, count: strings.count, offset: offset)
        }
        try reader.countText(strings[value].utf8.count)
        return strings[value]
    }

    /// Reads an array (AMF3 §3.11): named members up to an empty name, then `count` values.
    private mutating func array(count: Int, from reader: inout AMFReader, depth: Int) throws(AMFError) -> AMF3Value {
        let inside = try reader.deeper(depth)
        try reader.check(count: count, of: .array)
        let associative = try members(from: &reader, depth: inside)
        return .array(associative: associative, dense: try values(count, of: .array, from: &reader, depth: inside))
    }

    private mutating func values(
        _ count: Int, of field: AMFField, from reader: inout AMFReader, depth: Int
    ) throws(AMFError) -> [AMF3Value] {
        try reader.check(count: count, of: field)
        var values: [AMF3Value] = []
        for _ in 0..<count { values.append(try value(from: &reader, depth: depth)) }
        return values
    }

    /// Reads names and values up to an empty name (UTF-8-empty).
    private mutating func members(from reader: inout AMFReader, depth: Int) throws(AMFError) -> [AMF3Property] {
        var members: [AMF3Property] = []
        while true {
            let name = try string(from: &reader, .propertyName)
            if name.isEmpty { return members }
            try reader.checkRoom(after: members.count, in: .propertyList)
            members.append(AMF3Property(name: name, value: try value(from: &reader, depth: depth)))
        }
    }

    /// AMF3 §3.12.
    private mutating func object(header: Int, from reader: inout AMFReader, depth: Int) throws(AMFError) -> AMF3Value {
        let inside = try reader.deeper(depth)
        let offset = reader.offset
        let traits = try traits(header: header, from: &reader)
        if traits.isExternalizable {
            guard Self.wrappers.contains(traits.className) else {
                throw .unknownExternalizable(className: traits.className, offset: offset)
            }
            return .externalizable(className: traits.className, try value(from: &reader, depth: inside))
        }
        var sealed: [AMF3Property] = []
        for name in traits.sealed { sealed.append(AMF3Property(name: name, value: try value(from: &reader, depth: inside))) }
        let dynamic = traits.isDynamic ? try members(from: &reader, depth: inside) : nil
        return .object(className: traits.className, sealed: sealed, dynamic: dynamic)
    }

    /// Reads the traits that an object's U29 announces. In `header`, the U29 without its reference bit, bit 0 clear means a reference to
    /// earlier traits; bit 1 marks an externalizable class, bit 2 a dynamic one, and the sealed member count follows above.
    private mutating func traits(header: Int, from reader: inout AMFReader) throws(AMFError) -> Traits {
        if header & 1 == 0 {
            let index = header >> 1
            guard index < traits.count else {
                throw .unknownReference(.traits, index: index, count: traits.count, offset: reader.offset)
            }
            try reader.countText(traits[index].textBytes)
            return traits[index]
        }
        var new = Traits(className: "", isDynamic: header & 4 != 0, isExternalizable: header & 2 != 0)
        let count = new.isExternalizable ? 0 : header >> 3
        try reader.check(count: count, of: .traits)
        new.className = try string(from: &reader, .className)
        for _ in 0..<count { new.sealed.append(try string(from: &reader, .propertyName)) }
        traits.append(new)
        return new
    }

    /// AMF3 §3.15.
    private mutating func vector(
        _ marker: UInt8, count: Int, from reader: inout AMFReader, depth: Int
    ) throws(AMFError) -> AMF3Value {
        let size = marker == AMF3Marker.vectorObject ? 1 : marker == AMF3Marker.vectorDouble ? 8 : 4
        let fixed = try reader.integer(.vector, as: UInt8.self) != 0
        try reader.check(count: count, of: .vector, size: size)
        switch marker {
        case AMF3Marker.vectorInt:
            var items: [Int32] = []
            for _ in 0..<count { items.append(try reader.integer(.vector)) }
            return .vectorInt(items, fixed: fixed)
        case AMF3Marker.vectorUInt:
            var items: [UInt32] = []
            for _ in 0..<count { items.append(try reader.integer(.vector)) }
            return .vectorUInt(items, fixed: fixed)
        case AMF3Marker.vectorDouble:
            var items: [Double] = []
            for _ in 0..<count { items.append(try reader.double(.vector)) }
            return .vectorDouble(items, fixed: fixed)
        default:
            let inside = try reader.deeper(depth)
            let typeName = try string(from: &reader, .className)
            return .vectorObject(typeName: typeName, try values(count, of: .vector, from: &reader, depth: inside), fixed: fixed)
        }
    }

    /// AMF3 §3.16.
    private mutating func dictionary(count: Int, from reader: inout AMFReader, depth: Int) throws(AMFError) -> AMF3Value {
        let inside = try reader.deeper(depth)
        let weakKeys = try reader.integer(.dictionary, as: UInt8.self) != 0
        try reader.check(count: count, of: .dictionary, size: 2)
        var entries: [AMF3Entry] = []
        for _ in 0..<count {
            let key = try value(from: &reader, depth: inside)
            entries.append(AMF3Entry(key: key, value: try value(from: &reader, depth: inside)))
        }
        return .dictionary(entries, weakKeys: weakKeys)
    }
}
