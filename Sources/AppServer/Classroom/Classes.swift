import Access
import Apps
import RoomRegistry
import Rooms
import ServerConfiguration
import Support

/// Classes and their rooms, `class-<id>`: three streams for teacher, assistant and screen, and the gathering of the members. Any thread.
struct Classes: Sendable {
    static let prefix = "class-"
    private static let slots = 3
    private static let tries = 5

    let services: AppServices

    /// 128 random bits in hex.
    static func newID() -> String { SecretText.hex((0..<16).map { _ in UInt8.random(in: 0...255) }) }

    /// Throws code 20 when there is no such class.
    func find(_ room: String) throws(GatheringRefusal) -> (runner: GatheringRunner, classroom: Classroom) {
        guard let runner = self.services.gatherings.find(room), let classroom = runner.dialect as? Classroom, !classroom.gathering.hasEnded
        else { throw ClassroomCode.noSuchClass.refusal() }
        return (runner, classroom)
    }

    /// A token that is valid for as long as the class may last.
    func token(_ user: String, _ name: String, _ room: String, _ classroom: Classroom) throws -> String {
        let left = classroom.createdAtMs + classroom.limits.lifetimeMs - self.services.rooms.now
        return try ChannelToken(
            user: user, name: name, room: room, kind: GatheringKinds.classroom, role: "",
            expires: WallClock.seconds + max(0, left) / 1_000 + 60
        ).signed(with: self.services.keys)
    }

    /// `connects`: a member that connects with this input through another server.
    func apply(
        _ input: Classroom.Input, _ runner: GatheringRunner, connects: (user: String, ConnectionID)? = nil,
        receipt: FollowUpReceipt? = nil
    ) async throws -> Classroom {
        var command = GatheringRunner.Command { (gathering, nowMs) throws(GatheringRefusal) in
            guard var room = gathering as? Classroom else { throw .ended }
            let effects = try room.apply(input, nowMs: nowMs)
            gathering = room
            guard let connects else { return effects }
            return effects + (try GatheringRunner.Command.connect(connects.user, connects.1, &gathering, nowMs))
        }
        command.receipt = receipt
        guard let room = try await runner.outcome(of: command).get() as? Classroom else { throw ClassroomCode.noSuchClass.refusal() }
        return room
    }

    /// Applies a member's input, and waits for RongCloud if that carries the class.
    func applyEverywhere(_ input: Classroom.Input, _ runner: GatheringRunner) async throws {
        guard let cloud = self.services.rongCloud else {
            _ = try await self.apply(input, runner)
            return
        }
        let receipt = FollowUpReceipt(isForAll: true)
        _ = try await self.apply(input, runner, receipt: receipt)
        try await cloud.followed(receipt)
    }

    /// Joins a class. The first member opens it.
    func join(_ id: String, name: String, isAudience: Bool, disableCamera: Bool, token: ChannelToken?) async throws -> JSONValue {
        let room = "\(Self.prefix)\(id)"
        let isSame = token?.room.exact == room.exact && token?.name.exact == name.exact
        let user = isSame ? token?.user ?? Self.newID() : Self.newID()
        let input = Classroom.Input.join(id: user, name: name, isAudience: isAudience, disableCamera: disableCamera)
        var imToken: String?
        if let cloud = self.services.rongCloud {
            // Checked first, so that a refused join costs no call.
            if var trial = try? self.find(room).classroom { _ = try trial.apply(input, nowMs: self.services.rooms.now) }
            imToken = try await cloud.token(user, name: name)
        }
        var over: GatheringRunner?
        // A gathering that is ending accepts nobody; the next one is new.
        for _ in 0..<Self.tries {
            let runner = try await self.runner(room, after: over)
            let classroom: Classroom
            do {
                classroom = try await self.enter(input, user, runner)
            } catch GatheringFailure.refused(let refusal) where ClassroomCode(refusal) == .noSuchClass {
                over = runner
                continue
            } catch GatheringFailure.notStored(.noSuchRoom), GatheringFailure.notStored(.wrongState) {
                over = runner
                continue
            }
            guard let member = classroom.gathering.member(user) else { throw ClassroomCode.joinRoom.refusal() }
            let text = try self.token(user, member.name, room, classroom)
            return ClassroomAnswer.join(classroom, roomID: id, member: member, imToken: imToken ?? text, authorization: text)
        }
        throw ClassroomCode.joinRoom.refusal("The class is just ending. Try again.")
    }

