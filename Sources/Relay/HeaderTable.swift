package import Media
import NIOCore

/// The headers and metadata that a late joiner needs: the newest of each slot, metadata first. Owned by the stream's state; a value.
package struct HeaderTable: Sendable {
    private struct Row: Sendable {
        let slot: HeaderSlot
        let frame: Frame
    }

    /// Bytes that one stream's headers may hold together; a header that would go over is relayed but not kept.
    private static let byteLimit = 1 << 20

    private var rows: [Row] = []

    package init() {}

    /// In the order in which a joiner is sent them.
    package var frames: [Frame] {
        self.rows.filter { $0.slot.kind == .data }.map(\.frame) + self.rows.filter { $0.slot.kind != .data }.map(\.frame)
    }

    package var isEmpty: Bool { self.rows.isEmpty }

    /// Keeps the frame if it is a header. Returns whether anything changed.
    package mutating func keep(_ frame: Frame) -> Bool {
        guard let slot = Self.slot(of: frame) else { return false }
        if let same = self.rows.first(where: { $0.slot == slot }), same.frame.payload == frame.payload { return false }
        let others = self.rows.filter { !slot.supersedes($0.slot) }
        let bytes = others.reduce(0) { $0 + $1.frame.payload.readableBytes }
        guard bytes + frame.payload.readableBytes <= Self.byteLimit else { return false }
        var kept = frame
        // Copied: a slice would keep the whole read buffer alive for as long as the stream lives.
        kept.payload = ByteBuffer()
        kept.payload.writeImmutableBuffer(frame.payload)
        let position = self.rows.firstIndex { slot.supersedes($0.slot) }
        self.rows = others
        self.rows.insert(Row(slot: slot, frame: kept), at: min(position ?? others.count, others.count))
        return true
    }

    /// Forgets script metadata. Returns whether there was any.
    package mutating func clearMetadata() -> Bool {
        let before = self.rows.count
        self.rows.removeAll { $0.slot.kind == .data }
        return self.rows.count != before
    }

    package mutating func removeAll() {
        self.rows = []
    }

    private static func slot(of frame: Frame) -> HeaderSlot? {
        do {
            return try frame.headerSlot()
        } catch {
            // A header whose tracks cannot be read is relayed as it came, but joiners are not given it.
            return nil
        }
    }
}
