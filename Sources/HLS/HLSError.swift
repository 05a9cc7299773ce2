/// Why a window of media, or a question about it, was refused.
///
/// Scope: the call. The window stays as it was, and goes on.
package enum HLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The epoch is not 1…32 of ASCII letters and digits.
    case badEpoch
    /// A window's first sequence number must leave room to count on.
    case badSequence(Int)
    /// The CODECS text is longer than a playlist should hold, or has a character that its quotes cannot.
    case badCodecs
    /// fMP4 media needs an initialization section, and it is not there.
    case missingInitialization
    /// Bytes: an initialization section or a part is larger than this window takes.
    case tooLarge(field: String, found: Int, max: Int)
    /// A part without bytes.
    case emptyPart
    /// Media before `begin`, or after `interrupt` without a new `begin`.
    case notBegun
    /// The window has ended and takes no more.
    case ended
    /// A delivery directive that is no decimal integer, or is out of place (RFC 8216bis §6.2.5.2: Bad Request).
    case badDirective(String)

    package var description: String {
        switch self {
        case .badEpoch: "the epoch is not 1 to 32 letters and digits"
        case .badSequence(let found): "a window cannot start at sequence number \(found)"
        case .badCodecs: "the codecs text does not fit a playlist"
        case .missingInitialization: "the initialization section is missing"
        case .tooLarge(let field, let found, let max): "\(field) is \(found) bytes, at most \(max) accepted"
        case .emptyPart: "the part is empty"
        case .notBegun: "there is no format yet for this media"
        case .ended: "the window has ended"
        case .badDirective(let why): why
        }
    }
}
