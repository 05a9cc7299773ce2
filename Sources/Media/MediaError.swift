/// An error in a media payload: what was found and what was expected.
///
/// Affects only the message; the caller decides whether the stream goes on.
package enum MediaError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The payload ends inside a field. Sizes in bytes, or bits where the field's name says so.
    case truncated(field: String, needed: Int, available: Int)
    /// A field holds a value that its specification forbids here.
    case invalid(field: String, found: Int, expected: String)
    /// A count or size is above what this parser accepts.
    case overLimit(field: String, found: Int, max: Int)
    /// The payload is well formed, but not of the requested kind.
    case mismatch(expected: String, found: String)

    package var description: String {
        switch self {
        case .truncated(let field, let needed, let available): "\(field) is cut short: \(needed) needed, \(available) available"
        case .invalid(let field, let found, let expected): "\(field) is \(found), expected \(expected)"
        case .overLimit(let field, let found, let max): "\(field) is \(found), at most \(max) accepted"
        case .mismatch(let expected, let found): "expected \(expected), found \(found)"
        }
    }
}
