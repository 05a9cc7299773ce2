import Apps
import HTTPServer
import RoomRegistry
import Rooms
import Support
import Synchronization

/// Runs one whiteboard: takes drawing commands one after another, stores each, then sends it to the viewers. Lives while there are viewers. Any
/// thread.
///
/// A newcomer reads the strokes from the store in pieces, each after the one before has been sent. However much is drawn and however slowly it reads,
/// only one piece waits in memory. Once it has all strokes, it gets new ones as they are drawn.
final class BoardRunner: Sendable {
    let board: String
    let gathering: GatheringRunner

    struct Command: Sendable {
        enum Action: Sendable {
            case draw(page: Int64, BoardStroke)
            case clear(page: Int64)
            /// Deletes strokes that were stored while the board was deleted.
            case forget
        }

        let action: Action
        let user: String
        /// Gets the answer.
        var peer: AppPeer?
        var ref: JSONValue?
    }

    struct Viewer {
        let peer: AppPeer
        let user: String
        var role: ClassroomRole
        var isGreeted = false
        /// Whether it has all strokes and gets new ones as they are drawn.
        var isLive = false
        /// The number of its newest stroke.
        var last: Int64 = 0
    }

    struct State {
        var viewers: [ConnectionID: Viewer] = [:]
        /// Nil until it has been read.
        var sheet: BoardSheet?
        /// The page that the class sees.
        var page: Int64 = 0
        /// The newest stroke sent to viewers since the runner began.
        var told: Int64 = 0
        /// Pages cleared since the runner began.
        var clears = 0
        /// Commands that are queued or under way.
        var pending = 0
        /// Accepts nobody any more.
        var isOver = false
    }

    let rooms: RoomRegistry
    let limits = BoardLimits()
    let state = Mutex(State())
    let commands: AsyncStream<Command>.Continuation
    private let whenOver: @Sendable (BoardRunner) -> Void

    /// Pending commands; reached only when the store hangs.
    private static let mostCommands = 500
    /// Connections of one member: frames and windows of its client, and lost connections that are not noticed yet.
    private static let connectionsPerMember = 4

    init(_ board: String, _ gathering: GatheringRunner, _ rooms: RoomRegistry, whenOver: @escaping @Sendable (BoardRunner) -> Void) {
        self.board = board
        self.gathering = gathering
        self.rooms = rooms
        self.whenOver = whenOver
        let (stream, continuation) = AsyncStream<Command>.makeStream(bufferingPolicy: .bufferingOldest(Self.mostCommands))
        self.commands = continuation
        Task { [weak self] in
            for await command in stream {
                guard let self else { return }
                await self.run(command)
                self.state.withLock { $0.pending -= 1 }
                self.rest()
            }
        }
    }

    // MARK: - Viewers

    /// False when the runner is over, or the member may not see the board.
    func add(_ peer: AppPeer, user: String) -> Bool {
        let (isAdded, former) = self.state.withLock { state in
            guard !state.isOver, let (room, _) = self.here, let role = room.role(of: user) else { return (false, AppPeer?.none) }
            let others = state.viewers.values.filter { $0.user.exact == user.exact }.map(\.peer).sorted { $0.id.rawValue < $1.id.rawValue }
            state.viewers[peer.id] = Viewer(peer: peer, user: user, role: role)
            guard others.count >= Self.connectionsPerMember, let oldest = others.first else { return (true, AppPeer?.none) }
            state.viewers[oldest.id] = nil
            return (true, oldest)
        }
        if let former { Self.close(former, 4001, "replaced") }
        guard isAdded else {
            self.rest()
            return false
        }
        // Catches up with changes made in the meantime.
        self.follow()
        self.catchUp(peer.id)
        return true
    }

    func remove(_ connection: ConnectionID) {
        self.state.withLock { $0.viewers[connection] = nil }
        self.rest()
    }

    /// The class and its board. Nil when one of them has ended.
    var here: (Classroom, Classroom.Board)? {
        guard let room = self.gathering.dialect as? Classroom, !room.gathering.hasEnded, let board = room.board(key: self.board) else {
            return Optional.none
        }
        return (room, board)
    }

