import HTTPTypes
package import Hummingbird

extension ByteRange {
    /// Returns the part of `size` bytes to answer with (206), or nil for the whole. Throws 416 if the range covers no byte. RFC 9110 §14.2, §13.1.5.
    /// `what`: the subject in the message, such as "The file".
    package static func asked(by request: Request, of size: Int64, etag: String, what: String) throws(APIError) -> Range<Int64>? {
        // Range applies to GET only.
        guard request.method == .get, let text = request.headers[.range], let range = ByteRange(text),
            request.headers[.ifRange].map({ $0 == etag }) ?? true
        else { return nil }
        if let part = range.part(of: size) { return part }
        var error = APIError(.rangeNotSatisfiable, .invalid, "\(what) has \(size) bytes.")
        error.field = "Range"
        error.value = String(text.prefix(80))
        error.rule = "expected a range that begins before byte \(size)"
        error.headers[.contentRange] = "bytes */\(size)"
        throw error
    }

    /// The Content-Range value for this part.
    package static func contentRange(_ part: Range<Int64>, of size: Int64) -> String {
        "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)"
    }
}
