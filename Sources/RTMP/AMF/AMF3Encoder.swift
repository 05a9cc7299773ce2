package import NIOCore

extension ByteBuffer {
    /// Appends one AMF3 value, with strings and traits in full. Never fails: truncates whatever exceeds AMF3's limits, as ``AMFEncoding``
    /// describes.
    ///
    /// Complex values keep their order, and so their indices: references stay valid in a decoded message that is written whole.
    package mutating func writeAMF3(_ value: AMF3Value) { writeAMF3(value, depth: 0) }

    mutating func writeAMF3(_ value: AMF3Value, depth: Int) {
        switch value {
        case .undefined: writeInteger(AMF3Marker.undefined)
        case .null: writeInteger(AMF3Marker.null)
        case .boolean(let boolean): writeInteger(boolean ? AMF3Marker.true : AMF3Marker.false)
        case .integer(let integer): writeAMF3Integer(integer)
        case .double(let double):
            writeInteger(AMF3Marker.double)
            writeInteger(double.bitPattern)
        case .string(let string):
            writeInteger(AMF3Marker.string)
            writeAMF3Text(string)
        case .xmlDocument(let string):
            writeInteger(AMF3Marker.xmlDocument)
            writeAMF3Text(string)
        case .xml(let string):
            writeInteger(AMF3Marker.xml)
            writeAMF3Text(string)
        case .date(let milliseconds):
            writeInteger(AMF3Marker.date)
            writeAMF3U29(1)
            writeInteger(milliseconds.bitPattern)
        case .byteArray(let bytes):
            writeInteger(AMF3Marker.byteArray)
            let count = writeAMF3Count(bytes.count)
            writeBytes(bytes.prefix(count))
        case .vectorInt(let items, let fixed):
            writeVector(items, AMF3Marker.vectorInt, fixed) { $0.writeInteger($1) }
        case .vectorUInt(let items, let fixed):
            writeVector(items, AMF3Marker.vectorUInt, fixed) { $0.writeInteger($1) }
        case .vectorDouble(let items, let fixed):
            writeVector(items, AMF3Marker.vectorDouble, fixed) { $0.writeInteger($1.bitPattern) }
        case .reference(let index): writeAMF3Reference(index)
        case .array, .object, .externalizable, .vectorObject, .dictionary: writeAMF3Container(value, depth: depth)
        }
    }

    private mutating func writeAMF3Container(_ value: AMF3Value, depth: Int) {
        guard depth < AMFEncoding.maximumDepth else {
            writeInteger(AMF3Marker.null)
            return
        }
        switch value {
        case .array(let associative, let dense):
            writeInteger(AMF3Marker.array)
            let count = writeAMF3Count(dense.count)
            writeMembers(associative, depth: depth)
            for value in dense.prefix(count) { writeAMF3(value, depth: depth + 1) }
        case .object(let className, let sealed, let dynamic):
            writeObject(className, sealed: sealed.prefix(AMFEncoding.maximumSealed), dynamic: dynamic, depth: depth)
        case .externalizable(let className, let value):
            writeInteger(AMF3Marker.object)
            writeAMF3U29(0b0111)
            writeAMF3Text(className)
            writeAMF3(value, depth: depth + 1)
        case .vectorObject(let typeName, let items, let fixed):
            writeInteger(AMF3Marker.vectorObject)
            let count = writeAMF3Count(items.count)
            writeInteger(fixed ? 1 : 0, as: UInt8.self)
            writeAMF3Text(typeName)
            for item in items.prefix(count) { writeAMF3(item, depth: depth + 1) }
        case .dictionary(let entries, let weakKeys):
            writeInteger(AMF3Marker.dictionary)
            let count = writeAMF3Count(entries.count)
            writeInteger(weakKeys ? 1 : 0, as: UInt8.self)
            for entry in entries.prefix(count) {
                writeAMF3(entry.key, depth: depth + 1)
                writeAMF3(entry.value, depth: depth + 1)
            }
        default: break
        }
    }

    /// Writes U29O-traits (AMF3 §3.12). Bits 0 and 1 are set, bit 2 is clear, bit 3 marks a dynamic class, the sealed member count follows
    /// above.
    private mutating func writeObject(
        _ className: String, sealed: ArraySlice<AMF3Property>, dynamic: [AMF3Property]?, depth: Int
    ) {
        writeInteger(AMF3Marker.object)
        writeAMF3U29(UInt32(clamping: sealed.count) << 4 | (dynamic == nil ? 0b0011 : 0b1011))
        writeAMF3Text(className)
        for member in sealed { writeAMF3Text(member.name) }
        for member in sealed { writeAMF3(member.value, depth: depth + 1) }
        if let dynamic { writeMembers(dynamic, depth: depth) }
    }

    /// Writes names and values up to the terminating empty name. Skips members without a name, which AMF3 cannot express.
    private mutating func writeMembers(_ members: [AMF3Property], depth: Int) {
        for member in members where !member.name.isEmpty {
            writeAMF3Text(member.name)
            writeAMF3(member.value, depth: depth + 1)
        }
        writeAMF3Text("")
    }

    private mutating func writeVector<Item>(
        _ items: [Item], _ marker: UInt8, _ fixed: Bool, _ write: (inout ByteBuffer, Item) -> Void
    ) {
        writeInteger(marker)
        let count = writeAMF3Count(items.count)
        writeInteger(fixed ? 1 : 0, as: UInt8.self)
        for item in items.prefix(count) { write(&self, item) }
    }

    /// Writes 29 bits in two's complement (AMF3 §3.6), or a double if that is too small.
    private mutating func writeAMF3Integer(_ integer: Int32) {
        if (-0x1000_0000...0x0FFF_FFFF).contains(integer) {
            writeInteger(AMF3Marker.integer)
            writeAMF3U29(UInt32(bitPattern: integer))
        } else {
            writeInteger(AMF3Marker.double)
            writeInteger(Double(integer).bitPattern)
        }
    }

    /// Writes a reference with an object's marker, valid for every kind: all complex values share one table.
    private mutating func writeAMF3Reference(_ index: Int) {
        guard (0...AMFEncoding.maximumU29Count).contains(index) else {
            writeInteger(AMF3Marker.null)
            return
        }
        writeInteger(AMF3Marker.object)
        writeAMF3U29(UInt32(truncatingIfNeeded: index) << 1)
    }

    /// Writes a count with the "not a reference" bit; returns how many entries may follow.
    private mutating func writeAMF3Count(_ count: Int) -> Int {
        let count = min(count, AMFEncoding.maximumU29Count)
        writeAMF3U29(UInt32(truncatingIfNeeded: count) << 1 | 1)
        return count
    }

    private mutating func writeAMF3Text(_ text: String) {
        let bytes = text.utf8Prefix(AMFEncoding.maximumU29Count)
        _ = writeAMF3Count(bytes.count)
        writeBytes(bytes)
    }
}
