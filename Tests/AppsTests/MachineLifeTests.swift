@testable import Apps
@testable import Rooms
@testable import Support
import Testing

/// Random lives of machines. After any input, the first of the queue plays, and each game passes its phases once.
@Suite struct MachineLifeTests {
    private static let limits: MachineLimits = {
        var limits = MachineLimits(members: 6)
        limits.gathering.queue = 3
        limits.commandRate = 5
        return limits
    }()

    /// Where a game is, by its events.
    private enum Stage { case offered, accepted, started, dropped, result }

    private static let moves: [RoomEvent.Kind: (from: [Stage], to: Stage?)] = [
        .turnAccepted: ([.offered], .accepted), .gameStarted: ([.accepted], .started), .turnDeclined: ([.offered], nil),
        .turnExpired: ([.offered], nil), .gameDropped: ([.started], .dropped), .gameResult: ([.dropped, .started], .result),
        .gameEnded: ([.offered, .started, .dropped, .result], nil),
    ]

    @Test(arguments: 1...40 as ClosedRange<UInt64>) func randomLives(_ seed: UInt64) throws {
        var life = Life(seed)
        var games: [String: Stage] = [:]
        var finished: Set<String> = []
        for step in 0..<500 {
            try life.mayRestart()
            let before = life.machine
            let (input, effects) = life.step()
            let after = life.machine
            guard let effects else {
                #expect(after == before, "a refusal changes nothing: \(input)")
                continue
            }
            let note = Comment(rawValue: "seed \(seed), step \(step): \(input)")
            // Each game's events in their order, and at the end exactly one game where the machine says that there is one.
            for case .event(let kind, let data) in effects {
                let uuid = try #require(data.first { $0.name == "uuid" }).value.shown
                if kind == .turnOffered {
                    #expect(games.isEmpty && !finished.contains(uuid), note)
                    games[uuid] = .offered
                } else {
                    let move = try #require(Self.moves[kind], note)
                    let stage = try #require(games[uuid], note)
                    #expect(move.from.contains(stage), note)
                    games[uuid] = move.to
                    if move.to == nil { finished.insert(uuid) }
                }
            }
            let phases: [Stage: Machine.Turn.Phase] = [.offered: .offered, .started: .playing, .dropped: .settling]
            #expect(games.count == (after.turn == nil ? 0 : 1), note)
            if let turn = after.turn { #expect(games[turn.uuid].flatMap { phases[$0] } == turn.phase, note) }
            // A change of the turn is stored before members are notified.
            let isChanged = before.turn?.uuid != after.turn?.uuid || before.turn?.phase != after.turn?.phase
            if isChanged { #expect(Gathering.isKept(effects), note) }
            Self.checkState(after, note)
            try Self.checkWords(effects, before, after, input, note)
            if case .tick = input { #expect(after.nextDeadlineMs.map { $0 > life.nowMs } ?? true, note) }
            // The store has the whole state, but for connections.
            var away = after
            away.restart(nowMs: life.nowMs)
            guard !after.gathering.hasEnded else { return }
            #expect(try Machine(state: after.state.text, limits: Self.limits, nowMs: life.nowMs) == away, note)
        }
    }

    private static func checkState(_ machine: Machine, _ note: Comment) {
        let gathering = machine.gathering
        #expect(
            Set(gathering.queue.map(\.key)).count == gathering.queue.count && gathering.queue.count <= self.limits.gathering.queue, note)
        #expect(gathering.queue.allSatisfy { gathering.member($0.key)?.role == Machine.player }, note)
        #expect(gathering.members.allSatisfy { ($0.role == Gathering.host) == ($0.id == "host") }, note)
        #expect(machine.rates.keys.allSatisfy { gathering.member($0) != nil }, note)
        guard let turn = machine.turn else { return }
        #expect(turn.isLeft ? turn.phase == .settling : gathering.queue.first?.key == turn.player, note)
        #expect(machine.readySinceMs == nil && gathering.member("host") != nil, note)
        #expect(machine.nextDeadlineMs.map { $0 <= turn.deadlineMs } == true, note)
    }

    /// Each message goes to the right members only.
    private static func checkWords(
        _ effects: [Gathering.Effect], _ before: Machine, _ after: Machine, _ input: Gathering.Input, _ note: Comment
    ) throws {
        let there = Set(before.gathering.all + after.gathering.all)
        for case .send(let signal, let receivers) in effects {
            #expect(Set(receivers).isSubset(of: there), note)
            let ids = Set(receivers.compactMap { (after.gathering.member(at: $0) ?? before.gathering.member(at: $0))?.id })
            switch signal {
            case .turn(_, let player?, _?, _): #expect(ids.isSubset(of: [player, "host"]), note)
            case .turn(_, let player?, nil, _): #expect(ids.isDisjoint(with: [player, "host"]), note)
            case .commanded(let from, let content):
                let command = try MachineCommand.read(content, longest: 1_100)
                switch command.body {
                case .move, .camera, .drop:
                    #expect(ids == ["host"] && from == before.turn?.player && before.turn?.phase == .playing, note)
                case .accept, .reject: #expect(ids == ["host"] && after.info.mode == .device, note)
                case .invite: #expect(from == "host" && ids.isSubset(of: [after.turn?.player ?? ""]), note)
                case .result: #expect(from == "host" && ids.isSubset(of: [before.turn?.player ?? ""]), note)
                case .ack:
                    guard case .command(let sender, _, _) = input else {
                        Issue.record(note)
                        continue
                    }
                    #expect(from == "host" && ids.isSubset(of: [sender == "host" ? before.turn?.player ?? "" : sender]), note)
                }
            default: break
            }
        }
    }

    /// The lives above cover everything that can happen to a game.
    @Test func livesReachEverything() throws {
        var seen: Set<String> = []
        for seed in 1...40 as ClosedRange<UInt64> {
            var life = Life(seed)
            for _ in 0..<500 {
                try life.mayRestart()
                for case .event(let kind, let data) in life.step().1 ?? [] {
                    seen.insert(([kind.rawValue] + data.dropFirst(2).map(\.value.shown)).joined(separator: " "))
                }
            }
        }
        let endings = ["result", "noResult", "playerLeft", "deviceGone", "serverRestart", "ended"].map { "game.ended \($0)" }
        let wanted = Set(
            [
                "turn.offered", "turn.accepted", "turn.declined", "turn.expired", "game.started", "game.dropped true",
                "game.dropped false", "game.result true", "game.result false",
            ] + endings)
        #expect(seen == wanted)
    }

    /// With a device and players that stay, everybody's turn comes and goes by the clock alone.
    @Test func everybodysTurnComes() throws {
        var stage = MachineStage()
        stage.queue()
        var told: [String] = []
        while let deadline = stage.machine.nextDeadlineMs, told.count < 100 { told += stage.act(.tick, at: deadline) }
        #expect(
            told.filter { $0.hasPrefix("turn.") } == ["turn.offered a u1", "turn.expired a u1", "turn.offered b u2", "turn.expired b u2"])
        #expect(stage.queued == [] && stage.machine.nextDeadlineMs == nil)
    }
}

/// A machine, and what comes next.
private struct Life {
    private var dice: LifeDice
    private var connections: UInt64 = 0
    var machine: Machine
    var nowMs: Int64 = 1_000

