package import Media
import NIOCore

/// The headers and metadata for a late joiner: the newest of each slot, metadata first. Owned by the stream's state; a value.
package struct HeaderTable: Sendable {
    private struct Row: Sendable {
        let slot: HeaderSlot
        let frame: Frame
    }

    /// Byte limit for one stream's headers together. A header beyond it is relayed but not kept.
    private static let byteLimit = 1 << 20
    /// Row limit. Any set of tracks is a slot of its own, and each header is compared with all rows.
    private static let rowLimit = 256

    private var rows: [Row] = []

    /// The frames in the order for joiners: metadata, then the rest, oldest first.
    package var frames: [Frame] {
        self.rows.filter { $0.slot.kind == .data }.map(\.frame) + self.rows.filter { $0.slot.kind != .data }.map(\.frame)
    }

    /// The same, with the single form of each Multitrack header that has the default track before it.
    func frames(_ tracks: DefaultTracks) -> [Frame] {
        guard self.rows.contains(where: { $0.frame.tag.flags.contains(.multitrack) }) else { return self.frames }
        let frames = self.frames
        let tracks = tracks.completed(by: frames)
        var all: [Frame] = []
        all.reserveCapacity(frames.count + 2)
        for row in self.rows where row.slot.kind == .data { all.append(row.frame) }
        for row in self.rows where row.slot.kind != .data {
            if let single = tracks.single(of: row.frame, with: row.slot.tracks) { all.append(single) }
            all.append(row.frame)
        }
        return all
    }

    package var isEmpty: Bool { self.rows.isEmpty }

    func contains(_ kind: Frame.Kind) -> Bool { self.rows.contains { $0.slot.kind == kind } }

    /// Keeps the frame if it is a header. Returns whether anything changed.
    package mutating func keep(_ frame: Frame) -> Bool {
        // Most frames are none.
        guard !frame.tag.flags.isDisjoint(with: .header), let slot = Self.slot(of: frame) else { return false }
        if self.isNewest(slot, frame.payload) { return false }
        let before = self.rows.count
        self.rows.removeAll { slot.supersedes($0.slot) }
        let bytes = self.rows.reduce(0) { $0 + $1.frame.payload.readableBytes }
        guard bytes + frame.payload.readableBytes <= Self.byteLimit, self.rows.count < Self.rowLimit else {
            // The headers that it would have replaced are outdated all the same.
            return self.rows.count != before
        }
        // Appended last. Of headers that share only some of their tracks, joiners must receive the newest after the others.
        self.rows.append(Row(slot: slot, frame: frame.copied))
        return true
    }

    /// Whether this same header is kept.
    func has(_ header: Frame) -> Bool {
        guard let slot = Self.slot(of: header) else { return false }
        return self.rows.contains { $0.slot == slot && $0.frame.payload == header.payload }
    }

    /// Whether this same header is already kept and is the newest of its purpose.
    private func isNewest(_ slot: HeaderSlot, _ payload: ByteBuffer) -> Bool {
        guard let last = self.rows.last(where: { $0.slot.kind == slot.kind && $0.slot.purpose == slot.purpose }) else { return false }
        return last.slot == slot && last.frame.payload == payload
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
            // A header with unreadable tracks is relayed as it came, but not kept for joiners.
            return nil
        }
    }
}

extension Frame {
    /// The frame without the memory of others that were read with it, if that is most of it. For queues, whose bounds count payloads.
    var compacted: Frame { self.payload.storageCapacity > 4 * max(self.payload.readableBytes, 256) ? self.copied : self }

    /// A copy for keeping. A slice would keep the whole read buffer alive for as long as the frame is kept.
    var copied: Frame {
        var copy = self
        copy.payload = ByteBuffer()
        copy.payload.writeImmutableBuffer(self.payload)
        return copy
    }
}
