import Support

/// An AMF decoding error: what was found, what was expected and where. A value; affects only the message that held the bytes.
///
/// Every `offset` counts bytes from the start of the decoder's buffer.
package enum AMFError: Error, Equatable, Sendable {
    /// The bytes end inside `field`, which needs `needed` bytes from `offset` on.
    case truncated(AMFField, needed: Int, available: Int, offset: Int)
    /// A type marker that is not allowed there: reserved, unknown, or an object end without an object.
    case unexpectedMarker(UInt8, AMFVersion, offset: Int)
    /// A count above the limit, or above what the remaining bytes can hold.
    case countTooLarge(AMFField, count: Int, maximum: Int, offset: Int)
    /// Containers nested deeper than `AMFLimits.depth`.
    case tooDeep(maximum: Int, offset: Int)
    /// More values in one message than `AMFLimits.totalValues`.
    case tooManyValues(maximum: Int, offset: Int)
    /// More decoded text in one message than `AMFLimits.stringBytes`, including text repeated by references.
    case tooMuchText(maximum: Int, offset: Int)
    /// A reference to a string or traits not sent yet; the table holds `count` of them.
    case unknownReference(AMFField, index: Int, count: Int, offset: Int)
    /// An externalizable class, whose format only the class itself knows.
    case unknownExternalizable(className: String, offset: Int)
}

/// The format that a marker belongs to.
package enum AMFVersion: String, Sendable {
    case amf0 = "AMF0"
    case amf3 = "AMF3"
}

/// The parts of a value that an ``AMFError`` can name.
package enum AMFField: String, Sendable {
    case marker = "type marker"
    case number, boolean, string, reference, date, integer
    case longString = "long string"
    case propertyName = "property name"
    case propertyList = "property list"
    case className = "class name"
    case array, vector, dictionary, traits
    case ecmaArray = "ECMA array"
    case strictArray = "strict array"
    case byteArray = "byte array"
    case xml = "XML"
    case length = "length"
}

extension AMFError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .truncated(let field, let needed, let available, let offset):
            "\(field.rawValue) at offset \(offset): expected \(needed) bytes, found \(available)"
        case .unexpectedMarker(let marker, let version, let offset):
            "offset \(offset): expected the marker of an \(version.rawValue) value, found \(Self.name(of: marker, in: version))"
        case .countTooLarge(let field, let count, let maximum, let offset):
            "\(field.rawValue) at offset \(offset): expected at most \(maximum) entries, found \(count)"
        case .tooDeep(let maximum, let offset):
            "offset \(offset): expected at most \(maximum) nested containers, found more"
        case .tooManyValues(let maximum, let offset):
            "offset \(offset): expected at most \(maximum) values in a message, found more"
        case .tooMuchText(let maximum, let offset):
            "offset \(offset): expected at most \(maximum) bytes of text in a message, found more"
        case .unknownReference(let field, let index, let count, let offset):
            "offset \(offset): expected a \(field.rawValue) reference below \(count), found \(index)"
        case .unknownExternalizable(let className, let offset):
            // The peer chose the name: cut and quote it, so that it cannot fill or forge a log line.
            "offset \(offset): expected a known externalizable class, found \(String(className.prefix(64)).debugDescription)"
        }
    }

    private static func name(of marker: UInt8, in version: AMFVersion) -> String {
        let hex = "0x" + String(hex: marker, digits: 2)
        guard version == .amf0 else { return "unknown marker \(hex)" }
        return switch marker {
        case AMF0Marker.movieClip: "movieclip (\(hex), reserved)"  // AMF0 §2.6
        case AMF0Marker.recordSet: "recordset (\(hex), reserved)"  // AMF0 §2.16
        case AMF0Marker.objectEnd: "object end (\(hex))"
        default: "unknown marker \(hex)"
        }
    }
}
