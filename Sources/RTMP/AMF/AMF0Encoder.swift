package import NIOCore

extension ByteBuffer {
    /// Appends one AMF0 value. Never fails: truncates whatever exceeds AMF0's limits, as ``AMFEncoding`` describes.
    package mutating func writeAMF0(_ value: AMF0Value) { writeAMF0(value, depth: 0) }

    private mutating func writeAMF0(_ value: AMF0Value, depth: Int) {
        switch value {
        case .number(let number):
            writeInteger(AMF0Marker.number)
            writeInteger(number.bitPattern)
        case .boolean(let boolean):
            writeInteger(AMF0Marker.boolean)
            writeInteger(boolean ? 1 : 0, as: UInt8.self)
        case .string(let string):
            // AMF0 §2.14: a string over 65,535 bytes is a long string.
            if string.utf8.count > AMFEncoding.maximumShortText {
                writeLongText(string, marker: AMF0Marker.longString)
            } else {
                writeInteger(AMF0Marker.string)
                writeShortText(string)
            }
        case .longString(let string): writeLongText(string, marker: AMF0Marker.longString)
        case .xmlDocument(let string): writeLongText(string, marker: AMF0Marker.xmlDocument)
        case .null: writeInteger(AMF0Marker.null)
        case .undefined: writeInteger(AMF0Marker.undefined)
        case .unsupported: writeInteger(AMF0Marker.unsupported)
        case .reference(let index):
            writeInteger(AMF0Marker.reference)
            writeInteger(index)
        case .date(let milliseconds, let timeZone):
            writeInteger(AMF0Marker.date)
            writeInteger(milliseconds.bitPattern)
            writeInteger(timeZone)
        case .object, .ecmaArray, .strictArray, .typedObject, .avmPlus: writeContainer(value, depth: depth)
        }
    }

    private mutating func writeContainer(_ value: AMF0Value, depth: Int) {
        guard depth < AMFEncoding.maximumDepth else {
            writeInteger(AMF0Marker.null)
            return
        }
        switch value {
        case .object(let properties):
            writeInteger(AMF0Marker.object)
            writeProperties(properties, depth: depth)
        case .ecmaArray(let properties):
            writeInteger(AMF0Marker.ecmaArray)
            writeInteger(UInt32(clamping: properties.count))
            writeProperties(properties, depth: depth)
        case .typedObject(let className, let properties):
            writeInteger(AMF0Marker.typedObject)
            writeShortText(className)
            writeProperties(properties, depth: depth)
        case .strictArray(let values):
            let count = UInt32(clamping: values.count)
            writeInteger(AMF0Marker.strictArray)
            writeInteger(count)
            for value in values.prefix(Int(count)) { writeAMF0(value, depth: depth + 1) }
        case .avmPlus(let value):
            writeInteger(AMF0Marker.avmPlus)
            writeAMF3(value, depth: depth)
        default: break
        }
    }

    private mutating func writeProperties(_ properties: [AMF0Property], depth: Int) {
        for property in properties {
            writeShortText(property.name)
            writeAMF0(property.value, depth: depth + 1)
        }
        writeInteger(0, as: UInt16.self)  // AMF0 §2.11
        writeInteger(AMF0Marker.objectEnd)
    }

    private mutating func writeShortText(_ text: String) {
        let bytes = text.utf8Prefix(AMFEncoding.maximumShortText)
        writeInteger(UInt16(clamping: bytes.count))
        writeBytes(bytes)
    }

    private mutating func writeLongText(_ text: String, marker: UInt8) {
        let bytes = text.utf8Prefix(AMFEncoding.maximumLongText)
        writeInteger(marker)
        writeInteger(UInt32(clamping: bytes.count))
        writeBytes(bytes)
    }
}
