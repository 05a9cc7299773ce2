import Rooms
import Support

/// Devices, the display and the whiteboards.
extension ClassroomStep {
    /// Switches a device and notifies all members, even if nothing changed: the client's own state may have been wrong.
    mutating func setDevice(_ member: Gathering.Member, _ device: ClassroomDevice, _ isOn: Bool, by: String) {
        self.setDevice(member.id, device, isOn)
        self.send(
            .device,
            [
                "type": .integer(device.number), "enable": .bool(isOn), "userId": .string(member.id), "userName": .string(member.name),
            ], from: by, to: self.all)
    }

    /// Switches a device without a message.
    mutating func setDevice(_ id: String, _ device: ClassroomDevice, _ isOn: Bool) {
        var devices = self.room.devices(of: id)
        guard devices[device] != isOn else { return }
        devices[device] = isOn
        self.room.devices[id] = devices
        self.event(.deviceChanged, ["userId": .string(id), "track": .string(device.rawValue), "isOn": .bool(isOn)])
        if device == .microphone { self.add(.mute(id, !isOn)) }
    }

    // MARK: - Display

    func shows(_ id: String) -> Bool { self.room.display?.shows(id) == true }

    mutating func show(_ display: ClassroomDisplay?, from id: String, to receivers: [ConnectionID]) {
        let text = JSONValue.string(display?.text ?? "")
        if self.room.display != display {
            self.room.display = display
            self.event(.displayChanged, ["display": text])
        }
        self.send(.display, ["display": text], from: id, to: receivers)
    }

    mutating func display(_ by: String, _ kind: ClassroomDisplay.Kind?, _ id: String?, _ uri: String?) throws(GatheringRefusal) {
        try self.doer(by, .teacher, .assistant)
        let display: ClassroomDisplay?
        switch kind {
        case nil: display = nil
        case .assistant:
            guard let member = self.room.member(as: .assistant) else { throw ClassroomCode.noAssistant.refusal() }
            display = ClassroomDisplay(kind: .assistant, userID: member.id, uri: "")
        case .teacher:
            guard let member = self.room.member(as: .teacher) else { throw ClassroomCode.noTeacher.refusal() }
            display = ClassroomDisplay(kind: .teacher, userID: member.id, uri: "")
        case .board:
            guard let uri else { throw ClassroomCode.parameter.refusal("uri: is required") }
            guard self.room.board(uri) != nil else { throw ClassroomCode.noSuchBoard.refusal() }
            display = ClassroomDisplay(kind: .board, userID: "", uri: uri)
        case .screen: display = ClassroomDisplay(kind: .screen, userID: try self.member(id ?? by).id, uri: "")
        }
        self.show(display, from: by, to: self.others(than: by))
    }

    // MARK: - Whiteboards

    private mutating func event(_ kind: RoomEvent.Kind, of board: Classroom.Board) {
        // Back ends count pages from 1.
        self.event(kind, ["boardId": .string(board.id), "name": .string(board.name), "page": .integer(board.page + 1)])
    }

    /// A new whiteboard is shown at once.
    mutating func boardCreate(_ by: String, _ id: String, _ service: String?) throws(GatheringRefusal) {
        try self.doer(by, .teacher, .assistant)
        guard self.room.boards.count < self.room.limits.boards else {
            throw ClassroomCode.createBoard.refusal("There are \(self.room.limits.boards) whiteboards already, the limit.")
        }
        guard (1...ClassroomLimits.boardIDBytes).contains(id.utf8.count), self.room.board(id) == nil else {
            throw ClassroomCode.createBoard.refusal()
        }
        self.room.boardsMade += 1
        let board = Classroom.Board(id: id, name: "白板\(self.room.boardsMade)", page: 0, creator: by, service: service)
        self.room.boards.append(board)
        self.event(.boardCreated, of: board)
        self.sendBoard(board, action: 1, from: by, to: self.others(than: by))
        self.show(ClassroomDisplay(kind: .board, userID: by, uri: id), from: by, to: self.all)
    }

    mutating func boardDelete(_ by: String, _ id: String) throws(GatheringRefusal) {
        try self.doer(by, .teacher, .assistant)
        guard let board = self.room.board(id) else { throw ClassroomCode.noSuchBoard.refusal() }
        self.room.boards.removeAll { $0.id == id }
        self.event(.boardDeleted, of: board)
        if let display = self.room.display, display.kind == .board, display.uri == id { self.show(nil, from: by, to: self.all) }
        self.sendBoard(board, action: 2, from: by, to: self.all)
    }

    /// SC:WBMsg; `action`: 1 create, 2 delete.
    private mutating func sendBoard(_ board: Classroom.Board, action: Int64, from by: String, to receivers: [ConnectionID]) {
        self.send(
            .board, ["action": .integer(action), "whiteboardId": .string(board.id), "whiteboardName": .string(board.name)],
            from: by, to: receivers)
    }

    mutating func boardTurn(_ by: String, _ id: String, _ page: Int64) throws(GatheringRefusal) {
        try self.doer(by, .teacher, .assistant)
        guard ClassroomLimits.pages.contains(Int(clamping: page)) else {
            throw ClassroomCode.parameter.refusal(
                "page: expected \(ClassroomLimits.pages.lowerBound) to \(ClassroomLimits.pages.upperBound)")
        }
        guard let index = self.room.boards.firstIndex(where: { $0.id == id }) else { throw ClassroomCode.noSuchBoard.refusal() }
        if self.room.boards[index].page != page {
            self.room.boards[index].page = page
            self.event(.boardTurned, of: self.room.boards[index])
        }
        self.send(
            .boardTurn, ["whiteboardId": .string(id), "userId": .string(by), "curPg": .integer(page)],
            from: by, to: self.others(than: by))
    }
}
