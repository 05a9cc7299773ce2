/// The reason a media window rejected a call.
///
/// Affects only the call: the window is unchanged and goes on.
package enum HLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The epoch is not 1…32 of ASCII letters and digits.
    case badEpoch
    /// The first sequence number is negative, or leaves no room to count on.
    case badSequence(Int)
    /// The CODECS text is too long, or cannot stand in a quoted string.
    case badCodecs
    /// The initialization section that fMP4 media needs is missing.
    case missingInitialization
    /// An initialization section or a part exceeds this window's limit. In bytes.
    case tooLarge(field: String, found: Int, max: Int)
    /// A part without bytes.
    case emptyPart
    /// Media before `begin`, or after `interrupt` without a new `begin`.
    case notBegun
    /// The window has ended and accepts no more media.
    case ended
    /// A delivery directive that is not a decimal integer, or is out of place. The answer is Bad Request (RFC 8216bis §6.2.5.2).
    case badDirective(String)

    package var description: String {
        switch self {
        case .badEpoch: "the epoch is not 1 to 32 letters and digits"
        case .badSequence(let found): "a window cannot start at sequence number \(found)"
        case .badCodecs: "the codecs text is too long, or contains characters that a playlist cannot quote"
        case .missingInitialization: "the initialization section is missing"
        case .tooLarge(let field, let found, let max): "\(field) is \(found) bytes, at most \(max) accepted"
        case .emptyPart: "the part is empty"
        case .notBegun: "there is no format yet for this media"
        case .ended: "the window has ended"
        case .badDirective(let why): why
        }
    }
}