    /// Sends the class's page and the members' roles, and closes viewers that may no longer see the board.
    func follow() {
        let isGone = self.state.withLock { state in
            // Read here, so that of two concurrent calls the later one sees the newer class.
            guard let (room, board) = self.here else {
                let reason = self.gathering.gathering.hasEnded ? "ended" : "deleted"
                for viewer in state.viewers.values { Self.close(viewer.peer, 4004, reason) }
                state.viewers = [:]
                return true
            }
            if state.page != board.page {
                state.page = board.page
                Self.send(BoardWriter.page(board.page), state)
            }
            var roles: [String: ClassroomRole] = [:]
            for member in room.gathering.members { roles[member.id] = ClassroomRole(rawValue: member.role) }
            for (connection, viewer) in state.viewers {
                guard let role = roles[viewer.user] else {
                    Self.close(viewer.peer, 4002, "left")
                    state.viewers[connection] = nil
                    continue
                }
                guard role != viewer.role else { continue }
                state.viewers[connection]?.role = role
                if viewer.isGreeted { viewer.peer.send(WebSocketWriter.text(BoardWriter.role(viewer.user, role))) }
            }
            return false
        }
        // A stroke on its way to the store may be stored after the board's deletion.
        if isGone { self.submit(Command(action: .forget, user: "")) }
        self.rest()
    }

    private static func close(_ peer: AppPeer, _ code: UInt16, _ reason: String) {
        peer.send(WebSocketWriter.text(BoardWriter.closed(reason)))
        peer.close(code, reason)
    }

    /// Sends to all viewers that have been greeted; the others find it in their greeting.
    static func send(_ text: String, _ state: State) {
        let frame = WebSocketWriter.text(text)
        for viewer in state.viewers.values where viewer.isGreeted { viewer.peer.send(frame) }
    }

    /// Ends the runner when it has no viewers and no pending commands.
    private func rest() {
        let isOver = self.state.withLock { state in
            guard !state.isOver, state.viewers.isEmpty, state.pending == 0 else { return false }
            state.isOver = true
            return true
        }
        guard isOver else { return }
        self.commands.finish()
        self.whenOver(self)
    }

    // MARK: - Earlier strokes

    /// Reads the next piece for a viewer and sends it; continues once it has been written.
    private func catchUp(_ connection: ConnectionID) {
        let now = self.state.withLock { state in state.viewers[connection].map { ($0, state.told, state.clears) } }
        guard let (viewer, told, clears) = now else { return }
        Task {
            do throws(RegistryError) {
                let (list, isAll) = try await self.rooms.strokes(
                    ofBoard: self.board, in: self.gathering.room, after: viewer.last, bytes: self.limits.pieceBytes)
                self.send(list, isAll: isAll, told, clears, to: connection)
            } catch {
                viewer.peer.close(1013, "the store cannot be read")
            }
        }
    }

    /// `told`, `clears`: their values before the strokes were read.
    private func send(_ list: [StoredStroke], isAll: Bool, _ told: Int64, _ clears: Int, to connection: ConnectionID) {
        let strokes = list.map { (page: $0.page, stroke: $0.text) }
        while true {
            guard let (viewer, page, isLive) = self.progress(list, isAll: isAll, told, clears, connection) else {
                // A page was cleared in the meantime, and its strokes may be among these.
                return self.catchUp(connection)
            }
            guard let viewer else { return }
            // Written without holding the lock: this may be much.
            let frame = WebSocketWriter.text(
                viewer.isGreeted
                    ? BoardWriter.strokes(strokes, more: !isLive)
                    : BoardWriter.hello(viewer.user, viewer.role, page: page, strokes, more: !isLive))
            let isSent = self.state.withLock { state in
                // What it says may be old by now.
                guard var now = state.viewers[connection], now.role == viewer.role, state.page == page, state.clears == clears,
                    isLive == (isAll && state.told <= viewer.last)
                else { return false }
                (now.last, now.isLive, now.isGreeted) = (viewer.last, isLive, true)
                state.viewers[connection] = now
                now.peer.send(frame) { [weak self] isWritten in
                    if isWritten, !isLive { self?.catchUp(connection) }
                }
                return true
            }
            if isSent { return }
        }
    }

    /// The viewer as it is once it has these strokes, the class's page, and whether it has all strokes then. The viewer is nil if it has gone; all is nil
    /// if the strokes are old.
    private func progress(
        _ list: [StoredStroke], isAll: Bool, _ told: Int64, _ clears: Int, _ connection: ConnectionID
    ) -> (viewer: Viewer?, page: Int64, isLive: Bool)? {
        self.state.withLock { state in
            guard var viewer = state.viewers[connection] else { return (nil, state.page, false) }
            guard clears == state.clears else { return nil }
            viewer.last = max(list.last?.number ?? viewer.last, isAll ? told : 0)
            return (viewer, state.page, isAll && state.told <= viewer.last)
        }
    }
}
