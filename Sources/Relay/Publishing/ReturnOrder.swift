import Media
import NIOCore

/// Reorders the first frames after a publisher's return so that players can follow. The first frame of each kind is sent back to back.
///
/// VLC's stream clock is the oldest of its tracks' newest times (its `avformat` reader). At the first frame after a return that is the other track's
/// time from before, late by the whole absence: VLC empties its buffers and restarts its clock with the frame after that one. If that frame is of the
/// other kind, the clock starts with the return. If it is of the same kind, VLC starts with the old time and plays the absence once more: it stays
/// that much further behind.
///
/// Frames of one kind are held until the first of the other kind, so nothing is lost. That frame then gets the time of the frame before it, since
/// times never go back. A device starts both kinds at once, so this makes it about one picture's duration earlier. A pure value.
struct ReturnOrder: Sendable {
    /// Longest hold, in milliseconds. A device starts both kinds at once, and a device that now sends a single kind must not be delayed for long.
    static let longestMs: Int64 = 500
    static let mostFrames = 64
    static let mostBytes = 4 << 20

    private var held: [Frame] = []
    private var heldBytes = 0
    private var sinceMs: Int64 = 0

    enum Outcome {
        /// The frame is held; wait for more.
        case held
        /// These frames go out in this order; reordering is over.
        case released([Frame])
    }

    /// Handles the next coded frame of the publisher that has returned.
    mutating func receive(_ frame: Frame, nowMs: Int64) -> Outcome {
        guard let first = self.held.first else {
            self.sinceMs = nowMs
            return self.hold(frame)
        }
        if frame.kind == first.kind {
            let isFull = self.held.count >= Self.mostFrames || self.heldBytes + frame.payload.readableBytes > Self.mostBytes
            guard isFull || self.isOver(nowMs: nowMs) else { return self.hold(frame) }
            return .released(self.held + [frame])
        }
        var second = frame
        second.timestamp = first.timestamp
        return .released([first, second] + self.held.dropFirst())
    }

    /// Whether the held frames have waited long enough.
    func isOverdue(nowMs: Int64) -> Bool { !self.held.isEmpty && self.isOver(nowMs: nowMs) }

    /// The held frames, for the case that nothing more will come.
    var rest: [Frame] { self.held }

    private func isOver(nowMs: Int64) -> Bool { nowMs - self.sinceMs >= Self.longestMs }

    private mutating func hold(_ frame: Frame) -> Outcome {
        // A slice would keep the connection's whole read buffer alive.
        self.held.append(frame.copied)
        self.heldBytes += frame.payload.readableBytes
        return .held
    }
}
