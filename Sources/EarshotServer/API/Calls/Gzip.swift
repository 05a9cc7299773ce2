import CZlib
import NIOCore

/// Compression of answers (RFC 1952), by zlib. Runs on the caller's thread: on no event loop, since calls are not carried out there.
enum Gzip {
    /// Bytes; less is not worth it.
    static let least = 1_024
    /// Of JSON it leaves a tenth, like the highest, in a third of the time.
    private static let level: Int32 = 4
    /// zlib's windowBits: the largest window, 16 more for gzip's header.
    private static let windowBits: Int32 = 15 + 16

    /// Whether Accept-Encoding takes gzip (RFC 9110 §12.5.3). One that cannot be read takes nothing.
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

    /// Nil when zlib has no memory: the answer goes out as it is.
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
                // zlib reads from next_in only, whatever its type says.
                stream.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
                stream.avail_in = UInt32(clamping: input.count)
                stream.next_out = output.bindMemory(to: UInt8.self).baseAddress
                stream.avail_out = UInt32(clamping: output.count)
                // In one call: the output has room for all there can be.
                return deflate(&stream, Z_FINISH) == Z_STREAM_END ? Int(stream.total_out) : 0
            }
        }
        return outcome > 0 ? packed : nil
    }
}
