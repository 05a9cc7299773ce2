import Crypto
import Rooms
import Support

/// The steps of a game. Each has an event, so that it is stored before anybody is notified.
extension Machine {
    /// 32 hex digits that cannot be guessed from those of former turns.
    func uuid(of turn: Int64) -> String {
        String(SecretText.hex(SHA256.hash(data: Array("\(self.salt):\(turn)".utf8))).prefix(32))
    }

    /// `content`: the device's own invitation; nil for the server's.
    mutating func offer(to player: String, uuid: String, content: JSONValue? = nil, _ nowMs: Int64) -> [Gathering.Effect] {
        let promisedMs = nowMs + self.limits.offeredMs
        let turn = Turn(
            phase: .offered, player: player, uuid: uuid, promisedMs: promisedMs, deadlineMs: promisedMs + self.limits.slackMs)
        self.turn = turn
        self.readySinceMs = nil
        let content = content ?? MachineCommand(.invite(uuid: uuid)).content
        return [
            self.event(.turnOffered, turn),
            .send(.commanded(from: self.info.device, content: content), to: self.gathering.connections(of: player)),
        ] + self.phaseMessages()
    }

    mutating func accept(_ nowMs: Int64) -> [Gathering.Effect] {
        guard var turn = self.turn else { return [] }
        turn.phase = .playing
        turn.promisedMs = nowMs + self.limits.playingMs
        turn.deadlineMs = turn.promisedMs + self.limits.slackMs
        self.turn = turn
        return [self.event(.turnAccepted, turn), self.event(.gameStarted, turn)] + self.phaseMessages()
    }

    /// Withdraws the invitation and removes its player from the queue.
    mutating func decline(_ kind: RoomEvent.Kind) -> [Gathering.Effect] {
        guard let turn = self.turn else { return [] }
        let polled = self.poll(turn)
        self.turn = nil
        return polled + [self.event(kind, turn)] + self.phaseMessages()
    }

    /// Drops the claw. `content`: the player's command; nil for the server's.
    mutating func drop(byClock: Bool, content: JSONValue? = nil, _ nowMs: Int64) -> [Gathering.Effect] {
        guard var turn = self.turn else { return [] }
        turn.phase = .settling
        turn.promisedMs = nowMs + self.limits.settlingMs
        turn.deadlineMs = turn.promisedMs + (self.info.mode == .device ? self.limits.slackMs : 0)
        self.turn = turn
        let command = Gathering.Signal.commanded(from: turn.player, content: content ?? MachineCommand(.drop).content)
        return [
            self.event(.gameDropped, turn, .init(name: "byClock", value: .bool(byClock))),
            .send(command, to: self.gathering.connections(of: self.info.device)),
        ] + self.phaseMessages()
    }

    /// The player leaves the game, which still ends regularly: the claw drops, and the device reports the result.
    mutating func abandon(_ nowMs: Int64) -> [Gathering.Effect] {
        self.turn?.isLeft = true
        guard let turn = self.turn, turn.phase == .playing else { return [] }
        // Without the device, nobody can drop the claw or report the result.
        guard self.device?.connection != nil else { return self.conclude(.playerLeft) }
        return self.drop(byClock: false, nowMs)
    }

    /// `content`: the device's command.
    mutating func result(won: Bool, content: JSONValue) -> [Gathering.Effect] {
        guard let turn = self.turn else { return [] }
        return [
            .send(.commanded(from: self.info.device, content: content), to: self.gathering.connections(of: turn.player)),
            self.event(.gameResult, turn, .init(name: "won", value: .bool(won))),
        ] + self.conclude(.result)
    }

    /// Ends the game and polls its player, with two exceptions. A pending invitation stays unpolled, because the player is not to blame. After a
    /// result in ``Mode/device``, the machine polls by itself.
    mutating func conclude(_ ending: Ending) -> [Gathering.Effect] {
        guard let turn = self.turn else { return [] }
        var effects: [Gathering.Effect] = []
        if turn.phase != .offered {
            // Clients leave their game only after a result.
            if ending != .result, let player = self.gathering.member(turn.player)?.connection {
                effects.append(self.command(.result(won: false), to: [player]))
            }
            if ending != .result || self.info.mode == .server { effects += self.poll(turn) }
        }
        self.turn = nil
        effects.append(self.event(.gameEnded, turn, .init(name: "endReason", value: .string(ending.rawValue))))
        return effects + self.phaseMessages()
    }

    private mutating func poll(_ turn: Turn) -> [Gathering.Effect] {
        guard !turn.isLeft, let entry = self.gathering.queue.first(where: { $0.key == turn.player }) else { return [] }
        return self.gathering.dequeue(entry, .poll)
    }

    // MARK: - Messages

    /// A command that the server sends in the machine's name.
    func command(_ body: MachineCommand.Body, to connections: [ConnectionID]) -> Gathering.Effect {
        .send(.commanded(from: self.info.device, content: MachineCommand(body).content), to: connections)
    }

    private func event(_ kind: RoomEvent.Kind, _ turn: Turn, _ more: JSONValue.Member...) -> Gathering.Effect {
        .event(kind, [.init(name: "player", value: .string(turn.player)), .init(name: "uuid", value: .string(turn.uuid))] + more)
    }

    /// Sends the phase to all members. Only the player and the device get the turn's id, because it permits an answer.
    private func phaseMessages() -> [Gathering.Effect] {
        guard let turn = self.turn else {
            let everybody = self.gathering.all
            return everybody.isEmpty ? [] : [.send(.turn(phase: Self.idle, player: nil, uuid: nil, deadlineMs: nil), to: everybody)]
        }
        let inside = self.gathering.connections(of: turn.player, self.info.device)
        let outside = self.gathering.all.filter { !inside.contains($0) }
        return [(inside, turn.uuid), (outside, nil)].compactMap { receivers, uuid in
            receivers.isEmpty
                ? nil
                : .send(
                    .turn(phase: turn.phase.rawValue, player: turn.player, uuid: uuid, deadlineMs: turn.promisedMs), to: receivers)
        }
    }
}
