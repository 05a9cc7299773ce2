import Media
import NIOCore

/// Frames that wait for permission to be published; a value of bounded size. Beyond its limits only the headers stay, which later frames
/// need.
struct EarlyFrames {
    private(set) var frames: [Frame] = []
    /// Bytes of all payloads.
    private(set) var bytes = 0

    static let mostFrames = 2_000
    static let mostBytes = 16 << 20
    private static let mostHeaders = 64
    /// Largest header that is kept.
    private static let headerBytes = 64 << 10

    mutating func append(_ frame: Frame) {
        self.frames.append(frame)
        self.bytes += frame.payload.readableBytes
        if self.frames.count > Self.mostFrames || self.bytes > Self.mostBytes { self.forget() }
    }

    /// Drops everything but the newest header of each kind.
    private mutating func forget() {
        var kept: [(slot: HeaderSlot, frame: Frame)] = []
        for frame in self.frames {
            guard let slot = Self.slot(frame), frame.payload.readableBytes <= Self.headerBytes else { continue }
            kept.removeAll { slot.supersedes($0.slot) }
            if kept.count < Self.mostHeaders { kept.append((slot, frame)) }
        }
        self.frames = kept.map(\.frame)
        self.bytes = self.frames.reduce(0) { $0 + $1.payload.readableBytes }
    }

    private static func slot(_ frame: Frame) -> HeaderSlot? {
        do throws(MediaError) {
            return try frame.headerSlot()
        } catch {
            // A broken header does not count.
            return nil
        }
    }
}
