import Dispatch
import NIOCore

/// Waits until event loops have read what lay in their sockets: after a stall, what has come meanwhile is for the ticks that are made up for.
///
/// For threads that may block.
enum ReadingTurns {
    /// Turns of the loops at most: each reads a few buffers of each socket.
    static let mostTurns = 8
    /// For all of it: a loop that is busy is not waited for any longer.
    private static let limit = DispatchTimeInterval.milliseconds(200)

    static func wait(for rooms: [TalkChannel]) {
        self.wait(limit: self.limit) {
            var found = Waiting()
            for room in rooms {
                let reading = room.reading
                found.frames += reading.waiting
                for loop in reading.loops {
                    if let context = room.core.context(of: loop) { found.loops[ObjectIdentifier(loop)] = (loop, context.turns) }
                }
            }
            return found
        }
    }

    /// What has been read and waits, and the loops that read more.
    struct Waiting {
        var frames = 0
        var loops: [ObjectIdentifier: (any EventLoop, LoopTurns)] = [:]
    }

    /// Until a turn of the loops has brought nothing more; `look` is asked before each.
    static func wait(limit: DispatchTimeInterval, _ look: () -> Waiting) {
        let deadline = DispatchTime.now() + limit
        var before = -1
        for _ in 0..<self.mostTurns {
            let found = look()
            guard found.frames != before, !found.loops.isEmpty else { return }
            before = found.frames
            let read = DispatchGroup()
            for (loop, turns) in found.loops.values {
                read.enter()
                loop.execute { turns.next { read.leave() } }
            }
            guard read.wait(timeout: deadline) == .success else { return }
            // What one loop has read may be at home on another one.
            let home = DispatchGroup()
            for (loop, _) in found.loops.values {
                home.enter()
                loop.execute { home.leave() }
            }
            guard home.wait(timeout: deadline) == .success else { return }
        }
    }
}