    init(_ seed: UInt64) {
        self.dice = LifeDice(seed)
        var limits = MachineLimits(members: 6)
        limits.gathering.queue = 3
        limits.commandRate = 5
        self.machine = Machine(
            .init(name: "m", accid: "m@x", mode: seed.isMultiple(of: 3) ? .device : .server), limits: limits, salt: "\(seed)")
    }

    mutating func mayRestart() throws {
        guard Int.random(in: 0..<60, using: &self.dice) == 0 else { return }
        self.machine = try Machine(state: self.machine.state.text, limits: self.machine.limits, nowMs: self.nowMs)
    }

    /// Nil: refused.
    mutating func step() -> (Gathering.Input, [Gathering.Effect]?) {
        self.nowMs += [0, 1, 100, 1_500, 3_000, 12_000].randomElement(using: &self.dice) ?? 0
        let input = self.input()
        do throws(GatheringRefusal) {
            return (input, try self.machine.apply(input, nowMs: self.nowMs))
        } catch {
            return (input, nil)
        }
    }

    private mutating func input() -> Gathering.Input {
        let id = ["host", "host", "a", "b", "c", "w", "x"].randomElement(using: &self.dice) ?? "a"
        switch Int.random(in: 0..<40, using: &self.dice) {
        case 0..<7:
            self.connections += 1
            let role = Int.random(in: 0..<30, using: &self.dice) == 0 ? Gathering.host : MachineStage.role(id)
            return .connect(id: id, name: id, role: role, ConnectionID(self.connections))
        case 7:
            let connection = self.machine.gathering.members.randomElement(using: &self.dice)?.connection
            return .disconnect(connection ?? ConnectionID(0))
        case 8: return Bool.random(using: &self.dice) ? .leave(id: id) : .kick(id: id)
        case 9..<15: return .offer(from: id, value: "v")
        case 15:
            return Bool.random(using: &self.dice)
                ? .poll(from: id, key: Bool.random(using: &self.dice) ? nil : "a") : .remove(key: self.machine.turn?.player ?? id)
        case 16: return .pause(Int.random(in: 0..<4, using: &self.dice) == 0)
        case 17: return .say(from: id, to: nil, object: "chat", content: "hi")
        case 18:
            return Int.random(in: 0..<15, using: &self.dice) == 0
                ? .end(reason: "over") : .enter(id: id, name: id, role: MachineStage.role(id))
        case 19..<26: return .tick
        case 26..<30:
            // A command that fits the turn, from its player or from the device.
            switch self.machine.turn {
            case nil:
                return .command(from: "host", to: nil, content: MachineCommand(.invite(uuid: "d\(self.nowMs)-\(self.connections)")).content)
            case let turn? where turn.phase == .offered:
                return .command(from: turn.player, to: nil, content: MachineCommand(.accept(uuid: turn.uuid)).content)
            case let turn? where turn.phase == .playing: return .command(from: turn.player, to: nil, content: ["command": 2])
            default: return .command(from: "host", to: nil, content: ["command": 4, "data": "true"])
            }
        default:
            self.connections += 1
            let uuid = self.machine.turn?.uuid ?? "x\(self.connections)"
            let bodies: [MachineCommand.Body] = [
                .move(.up), .camera(2), .drop, .result(won: false), .ack("x", code: 200), .invite(uuid: uuid), .accept(uuid: uuid),
                .reject(uuid: uuid), .accept(uuid: "wrong"),
            ]
            return .command(from: id, to: nil, content: MachineCommand(bodies.randomElement(using: &self.dice) ?? .drop).content)
        }
    }
}

/// A generator with a seed (SplitMix64).
private struct LifeDice: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
