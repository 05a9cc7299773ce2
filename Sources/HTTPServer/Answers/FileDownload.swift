import HTTPTypes
package import Hummingbird
import NIOCore
import NIOPosix
import Support

/// A file served to a client, whole or as a range (RFC 9110 §14). Read in chunks at the client's pace, off the event loops.
///
/// A value. The file stays open and unchanged even if it is replaced or deleted meanwhile.
package struct FileDownload: Sendable {
    private let file: OpenFile
    package let size: Int64
    package let etag: String
    /// The name under which a browser saves it.
    package let name: String
    private let type: String
    /// Browsers show it; otherwise they save it, unless a player asked for it.
    private let isShown: Bool

    private static let pieceBytes = 256 << 10

    /// A descriptor that closes with its last reference.
    private final class OpenFile: Sendable {
        let descriptor: CInt
        init(_ descriptor: CInt) { self.descriptor = descriptor }
        deinit { close(self.descriptor) }

        /// Reads up to `count` bytes, fewer at the end of the file. Blocks.
        func read(_ count: Int, at offset: Int64) throws -> ByteBuffer {
            var buffer = ByteBufferAllocator().buffer(capacity: count)
            try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { bytes in
                while true {
                    let got = pread(self.descriptor, bytes.baseAddress, count, off_t(offset))
                    if got >= 0 { return got }
                    guard errno == EINTR else { throw IOError(errnoCode: errno, reason: "pread") }
                }
            }
            return buffer
        }
    }

    /// Opens the file; nil when there is none. `limit` caps the readable size of a file that still grows. Blocks.
    package init?(path: String, limit: Int64?, id: String, name: String, type: String, isShown: Bool) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        self.file = OpenFile(descriptor)
        guard let status = FileStatus(descriptor: descriptor), status.isRegular else { return nil }
        self.size = min(status.size, limit ?? .max)
        self.etag = "\"\(id)-\(self.size)-\(status.inode)\""
        self.name = name
        self.type = type
        self.isShown = isShown
    }

    package func response(to request: Request) throws(APIError) -> Response {
        var headers: HTTPFields = [
            .contentType: self.type, .acceptRanges: "bytes", .eTag: self.etag, .cacheControl: "private, no-cache",
            .contentDisposition: "\(self.isShown ? "inline" : "attachment"); filename=\"\(self.name)\"",
        ]
        // RFC 9110 §13.1.2, before any range (§13.2.2).
        if let known = request.headers[.ifNoneMatch], self.isAmong(known) {
            return Response(status: .notModified, headers: [.eTag: self.etag, .cacheControl: "private, no-cache"])
        }
        guard let part = try ByteRange.asked(by: request, of: self.size, etag: self.etag, what: "The file") else {
            return Response(status: .ok, headers: headers, body: self.body(0..<self.size))
        }
        headers[.contentRange] = ByteRange.contentRange(part, of: self.size)
        return Response(status: .partialContent, headers: headers, body: self.body(part))
    }

    /// Weak comparison (RFC 9110 §8.8.3.2). Our tags contain no comma.
    private func isAmong(_ tags: String) -> Bool {
        tags.split(separator: ",").contains { tag in
            let tag = tag.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
            return tag == "*" || (tag.hasPrefix("W/") ? tag.dropFirst(2) : tag) == self.etag[...]
        }
    }

    private func body(_ part: Range<Int64>) -> ResponseBody {
        let file = self.file
        return ResponseBody(contentLength: Int(part.count)) { writer in
            var offset = part.lowerBound
            while offset < part.upperBound {
                let count = Int(min(Int64(Self.pieceBytes), part.upperBound - offset))
                let piece = try await NIOThreadPool.singleton.runIfActive { [offset] in try file.read(count, at: offset) }
                // The file has shrunk: the length is already promised, so the connection ends.
                guard piece.readableBytes > 0 else { throw IOError(errnoCode: EIO, reason: "the file has become shorter") }
                offset += Int64(piece.readableBytes)
                try await writer.write(piece)
            }
            try await writer.finish(nil)
        }
    }
}

/// A single byte range as in RFC 9110 §14.1.2. Nil for several ranges or another unit, for which a server may send the whole file.
package struct ByteRange: Equatable {
    private enum Kind: Equatable {
        case from(Int64, to: Int64?)
        case last(Int64)
    }
    private let kind: Kind

    package init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
        let ends = parts[1].trimmed.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]) else { return nil }
        switch (first, last) {
        case (let first?, let last):
            guard last.map({ $0 >= first }) ?? true else { return nil }
            self.kind = .from(first, to: last)
        case (nil, let count?): self.kind = .last(count)
        case (nil, nil): return nil
        }
    }

    /// An inner nil means empty text, an outer one no number. Numbers that do not fit become the largest.
    private static func number(_ text: Substring) -> Int64?? {
        if text.isEmpty { return .some(nil) }
        guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return .some(Int64(text) ?? .max)
    }

    /// The bytes of a file of this size that the range covers; nil when there are none.
    package func part(of size: Int64) -> Range<Int64>? {
        switch self.kind {
        case .from(let first, let last):
            guard first < size else { return nil }
            return first..<(min(last ?? .max, size - 1) + 1)
        case .last(let count):
            guard count > 0, size > 0 else { return nil }
            return max(0, size - count)..<size
        }
    }
}

extension Substring {
    fileprivate var trimmed: Substring { self.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" } }
}
