import Dispatch
import Sockets

/// Waits until event loops have read their sockets. After a stall, this data belongs to the missed ticks that are caught up.
///
/// Blocks its thread.
enum ReadingTurns {
    /// Most turns of the loops: each reads a few buffers of each socket.
    static let mostTurns = 8
    /// Limit for all turns, so as not to wait for a busy loop any longer.
    private static let limit = DispatchTimeInterval.milliseconds(200)

    /// Frames that were read and wait, and the loops that may read more.
    struct Waiting {
        var frames = 0
        var loops: [ObjectIdentifier: SocketLoop] = [:]
    }

    /// Waits until a turn of the loops brings nothing more; calls `waiting` before each.
    static func wait(limit: DispatchTimeInterval = Self.limit, _ waiting: () -> Waiting) {
        let deadline = DispatchTime.now() + limit
        var before = -1
        for _ in 0..<self.mostTurns {
            let found = waiting()
            guard found.frames != before, !found.loops.isEmpty else { return }
            before = found.frames
            let read = DispatchGroup()
            for loop in found.loops.values {
                read.enter()
                loop.execute { loop.next { read.leave() } }
            }
            guard read.wait(timeout: deadline) == .success else { return }
            // Frames read on one loop may have their home on another.
            let home = DispatchGroup()
            for loop in found.loops.values {
                home.enter()
                loop.execute { home.leave() }
            }
            guard home.wait(timeout: deadline) == .success else { return }
        }
    }
}
