/// Datagrams that come by TCP, each behind its length in two bytes (RFC 4571 §2). A value; used by one thread at a time.
package struct DatagramFrames {
    package enum Problem: Error, Equatable {
        /// More bytes than any datagram of a viewer's client has.
        case tooLong(Int)
    }

    /// Longest datagram taken, in bytes.
    package static let longest = 2_048
    package static let headerBytes = 2

    /// The beginning of a frame that has not come whole: less than one frame.
    private var rest: [UInt8] = []

    package init() {}

    /// Whether a connection may begin with this byte: the first of a length that is taken.
    package static func mayBegin(with byte: UInt8) -> Bool { Int(byte) << 8 <= Self.longest }

    /// Takes in what was read, and calls `body` with each datagram that is whole; it is valid during the call. Frames without a byte are skipped.
    package mutating func read(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) throws(Problem) {
        guard !self.rest.isEmpty else {
            let used = try Self.split(bytes, body)
            self.rest = Array(bytes[used...])
            return
        }
        let joined = self.rest + bytes
        self.rest = []
        var used = 0
        var problem: Problem?
        joined.withUnsafeBytes { all in
            do throws(Problem) { used = try Self.split(all, body) } catch { problem = error }
        }
        if let problem { throw problem }
        self.rest = Array(joined[used...])
    }

    /// Returns how many bytes the whole frames have.
    private static func split(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) throws(Problem) -> Int {
        var start = 0
        while bytes.count - start >= Self.headerBytes {
            let length = Int(bytes[start]) << 8 | Int(bytes[start + 1])
            guard length <= Self.longest else { throw .tooLong(length) }
            let end = start + Self.headerBytes + length
            guard end <= bytes.count else { break }
            if length > 0 { body(UnsafeRawBufferPointer(rebasing: bytes[(start + Self.headerBytes)..<end])) }
            start = end
        }
        return start
    }
}
