import Apps
import HTTPServer
import RoomRegistry
import Rooms
import Support
import Synchronization

/// Drawing: commands run one after another; each is stored before viewers get it.
extension BoardRunner {
    /// Queues a command. False when the runner is over.
    @discardableResult
    func submit(_ command: Command) -> Bool {
        let isOver = self.state.withLock { state in
            if !state.isOver { state.pending += 1 }
            return state.isOver
        }
        guard !isOver else { return false }
        if case .dropped = self.commands.yield(command) {
            self.state.withLock { $0.pending -= 1 }
            Self.answer(command, .unavailable)
        }
        return true
    }

    func run(_ command: Command) async {
        do {
            switch command.action {
            case .draw(let page, let stroke): try await self.draw(page, stroke, command)
            case .clear(let page): try await self.clear(page, command)
            case .forget: try await self.rooms.deleteBoard(self.board, in: self.gathering.room)
            }
            Self.answer(command, nil)
        } catch let refusal as GatheringRefusal {
            Self.answer(command, .refused(refusal))
        } catch let error as RegistryError {
            Self.answer(command, .notStored(error))
        } catch {
            Self.answer(command, .unavailable)
        }
    }

    private static func answer(_ command: Command, _ failure: GatheringFailure?) {
        let value =
            failure.map { ChannelWriter.error(command.ref, code: $0.code, $0.message) } ?? ChannelWriter.ack(command.ref)
        command.peer?.send(value)
    }

    /// Checked at each stroke, because roles change.
    private func checkRole(_ user: String) throws(GatheringRefusal) {
        guard let (room, _) = self.here else { throw .dialect(code: "no_such_board", message: "The class has no such board any more.") }
        guard let role = room.role(of: user) else { throw .notMember }
        guard role.mayDraw else {
            throw .dialect(code: "not_allowed", message: "The assistant and the teacher draw here; the role \(role.rawValue) looks on.")
        }
    }

    private func sheet() async throws(RegistryError) -> BoardSheet {
        if let sheet = self.state.withLock({ $0.sheet }) { return sheet }
        let (bytes, last) = try await self.rooms.pages(ofBoard: self.board, in: self.gathering.room)
        return BoardSheet(limits: self.limits, pages: bytes, last: last)
    }

    private func draw(_ page: Int64, _ stroke: BoardStroke, _ command: Command) async throws {
        var sheet = try await self.sheet()
        try self.checkRole(command.user)
        let text = stroke.value.text
        let number = try sheet.draw(page, bytes: text.utf8.count)
        try await self.rooms.add(StoredStroke(number: number, page: page, text: text), toBoard: self.board, in: self.gathering.room)
        let drawn = sheet
        let frame = WebSocketWriter.text(BoardWriter.draw(from: command.user, page: page, stroke: text))
        self.state.withLock { state in
            state.sheet = drawn
            state.told = number
            for (connection, viewer) in state.viewers where viewer.isLive && viewer.last < number {
                state.viewers[connection]?.last = number
                // The stroke's author gets the answer instead.
                if connection != command.peer?.id { viewer.peer.send(frame) }
            }
        }
    }

    private func clear(_ page: Int64, _ command: Command) async throws {
        var sheet = try await self.sheet()
        try self.checkRole(command.user)
        try await self.rooms.clear(page, ofBoard: self.board, in: self.gathering.room)
        sheet.clear(page)
        let cleared = sheet
        self.state.withLock { state in
            state.sheet = cleared
            state.clears += 1
            Self.send(BoardWriter.clear(from: command.user, page: page), state)
        }
    }
}
