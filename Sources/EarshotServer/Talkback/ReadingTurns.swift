import Dispatch
import NIOCore

/// Waits until event loops have read what lay in their sockets: after a stall, what has come meanwhile is for the ticks that are made up for.
///
/// For threads that may block.
enum ReadingTurns {
    /// Turns of the loops at most: each reads a few buffers of each socket.
    private static let mostTurns = 8
    /// For all of it: a loop that is busy is not waited for any longer.
    private static let limit = DispatchTimeInterval.milliseconds(200)

    static func wait(for rooms: [TalkChannel]) {
        let deadline = DispatchTime.now() + self.limit
        var before = -1
        for _ in 0..<self.mostTurns {
            var loops: [ObjectIdentifier: (any EventLoop, LoopTurns)] = [:]
            var waiting = 0
            for room in rooms {
                let reading = room.reading
                waiting += reading.waiting
                for loop in reading.loops {
                    guard let context = room.core.context(of: loop) else { continue }
                    loops[ObjectIdentifier(loop)] = (loop, context.turns)
                }
            }
            // Nothing more came with the last turn.
            guard waiting != before, !loops.isEmpty else { return }
            before = waiting
            let read = DispatchGroup()
            for (loop, turns) in loops.values {
                read.enter()
                loop.execute { turns.next { read.leave() } }
            }
            guard read.wait(timeout: deadline) == .success else { return }
            // What one loop has read may be at home on another one.
            let home = DispatchGroup()
            for (loop, _) in loops.values {
                home.enter()
                loop.execute { home.leave() }
            }
            guard home.wait(timeout: deadline) == .success else { return }
        }
    }
}
