import Apps
package import ServerConfiguration
import Support

/// The kinds of gatherings that the store keeps, and how to restore each. A value.
package struct GatheringKinds: Sendable {
    package static let plain = "plain"
    package static let machine = "machine"
    package static let classroom = "class"

    /// The room in a token for the channels of all machines, and the prefix of machines' rooms.
    static let everyMachine = "m-*"
    static let machinePrefix = "m-"

    /// The kinds that a channel's token may name.
    package static let all = [Self.plain, Self.machine, Self.classroom]

    /// Whether each gathering of this kind has a room of its own.
    static func ownsRoom(_ kind: String) -> Bool { kind == self.machine || kind == self.classroom }

    let limits: GatheringLimits
    let machine: MachineLimits
    let classroom: ClassroomLimits

    package init(_ config: ServerConfig.Apps) {
        self.limits = Self.bounded(GatheringLimits(members: config.members, offlineMs: config.offlineMs), config)
        var machine = MachineLimits(members: config.members)
        machine.gathering = Self.bounded(machine.gathering, config)
        machine.offeredMs = config.machineOfferedMs
        machine.playingMs = config.machinePlayingMs
        machine.settlingMs = config.machineSettlingMs
        self.machine = machine
        var classroom = ClassroomLimits()
        classroom.members = max(config.members, classroom.activeMembers)
        classroom.ticketMs = config.classroomTicketMs
        classroom.lifetimeMs = config.classroomLifetimeMs
        classroom.offlineMs = config.classroomOfflineMs
        self.classroom = classroom
    }

    private static func bounded(_ limits: GatheringLimits, _ config: ServerConfig.Apps) -> GatheringLimits {
        var limits = limits
        limits.valueBytes = min(limits.valueBytes, config.messageBytes)
        return limits
    }

    func read(_ kind: String, _ state: String, nowMs: Int64) throws -> any GatheringDialect {
        switch kind {
        case Self.machine: try Machine(state: state, limits: self.machine, nowMs: nowMs)
        case Self.classroom: try Classroom(state: state, limits: self.classroom, nowMs: nowMs)
        case Self.plain: try Gathering(state: state, limits: self.limits, nowMs: nowMs)
        default: throw FieldError("kind", kind, "expected \(Self.all.joined(separator: " or "))")
        }
    }
}