    /// Lets a member in, and into RongCloud's group if that carries the class. If the group cannot be joined, the member is removed again.
    private func enter(_ input: Classroom.Input, _ user: String, _ runner: GatheringRunner) async throws -> Classroom {
        guard let cloud = self.services.rongCloud else { return try await self.apply(input, runner) }
        let receipt = FollowUpReceipt()
        let classroom = try await self.apply(input, runner, connects: (user, cloud.connection()), receipt: receipt)
        let isNew = receipt.isExpected
        do throws(GatheringRefusal) {
            try await cloud.joined(user, runner.id, receipt)
        } catch {
            if isNew { _ = try? await self.apply(.leave(by: user), runner) }
            throw error
        }
        return classroom
    }

    private func runner(_ room: String, after over: GatheringRunner?) async throws -> GatheringRunner {
        if let known = self.services.gatherings.find(room), known !== over { return known }
        let tooMany = RegistryError.tooMany(what: "gatherings", limit: self.services.config.apps.gatherings)
        guard !self.services.gatherings.isFull() else { throw tooMany }
        await self.services.gatherings.roomHasEnded(RoomID(stored: room))
        let id = try await self.open(room)
        let limits = self.services.gatherings.classroomLimits
        let nowMs = self.services.rooms.now
        guard
            let runner = self.services.gatherings.open(
                GatheringKinds.classroom, id, after: over, { Classroom(limits: limits, createdAtMs: nowMs) })
        else {
            _ = try? await self.services.rooms.apply(.expire, to: room, action: "expire", by: Actor("classes"))
            throw tooMany
        }
        return runner
    }

    /// Opens the class's room. It lives as long as a class may, with or without media, and is deleted at its end.
    private func open(_ room: String) async throws(RegistryError) -> RoomID {
        var new = NewRoom(policy: self.services.config.rooms.policy)
        new.id = RoomID(stored: room)
        new.slots = Self.slots
        new.isPublic = false
        let lifetimeMs = self.services.config.apps.classroomLifetimeMs
        for (name, value) in [
            ("neverStarted", lifetimeMs), ("grace", lifetimeMs), ("cleanStop", lifetimeMs), ("idleGrace", lifetimeMs),
            ("pauseGrace", lifetimeMs), ("maxDuration", lifetimeMs), ("retention", 0),
        ] {
            guard let field = RoomPolicy.fields.first(where: { $0.name == name }) else { continue }
            field.set(&new.policy, max(field.range.lowerBound, min(value, field.range.upperBound)))
        }
        for _ in 0..<Self.tries {
            do throws(RegistryError) {
                return try await self.services.rooms.create(new, by: Actor("classes")).id
            } catch {
                guard case .idTaken(let id, let state, _) = error else { throw error }
                if !state.isTerminal {
                    let present = try await self.services.rooms.room(room)
                    if self.isClass(present) { return id }
                    // A push or a call made this room before the class did. Its streams and ends differ, so it cannot carry a class. The push will
                    // come again.
                    _ = try await self.services.rooms.apply(.close, to: room, action: "close", by: Actor("classes"))
                }
                // Otherwise it is the last class of this name, whose retention has just ended.
                try? await self.services.rooms.delete(room, by: Actor("classes"))
            }
        }
        throw .tooMany(what: "classes of this name", limit: 1)
    }

    /// Whether a room was made for a class.
    private func isClass(_ room: Room) -> Bool { !room.isAdHoc && !room.isPublic && room.slots.count == Self.slots }
}
