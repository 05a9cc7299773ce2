import Access
import Apps
import HTTPServer
import Listening
import RoomRegistry
import Rooms
import ServerConfiguration
import Support

/// Claw machines and their rooms, `m-<number>`: two streams, one for each camera, and the gathering of the players and the device.
actor MachineRooms {
    /// Numbers are random, so that one does not reveal another.
    private static let numbers: ClosedRange<Int64> = 10_000_000...99_999_999
    private static let tries = 10
    private static let slots = 2

    private let services: AppServices
    /// Hosts' accounts whose machines are being created.
    private var making: Set<String> = []

    init(_ services: AppServices) { self.services = services }

    /// A machine for lists. A value.
    struct Entry: Sendable {
        let number: Int64
        let runner: GatheringRunner
        let machine: Machine

        var room: DollsCatcherAnswer.Room {
            .init(id: self.number, name: self.machine.info.name, creator: self.machine.info.accid, isOpen: self.machine.info.isOpen)
        }
        /// Members except the device.
        var online: Int { self.machine.gathering.members.count - (self.machine.device == nil ? 0 : 1) }
    }

    nonisolated func entry(_ number: Int64) -> Entry? {
        self.services.gatherings.find("\(GatheringKinds.machinePrefix)\(number)").flatMap(Self.entry)
    }

    private static func entry(_ runner: GatheringRunner) -> Entry? {
        guard let machine = runner.dialect as? Machine,
            let number = Int64(runner.room.rawValue.dropFirst(GatheringKinds.machinePrefix.count))
        else {
            return nil
        }
        return Entry(number: number, runner: runner, machine: machine)
    }

    /// By number.
    nonisolated var all: [Entry] {
        self.services.gatherings.of(GatheringKinds.machine).compactMap(Self.entry).sorted { $0.number < $1.number }
    }

    // MARK: - Changes

    /// Creates a machine with its room and returns its number.
    func create(accid: String, nickname: String, name: String, mode: Machine.Mode) async throws -> Int64 {
        guard !self.making.contains(accid), !self.all.contains(where: { $0.machine.info.accid == accid }) else {
            throw DollsCatcherError.accidTaken
        }
        self.making.insert(accid)
        defer { self.making.remove(accid) }
        let tooMany = RegistryError.tooMany(what: "gatherings", limit: self.services.config.apps.gatherings)
        guard !self.services.gatherings.isFull() else { throw tooMany }
        let (number, room) = try await self.room(name)
        let info = Machine.Info(name: name, accid: accid, mode: mode)
        let salt = SecretText.hex((0..<16).map { _ in UInt8.random(in: 0...255) })
        let limits = self.services.gatherings.machineLimits
        guard
            let runner = self.services.gatherings.open(
                GatheringKinds.machine, room.id, { Machine(info, limits: limits, salt: salt) })
        else {
            try? await self.services.rooms.delete(room.id.rawValue, by: Actor("machines"))
            throw tooMany
        }
        var command = GatheringRunner.Command(input: .enter(id: info.device, name: nickname, role: Gathering.host))
        command.isKept = true
        if case .failure(let failure) = await runner.outcome(of: command) { throw failure }
        return number
    }

    private func room(_ name: String) async throws(RegistryError) -> (number: Int64, room: Room) {
        var new = NewRoom(policy: self.services.config.rooms.policy)
        new.slots = Self.slots
        new.title = name
        new.isPublic = false
        // A machine exists for as long as its room may; a later push opens the room again.
        for (field, value) in [
            ("neverStarted", Int64.max), ("grace", .max), ("cleanStop", .max), ("idleGrace", .max), ("pauseGrace", .max),
            ("ownerOffline", .max), ("maxDuration", .max), ("retention", .max), ("urlLifetime", .max),
        ] {
            guard let field = RoomPolicy.fields.first(where: { $0.name == field }) else { continue }
            field.set(&new.policy, min(value, field.range.upperBound))
        }
        for _ in 0..<Self.tries {
            let number = Int64.random(in: Self.numbers)
            new.id = RoomID(stored: "\(GatheringKinds.machinePrefix)\(number)")
            do throws(RegistryError) {
                return (number, try await self.services.rooms.create(new, by: Actor("machines")))
            } catch {
                guard case .idTaken = error else { throw error }
            }
        }
        throw .tooMany(what: "machines", limit: Self.numbers.count)
    }

    /// Opens or closes a machine, and lists or unlists it; nil changes nothing.
    nonisolated func manage(_ number: Int64, isOpen: Bool?, isPublic: Bool?) async throws {
        guard let entry = self.entry(number) else { throw DollsCatcherError.noSuchRoom }
        var command = GatheringRunner.Command { (gathering, nowMs) throws(GatheringRefusal) in
            guard var machine = gathering as? Machine else { return [] }
            let effects = machine.manage(isOpen: isOpen, isPublic: isPublic, nowMs: nowMs)
            gathering = machine
            return effects
        }
        command.isKept = true
        if case .failure(let failure) = await entry.runner.outcome(of: command) { throw failure }
        guard let isPublic else { return }
        var patch = RoomPatch()
        patch.isPublic = isPublic
        _ = try await self.services.rooms.update(entry.runner.room.rawValue, patch, by: Actor("machines"))
    }
}
