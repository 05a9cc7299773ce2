import Media
import NIOCore

/// Puts the first frames after a publisher's return into the order that players can follow: the first of each kind one after the other.
///
/// VLC takes the oldest of its tracks' newest times as the stream's clock (its `avformat` reader). The first frame after a return therefore
/// brings the other track's time from before, which is late by the whole time away: VLC empties its buffers and starts its clock anew with
/// the frame after that one. When that is of the other kind, the clock starts with the return. When it is of the same kind, VLC starts with
/// the old time and plays the time away once more: it stays that much further behind.
///
/// What of one kind comes before the first of the other is held, so nothing is lost. That first one gets the time of the frame that it now
/// follows, since times never go back; a device begins with both at once, so that is a picture's time earlier. A pure value.
struct ReturnOrder: Sendable {
    /// A device begins with both at once; for one that now has a single kind nobody is to wait for long. Milliseconds.
    static let longestMs: Int64 = 500
    static let mostFrames = 64
    static let mostBytes = 4 << 20

    private var held: [Frame] = []
    private var heldBytes = 0
    private var sinceMs: Int64 = 0

    init() {}

    enum Outcome {
        /// Wait for more.
        case held
        /// These, in this order; the matter is settled.
        case released([Frame])
    }

    /// Takes the next coded frame of the publisher that has returned.
    mutating func take(_ frame: Frame, nowMs: Int64) -> Outcome {
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

    /// Whether what is held has waited long enough.
    func isOverdue(nowMs: Int64) -> Bool { !self.held.isEmpty && self.isOver(nowMs: nowMs) }

    /// What is held, for when nothing more will come.
    var rest: [Frame] { self.held }

    private func isOver(nowMs: Int64) -> Bool { nowMs - self.sinceMs >= Self.longestMs }

    private mutating func hold(_ frame: Frame) -> Outcome {
        // A slice of the connection's read buffer would keep the whole of it.
        self.held.append(frame.copied)
        self.heldBytes += frame.payload.readableBytes
        return .held
    }
}
