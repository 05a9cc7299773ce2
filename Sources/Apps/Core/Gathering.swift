package import Support

/// People and devices that talk through the server: the one messaging core of all apps. A value without a clock.
///
/// ```
///            connect            disconnect                 offline limit, leave, kick
///   (none) ───────────► here ─────────────────► away ─────────────────────────────────► gone
///             ▲                                   │
///             └─────────── connect ───────────────┘
/// ```
/// An input is applied as a whole or refused: a refusal changes nothing. A dialect (mesh, channel, classroom, claw machine) parses its frames into
/// inputs and writes ``Signal``s as its frames. Signals are delivered at most once and in order; members that are away miss them and get the current
/// state on their return.
package struct Gathering: Sendable, Equatable {
    package struct Member: Sendable, Equatable {
        package let id: String
        package internal(set) var name: String
        package internal(set) var role: String
        /// Milliseconds since 1970.
        package let joinedAtMs: Int64
        /// The member's number among all that ever joined, from 1.
        package let order: Int
        /// Nil while the member is away.
        package internal(set) var connection: ConnectionID?
        /// Milliseconds since 1970; nil while the member is here.
        package internal(set) var awaySinceMs: Int64?
    }

    /// A one-shot permission that one member asks of another.
    package struct Ticket: Sendable, Equatable {
        /// 128 random bits in hex.
        package let id: String
        /// Such as `speak`; defined by the dialect.
        package let kind: String
        package let from: String
        package let to: String
        package let payload: JSONValue
        /// Milliseconds since 1970.
        package let expiresAtMs: Int64
    }

    /// A place in the queue; each member has one at most.
    package struct Entry: Sendable, Equatable {
        package let key: String
        package internal(set) var value: String
        /// When the place was taken; a new value keeps it. Milliseconds since 1970.
        package let atMs: Int64
    }

    package let limits: GatheringLimits
    /// In the order in which they joined.
    package internal(set) var members: [Member] = []
    package internal(set) var tickets: [Ticket] = []
    package internal(set) var queue: [Entry] = []
    /// Whether the queue takes no new entries.
    package internal(set) var isPaused = false
    package internal(set) var hasEnded = false
    /// How many members ever joined.
    var joins = 0
    /// When the store was read, in milliseconds since 1970. Members could not come back while the server was down.
    var restartedMs: Int64?

    package init(limits: GatheringLimits) { self.limits = limits }

    package func member(_ id: String) -> Member? { self.members.first { $0.id.exact == id.exact } }

    package func member(at connection: ConnectionID) -> Member? { self.members.first { $0.connection == connection } }

    /// When ``Input/tick`` has something to do next, in milliseconds since 1970; nil when never.
    package var nextDeadlineMs: Int64? {
        let leaves = self.members.compactMap(self.leavesMs)
        return (leaves + self.tickets.map(\.expiresAtMs)).min()
    }

    /// When a member that is away leaves, in milliseconds since 1970; nil for one that is here.
    ///
    /// A restart gives everybody the whole time again. Stored times of absence may also be outdated, because a return is not stored.
    func leavesMs(_ member: Member) -> Int64? {
        member.awaySinceMs.map { max($0, self.restartedMs ?? $0) + self.limits.offlineMs }
    }

    /// Whether it has no members, tickets or queue entries.
    package var isIdle: Bool { self.members.isEmpty && self.tickets.isEmpty && self.queue.isEmpty }
}

/// A connection's number, unique in the process.
package struct ConnectionID: Hashable, Sendable {
    package let rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// Set in the numbers of members whose connections another server holds. Sockets are counted from 1 and never come so far.
    private static let remoteBit: UInt64 = 1 << 63

    /// The connection of a member that another server reports as connected. `number`: unique in the process.
    package static func remote(_ number: UInt64) -> ConnectionID { ConnectionID(number | Self.remoteBit) }

    /// Whether it belongs to another server, not to a socket of this one.
    package var isRemote: Bool { self.rawValue & Self.remoteBit != 0 }
}

/// The bounds of a gathering. A value.
package struct GatheringLimits: Sendable, Equatable {
    package var members: Int
    /// How long a member may be away.
    package var offlineMs: Int64
    package var queue = 200
    package var valueBytes = 4 << 10
    package var tickets = 500
    /// Open tickets of one asking member.
    package var ticketsOfOne = 50
    /// Bytes of a ticket's payload, as JSON. All of a gathering is stored with each change.
    package var payloadBytes = 1 << 10
    package var ticketMs: Int64 = 30_000

    package init(members: Int, offlineMs: Int64) {
        self.members = members
        self.offlineMs = offlineMs
    }

    /// Bytes of a member's name.
    package static let nameBytes = 64

    /// Whether a member may have this name: ``problem(ofName:)``.
    package static func isName(_ text: String) -> Bool { self.problem(ofName: text) == nil }

    /// Why a member may not have this name; nil for one of 1 to 64 bytes in Normalization Form C, without control characters.
    package static func problem(ofName text: String) -> String? {
        guard self.isPlain(text) else { return "expected 1 to \(self.nameBytes) bytes without control characters" }
        return NameForm.problem(text).map { "the name \($0)" }
    }

    /// At least one character must be visible. The joiner inside emoji is allowed.
    private static func isPlain(_ text: String) -> Bool {
        (1...self.nameBytes).contains(text.utf8.count)
            && text.unicodeScalars.contains { !$0.properties.isWhitespace && $0.value != self.joiner }
            && !text.unicodeScalars.contains {
                $0.properties.generalCategory == .control || ($0.properties.generalCategory == .format && $0.value != self.joiner)
            }
    }

    /// ZERO WIDTH JOINER.
    private static let joiner: UInt32 = 0x200D
}

/// The reason why an input changed nothing. `code` is for programs, the description for people.
package enum GatheringRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    case full(limit: Int)
    case notMember
    case noSuchMember(String)
    case noSuchTicket
    case queueFull(limit: Int)
    case queuePaused
    case notQueued(String)
    case notYours
    case tooManyTickets(limit: Int)
    case ended
    case invalid(FieldError)
    /// A dialect's own refusal, with the code that the dialect's clients expect.
    case dialect(code: String, message: String)

    package var code: String {
        switch self {
        case .full: "full"
        case .notMember: "not_member"
        case .noSuchMember: "no_such_member"
        case .noSuchTicket: "no_such_ticket"
        case .queueFull: "queue_full"
        case .queuePaused: "queue_paused"
        case .notQueued: "not_queued"
        case .notYours: "not_yours"
        case .tooManyTickets: "too_many_tickets"
        case .ended: "ended"
        case .invalid: "invalid"
        case .dialect(let code, _): code
        }
    }

    package var description: String {
        switch self {
        case .full(let limit): "The room is full; it takes \(limit) people."
        case .notMember: "Join first."
        case .noSuchMember(let id): "There is nobody \"\(id.prefix(80))\" here."
        case .noSuchTicket: "This ticket is unknown, used, too old, or for somebody else."
        case .queueFull(let limit): "The queue is full; it takes \(limit)."
        case .queuePaused: "The queue takes nobody at the moment."
        case .notQueued(let id): "\"\(id.prefix(80))\" is not in the queue."
        case .notYours: "Only its own member or a host may do this."
        case .tooManyTickets(let limit): "There are \(limit) open requests already, the limit."
        case .ended: "It has ended."
        case .invalid(let error): "\(error)"
        case .dialect(_, let message): message
        }
    }
}
