package import Support

/// One line of the audit trail: the caller, the operation, its object and the result. A value.
package struct AuditLine: Sendable, Equatable {
    /// Nil if the caller's token is not known, or another tool acted.
    package var tokenID: Int64?
    /// The token's name; "cli" for the command line's own work in the data directory. Nil if it is not known.
    package var token: String?
    /// The first eight hex digits of the hash of a secret that no valid token has.
    package var tokenHash: String?
    /// The caller's address; empty for the command line's own work in the data directory.
    package var address = ""
    /// Nil in lines of versions that did not record it.
    package var via: AuditTool?
    package var requestID = ""
    /// The operationId: "closeRoom".
    package let operation: String
    package var roomID: String?
    /// "app/name"
    package var stream: String?
    /// Another thing acted on: "token/7", "session/42".
    package var object: String?
    /// "ok", or the error's type.
    package var result = Self.ok
    /// The HTTP status; 0 without a request.
    package var status = 0
    /// The changed fields' former and new values, as JSON objects; nil if nothing changed that the trail shows.
    package var before: String?
    package var after: String?

    package static let ok = "ok"
    /// Bytes of each of the caller-controlled texts.
    package static let longest = 256

    package init(_ operation: String) { self.operation = operation }

    /// Whether the caller was refused because of its token, role, limits or rate.
    package var isRefused: Bool { [401, 403, 429].contains(self.status) }

    /// The same line with the fields that the operation's transaction changed.
    package func with(_ change: AuditChange) -> AuditLine {
        var line = self
        if let roomID = change.roomID { line.roomID = roomID.rawValue }
        if let object = change.object { line.object = object }
        if !change.before.isEmpty { line.before = change.before.text }
        if !change.after.isEmpty { line.after = change.after.text }
        return line
    }
}

/// The tool that a caller uses, as far as the request shows it: the command names itself in User-Agent, which any program may imitate. The raw value
/// is stored.
package struct AuditTool: RawRepresentable, Sendable, Hashable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    /// A program that calls the API.
    package static let api = AuditTool(rawValue: "api")
    /// The command `earshot`, through the API or in the data directory.
    package static let cli = AuditTool(rawValue: "cli")
    /// A browser that is logged in to the console.
    package static let console = AuditTool(rawValue: "console")
    /// A back end that calls the cloud's API.
    package static let tencent = AuditTool(rawValue: "tencent")

    /// The User-Agent of the command.
    package static let commandAgent = "earshot"
}

/// A stored line.
package struct AuditEntry: Sendable, Equatable {
    package let id: Int64
    /// Milliseconds since 1970.
    package let at: Int64
    package let line: AuditLine

    package init(id: Int64, at: Int64, line: AuditLine) {
        self.id = id
        self.at = at
        self.line = line
    }
}

/// A page of lines: newest first, those before `before`.
package struct AuditQuery: Sendable, Equatable {
    /// A token's name.
    package var token: String?
    package var via: AuditTool?
    package var operation: String?
    package var room: String?
    package var stream: String?
    package var result: String?
    package var fromMs: Int64?
    package var toMs: Int64?
    package var before: Int64?
    package var limit = 100
    package init() {}
}

/// How much of the trail is kept.
package struct AuditRetention: Sendable, Equatable {
    package var keptMs: Int64 = 90 * 86_400_000
    /// Lines of calls that were carried out or failed. Refused calls may have a tenth of this number, so that a flood of them displaces no others.
    package var lines = 200_000
    package var refusedLines: Int { max(1, self.lines / 10) }
    package init() {}
}

/// The fields that one operation changed, as the trail shows them; never a secret. A value.
package struct AuditChange: Sendable, Equatable {
    package var roomID: RoomID?
    package var object: String?
    package private(set) var before: [JSONValue.Member] = []
    package private(set) var after: [JSONValue.Member] = []

    package init() {}

    /// Adds a field if its value has changed. Nil stands for no value. Long texts are shortened.
    package mutating func add(_ name: String, from old: JSONValue?, to new: JSONValue?) {
        guard old != new else { return }
        if let old { self.before.append(.init(name: name, value: Self.shortened(old))) }
        if let new { self.after.append(.init(name: name, value: Self.shortened(new))) }
    }

    private static func shortened(_ value: JSONValue) -> JSONValue {
        guard case .string(let text) = value else { return value }
        return .string(text.shortened(toBytes: AuditLine.longest))
    }
}

