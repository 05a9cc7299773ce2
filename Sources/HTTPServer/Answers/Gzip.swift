import CZlib
import NIOCore

/// Compresses answers with zlib (RFC 1952). Runs on the caller's thread, never an event loop, since calls do not run there.
enum Gzip {
    /// Bytes; less is not worth it.
    static let least = 1_024
    /// Shrinks JSON to a tenth, like the highest level, in a third of the time.
    private static let level: Int32 = 4
    /// zlib's windowBits: the largest window, 16 more for gzip's header.
    private static let windowBits: Int32 = 15 + 16

    /// Whether Accept-Encoding allows gzip (RFC 9110 §12.5.3). A weight that cannot be read counts as 0.
    static func isAccepted(_ lines: [String]) -> Bool {
        var named: Bool?
        var any = false
        for part in lines.joined(separator: ",").split(separator: ",") {
            let pieces = part.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
            guard let coding = pieces.first else { continue }
            var isWanted = true
            for parameter in pieces.dropFirst() where parameter.hasPrefix("q=") {
                isWanted = Double(parameter.dropFirst(2)).map { $0 > 0 } ?? false
            }
            switch coding {
            case "gzip", "x-gzip": named = isWanted || named == true
            case "*": any = isWanted
            default: break
            }
        }
        return named ?? any
    }

    /// Returns nil when zlib has no memory: the answer goes out uncompressed.
    static func pack(_ bytes: ByteBuffer) -> ByteBuffer? {
        var stream = z_stream()
        let size = Int32(MemoryLayout<z_stream>.size)
        guard deflateInit2_(&stream, Self.level, Z_DEFLATED, Self.windowBits, 8, Z_DEFAULT_STRATEGY, zlibVersion(), size) == Z_OK else {
            return nil
        }
        defer { deflateEnd(&stream) }
        let bound = Int(deflateBound(&stream, UInt(bytes.readableBytes)))
        var packed = ByteBuffer()
        packed.reserveCapacity(bound)
        let outcome = bytes.withUnsafeReadableBytes { input in
            packed.writeWithUnsafeMutableBytes(minimumWritableBytes: bound) { output -> Int in
                // zlib only reads from next_in, although its type is mutable.
                stream.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
                stream.avail_in = UInt32(clamping: input.count)
                stream.next_out = output.bindMemory(to: UInt8.self).baseAddress
                stream.avail_out = UInt32(clamping: output.count)
                // One call suffices: the output has room for the largest possible result.
                return deflate(&stream, Z_FINISH) == Z_STREAM_END ? Int(stream.total_out) : 0
            }
        }
        return outcome > 0 ? packed : nil
    }
}
