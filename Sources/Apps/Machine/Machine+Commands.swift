import Rooms
import Support

/// The rules of commands. A player's forbidden command is answered with code 0; the device's is refused.
extension Machine {
    mutating func command(
        _ from: String, _ to: String?, _ content: JSONValue, _ nowMs: Int64
    ) throws(GatheringRefusal) -> [Gathering.Effect] {
        guard let sender = self.gathering.member(from) else { throw .notMember }
        try self.count(from, nowMs)
        let object: JSONValue
        let command: MachineCommand
        do throws(FieldError) {
            object = try MachineCommand.object(content, longest: self.limits.commandBytes)
            command = try MachineCommand.read(object, longest: self.limits.commandBytes)
        } catch {
            throw .invalid(error)
        }
        if from == self.info.device { return try self.deviceCommand(command, object, to, nowMs) }
        if let effects = self.playerCommand(command, object, sender, to, nowMs) { return effects }
        let denial = MachineCommand.denial(of: object, serial: command.serial)
        return [
            .send(.commanded(from: self.info.device, content: denial.content), to: self.gathering.connections(of: from))
        ]
    }

    private mutating func count(_ id: String, _ nowMs: Int64) throws(GatheringRefusal) {
        var rate = self.rates[id] ?? CommandRate()
        // The device acknowledges each of the player's commands and sends its own besides, so its limit is twice as high.
        let most = id == self.info.device ? 2 * self.limits.commandRate : self.limits.commandRate
        guard rate.acquire(perSecond: most, nowMs: nowMs) else {
            throw .dialect(code: "407", message: "There are more than \(most) commands a second.")
        }
        self.rates[id] = rate
    }

    /// Nil when the command is not allowed. Clients of NIM address the machine by its account.
    private mutating func playerCommand(
        _ command: MachineCommand, _ object: JSONValue, _ sender: Gathering.Member, _ to: String?, _ nowMs: Int64
    ) -> [Gathering.Effect]? {
        guard let turn = self.turn, turn.player == sender.id, to == nil || to == self.info.device || to == self.info.accid
        else { return nil }
        let signal = Gathering.Signal.commanded(from: sender.id, content: object)
        switch (command.body, turn.phase) {
        case (.move, .playing), (.camera, .playing):
            guard let device = self.device?.connection else { return nil }
            return [.send(signal, to: [device])]
        case (.drop, .playing):
            guard self.device?.connection != nil else { return nil }
            return self.drop(byClock: false, content: object, nowMs)
        case (.accept(turn.uuid), .offered):
            guard turn.deadlineMs > nowMs else { return nil }
            return self.accept(nowMs) + self.answer(signal)
        case (.reject(turn.uuid), .offered): return self.decline(.turnDeclined) + self.answer(signal)
        default: return nil
        }
    }

    /// In ``Mode/device``, the device gets the player's answers too.
    private func answer(_ signal: Gathering.Signal) -> [Gathering.Effect] {
        guard self.info.mode == .device, let device = self.device?.connection else { return [] }
        return [.send(signal, to: [device])]
    }

    private mutating func deviceCommand(
        _ command: MachineCommand, _ object: JSONValue, _ to: String?, _ nowMs: Int64
    ) throws(GatheringRefusal) -> [Gathering.Effect] {
        let notNow = GatheringRefusal.dialect(code: "not_now", message: "There is no game for which this could be.")
        switch command.body {
        case .result(let won):
            guard let turn = self.turn, turn.phase == .settling || (turn.phase == .playing && self.info.mode == .device) else {
                throw notNow
            }
            guard to == nil || to == turn.player else { throw .notYours }
            return self.result(won: won, content: object)
        case .ack:
            // Late acknowledgements may arrive after the game. They are dropped.
            guard let turn = self.turn, to == nil || to == turn.player else { return [] }
            return [
                .send(.commanded(from: self.info.device, content: object), to: self.gathering.connections(of: turn.player))
            ]
        case .invite(let uuid):
            guard self.info.mode == .device else { throw .notYours }
            guard self.turn == nil, self.mayInvite, let head = self.gathering.queue.first else { throw notNow }
            guard to == nil || to == head.key else { throw .notYours }
            return self.offer(to: head.key, uuid: uuid, content: object, nowMs)
        case .move, .drop, .camera, .accept, .reject: throw .notYours
        }
    }
}
