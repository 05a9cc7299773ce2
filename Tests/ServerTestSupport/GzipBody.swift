import CZlib
package import Foundation
import TestSupport

/// Bodies of answers in gzip's format.
package enum GzipBody {
    /// The content of gzip's format (RFC 1952), which ends with its length. Throws for anything else.
    package static func unpacked(_ packed: Data) throws -> Data {
        // A response to HEAD has the header alone.
        guard !packed.isEmpty else { return packed }
        let length = packed.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        var content = [UInt8](repeating: 0, count: length)
        var source = [UInt8](packed)
        var stream = z_stream()
        // 15: the largest window; 16 more for gzip's header.
        guard inflateInit2_(&stream, 15 + 16, zlibVersion(), Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw TimedOut(description: "zlib has no memory")
        }
        defer { inflateEnd(&stream) }
        let outcome = source.withUnsafeMutableBufferPointer { input in
            content.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = UInt32(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                return inflate(&stream, Z_FINISH)
            }
        }
        guard outcome == Z_STREAM_END, stream.total_out == length else {
            throw TimedOut(description: "the body is not gzip's: \(outcome)")
        }
        return Data(content)
    }
}
