import Apps
import RoomRegistry
import Rooms
import Synchronization

/// The whiteboards with viewers, by class and key. Any thread.
package final class Boards: Sendable {
    private let rooms: RoomRegistry
    private let open = Mutex<[RoomID: [String: BoardRunner]]>([:])

    /// A runner that is ending accepts nobody; the next one is new.
    private static let tries = 3

    init(_ rooms: RoomRegistry) { self.rooms = rooms }

    /// Boards with at least one viewer.
    package var count: Int { self.open.withLock { open in open.values.reduce(0) { $0 + $1.count } } }

    /// Adds a member's connection to a board's viewers. Nil when the class or the board has just ended.
    func join(_ peer: AppPeer, user: String, board: String, _ gathering: GatheringRunner) -> BoardRunner? {
        var over: BoardRunner?
        for _ in 0..<Self.tries {
            let runner = self.runner(board, gathering, after: over)
            if runner.add(peer, user: user) { return runner }
            over = runner
        }
        return nil
    }

    private func runner(_ board: String, _ gathering: GatheringRunner, after over: BoardRunner?) -> BoardRunner {
        self.open.withLock { open in
            if let known = open[gathering.room]?[board], known !== over, known.gathering === gathering { return known }
            let made = BoardRunner(board, gathering, self.rooms) { [weak self] in self?.forget($0) }
            open[gathering.room, default: [:]][board] = made
            return made
        }
    }

    private func forget(_ over: BoardRunner) {
        self.open.withLock { open in
            let room = over.gathering.room
            guard open[room]?[over.board] === over else { return }
            open[room]?[over.board] = nil
            if open[room]?.isEmpty == true { open[room] = nil }
        }
    }

    /// Passes a gathering's change on to its boards: their viewers get pages, roles and ends.
    func follow(_ gathering: GatheringRunner) {
        guard gathering.kind == GatheringKinds.classroom else { return }
        let runners = self.open.withLock { open in open[gathering.room].map { Array($0.values) } ?? [] }
        for runner in runners where runner.gathering === gathering { runner.follow() }
    }
}
