import NIOCore
import Testing

@testable import WebRTC

/// What is in a bundle of a picture.
struct Bundled {
    let isKeyframe: Bool
    let profile: VideoProfile
    let time: Int64
    let payloads: [[UInt8]]

    init(_ bundle: ByteBuffer) throws {
        (self.isKeyframe, self.profile, self.time, self.payloads) = try bundle.withUnsafeReadableBytes { bytes in
            let read = try #require(PacketBundle(bytes))
            #expect(read.kind == .video)
            var payloads: [[UInt8]] = []
            read.forEach { payload, isLast in
                payloads.append([UInt8](payload))
                #expect(isLast == (payloads.count == read.count))
            }
            return (read.isKeyframe, read.profile, read.time, payloads)
        }
    }

    /// The kernel cuts a run at one size; the last may be shorter.
    static func areEven(_ fragments: [[UInt8]]) -> Bool {
        Set(fragments.dropLast().map(\.count)).count <= 1 && fragments.last?.count ?? 0 <= fragments.first?.count ?? 0
    }

    /// Bytes that differ, behind these.
    static func filled(_ head: [UInt8], _ count: Int) -> ByteBuffer {
        ByteBuffer(bytes: head + (head.count..<max(head.count, count)).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    }
}
