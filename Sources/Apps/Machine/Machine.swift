package import Support

/// A claw machine: a gathering whose queue's first member plays, with the server speaking as the machine. A value without a clock.
///
/// ```
///         1.5 s with an entry, the device here, open, not paused         12, accepted
///   idle ──────────────────────────────────────────────────► offered ──────────────────► playing
///    ▲                                                           │                          │ 2, 32 s, or the player leaves
///    │  13, 12 s, or the player leaves: polled                   │                          ▼
///    ├───────────────────────────────────────────────────────────┘                      settling
///    └───────────────────────────────────────────────────────────────────────────────────────┘
///       4, 20 s, the device gone: polled, `game.ended`
/// ```
/// The head stays in the queue until its game ends, as clients show the first entry as the player. With ``Mode/device`` the machine's own
/// program invites and polls; the server's times are then upper bounds.
package struct Machine: GatheringDialect, Equatable {
    /// The side that drives the turns.
    package enum Mode: String, Sendable { case server, device }

    /// A machine's description by its owner.
    package struct Info: Sendable, Equatable {
        package let name: String
        /// The host's account, which may hold `@` and `.`.
        package let accid: String
        /// The device's member id, in the form of users' ids.
        package let device: String
        /// Whether it may be played; `roomStatus` of its HTTP API.
        package internal(set) var isOpen: Bool
        /// Whether lists show it; `bePublic` of its HTTP API.
        package internal(set) var isPublic: Bool
        package let mode: Mode

        package init(
            name: String, accid: String, device: String = Gathering.host, isOpen: Bool = true, isPublic: Bool = false, mode: Mode = .server
        ) {
            self.name = name
            self.accid = accid
            self.device = device
            self.isOpen = isOpen
            self.isPublic = isPublic
            self.mode = mode
        }
    }

    /// The role of members who may queue.
    package static let player = "player"

    package let limits: MachineLimits
    package internal(set) var info: Info
    package internal(set) var gathering: Gathering
    /// Nil while the machine is idle.
    package internal(set) var turn: Turn?
    /// A secret from which turns' ids are derived.
    let salt: String
    /// How many turns there were.
    var turns: Int64 = 0
    /// Since when an invitation can be sent, in milliseconds since 1970; nil while it cannot.
    var readySinceMs: Int64?
    /// By members' ids.
    var rates: [String: CommandRate] = [:]

    /// `salt`: 128 random bits in hex.
    package init(_ info: Info, limits: MachineLimits, salt: String) {
        self.info = info
        self.limits = limits
        self.salt = salt
        self.gathering = Gathering(limits: limits.gathering)
    }

    package var device: Gathering.Member? { self.gathering.member(self.info.device) }

    package var nextDeadlineMs: Int64? {
        [self.gathering.nextDeadlineMs, self.turn?.deadlineMs, self.readySinceMs.map { $0 + self.limits.idleMs }].compactMap(\.self).min()
    }

    /// A machine lives as long as its room.
    package var isIdle: Bool { self.gathering.hasEnded }

    package func greeting(for member: Gathering.Member) -> [JSONValue.Member] {
        let turn = self.turn
        let mayKnow = member.id == self.info.device || member.id == turn?.player
        var members = self.shown
        members.append(
            .init(
                name: "turn",
                value: [
                    "phase": .string(turn?.phase.rawValue ?? Self.idle), "player": turn.map { .string($0.player) } ?? .null,
                    "uuid": turn.flatMap { mayKnow ? .string($0.uuid) : nil } ?? .null,
                    "deadline": turn.map { .string(Instant.text($0.promisedMs)) } ?? .null,
                ]))
        return [.init(name: "machine", value: .object(members))]
    }

    /// The phase between games, as sent to members.
    package static let idle = "idle"

    private var shown: [JSONValue.Member] {
        [
            .init(name: "name", value: .string(self.info.name)), .init(name: "isOpen", value: .bool(self.info.isOpen)),
            .init(name: "isPublic", value: .bool(self.info.isPublic)), .init(name: "mode", value: .string(self.info.mode.rawValue)),
            .init(name: "isPaused", value: .bool(self.gathering.isPaused)),
        ]
    }

    /// Opens or closes the machine, and lists or unlists it; nil changes nothing. A running game goes on. There is no event for this, so the caller
    /// stores the state.
    package mutating func manage(isOpen: Bool?, isPublic: Bool?, nowMs: Int64) -> [Gathering.Effect] {
        let before = self.info
        guard !self.gathering.hasEnded else { return [] }
        self.info.isOpen = isOpen ?? before.isOpen
        self.info.isPublic = isPublic ?? before.isPublic
        guard self.info != before else { return [] }
        self.noteReadiness(nowMs)
        return self.shown(nowMs)
    }

    /// Sends the machine's description to all connected members.
    func shown(_ nowMs: Int64) -> [Gathering.Effect] {
        guard !self.gathering.all.isEmpty else { return [] }
        return [
            .send(.notified(from: self.info.device, object: "machine", content: .object(self.shown), atMs: nowMs), to: self.gathering.all)
        ]
    }
}
