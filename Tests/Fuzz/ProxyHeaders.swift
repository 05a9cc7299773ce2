@testable import Listening
import NIOCore

extension FuzzTarget {
    /// The first bytes of a proxy's connection. A header is found once it is whole, wherever it was cut, and what follows it is left.
    static let proxyHeader = FuzzTarget("proxy-header", maxLength: 700) { input in
        let bytes = input.rest
        var whole = ByteBuffer(bytes: bytes)
        let found = parse(&whole)
        expect(found == .incomplete ? bytes.count <= ProxyHeader.longestV2 + 16 : true, "no end after \(bytes.count) bytes")
        // Byte by byte the answer is the same, and comes as soon as it can.
        var pieces = ByteBuffer()
        for (count, byte) in bytes.enumerated() {
            pieces.writeInteger(byte)
            switch parse(&pieces) {
            case .incomplete: expect(pieces.readableBytes == count + 1, "bytes were taken of half a header")
            case let end:
                expect(end == found, "cuts show: \(end) after \(count + 1) bytes, \(found) at once")
                if case .header = end { expect(bytes.count - whole.readableBytes == count + 1, "a header of another length") }
                return
            }
        }
        expect(found == .incomplete, "\(found) at once, nothing byte by byte")
    }
}

private enum Parsed: Equatable {
    case header(ProxyHeader)
    case error(String)
    case incomplete
}

private func parse(_ bytes: inout ByteBuffer) -> Parsed {
    do throws(ProxyHeaderError) {
        return try ProxyHeader(&bytes).map { .header($0) } ?? .incomplete
    } catch {
        return .error(error.description)
    }
}