// MARK: - Fields

extension AuditChange {
    /// Adds a room's change; nil for a room that did not exist, or no longer exists.
    package mutating func room(from old: Room?, to new: Room?, standard: RoomPolicy) {
        self.roomID = new?.id ?? old?.id
        for (name, value) in Self.fields { self.add(name, from: old.flatMap(value), to: new.flatMap(value)) }
        // Shows only the settings in which a new room's policy differs from the server's.
        let (former, policy) = (old?.policy ?? standard, new?.policy ?? old?.policy ?? standard)
        for field in RoomPolicy.fields where field.get(former) != field.get(policy) {
            self.add("policy.\(field.name)", from: field.shown(former), to: field.shown(policy))
        }
    }

    private static let fields: [(String, @Sendable (Room) -> JSONValue?)] = [
        ("state", { .string($0.state.rawValue) }), ("title", { $0.title.isEmpty ? nil : .string($0.title) }),
        ("owner", { $0.owner.map(JSONValue.string) }), ("deviceUid", { $0.deviceUid.map(JSONValue.string) }),
        ("isPublic", { .bool($0.isPublic) }), ("custom", { $0.custom == "{}" ? nil : .string($0.custom) }),
        ("forbiddenUntil", { $0.forbiddenUntil.map { .string(Instant.text($0)) } }),
        ("forbidReason", { $0.forbidReason.map(JSONValue.string) }),
        ("expiresAt", { RoomRules.nextDeadline(of: $0).map { .string(Instant.text($0)) } }),
    ]

    package mutating func ban(from old: StreamBan?, to new: StreamBan?) {
        self.add("forbiddenUntil", from: old.map { .string(Instant.text($0.resumeAt)) }, to: new.map { .string(Instant.text($0.resumeAt)) })
        self.add("forbidReason", from: old.map { .string($0.reason) }, to: new.map { .string($0.reason) })
    }

    /// A created or a revoked token.
    package mutating func token(from old: APIToken?, to new: APIToken) {
        self.object = "token/\(new.id)"
        self.add("name", from: old.map { .string($0.name) }, to: .string(new.name))
        self.add("role", from: old.map { .string($0.role.rawValue) }, to: .string(new.role.rawValue))
        func shown(_ list: [String]?) -> JSONValue? { list.flatMap { $0.isEmpty ? nil : .array($0.map(JSONValue.string)) } }
        self.add("apps", from: shown(old?.scope.apps), to: shown(new.scope.apps))
        self.add("rooms", from: shown(old?.scope.rooms), to: shown(new.scope.rooms))
        self.add("revokedAt", from: old?.revokedAt.map { .string(Instant.text($0)) }, to: new.revokedAt.map { .string(Instant.text($0)) })
    }

    package mutating func talk(from old: TalkSettings, to new: TalkSettings) {
        self.add("mode", from: .string(old.mode.rawValue), to: .string(new.mode.rawValue))
        self.add("talkers", from: .integer(Int64(old.talkers)), to: .integer(Int64(new.talkers)))
        self.add("listeners", from: .integer(Int64(old.listeners)), to: .integer(Int64(new.listeners)))
        self.add("maxOpen", from: .integer(Int64(old.maxOpen)), to: .integer(Int64(new.maxOpen)))
        self.add("maxHold", from: .number(Double(old.maxHoldMs) / 1_000), to: .number(Double(new.maxHoldMs) / 1_000))
        self.add("preempts", from: .bool(old.preempts), to: .bool(new.preempts))
        self.add("ducks", from: .bool(old.ducks), to: .bool(new.ducks))
    }

    package mutating func talkMember(from old: TalkMemberSetting, to new: TalkMemberSetting) {
        self.add("muted", from: .bool(old.isMuted), to: .bool(new.isMuted))
        self.add("gainDb", from: .number(old.gainDB), to: .number(new.gainDB))
        self.add(
            "forbiddenUntil", from: old.bannedUntilMs.map { .string(Instant.text($0)) },
            to: new.bannedUntilMs.map { .string(Instant.text($0)) })
    }
}

extension RoomPolicy.Field {
    /// The setting as the API shows it: durations in seconds.
    fileprivate func shown(_ policy: RoomPolicy) -> JSONValue {
        switch self.kind {
        case .duration: .number(Double(self.get(policy)) / 1_000)
        case .count: .integer(self.get(policy))
        case .words: .string(self.word(self.get(policy)) ?? "")
        }
    }
}
