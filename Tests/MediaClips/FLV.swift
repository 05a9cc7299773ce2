import Foundation
package import Media
import NIOCore

/// The messages of an FLV file (FLV 10.1 §E.2 to §E.4), as a publisher would send them.
package enum FLV {
    package static func frames(_ path: String) throws -> [Frame] {
        var bytes = ByteBuffer(bytes: try Data(contentsOf: URL(fileURLWithPath: path)))
        bytes.moveReaderIndex(forwardBy: 13)
        var frames: [Frame] = []
        var unwrapper = TimestampUnwrapper()
        while let type = bytes.readInteger(as: UInt8.self), let size = Self.uint24(&bytes), let low = Self.uint24(&bytes),
            let high = bytes.readInteger(as: UInt8.self), Self.uint24(&bytes) != nil, let payload = bytes.readSlice(length: Int(size)),
            bytes.readInteger(as: UInt32.self) != nil
        {
            guard let kind = Frame.Kind(rawValue: type) else { continue }
            frames.append(try Frame(kind: kind, timestamp: unwrapper.unwrap(UInt32(high) << 24 | low), payload: payload))
        }
        return frames
    }

    private static func uint24(_ bytes: inout ByteBuffer) -> UInt32? {
        guard let high = bytes.readInteger(as: UInt8.self), let low = bytes.readInteger(as: UInt16.self) else { return nil }
        return UInt32(high) << 16 | UInt32(low)
    }
}
