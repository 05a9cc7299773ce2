/// The capacity of a room's talk channel. A plain value.
package struct TalkLimits: Sendable, Equatable {
    /// 0…64.
    package let talkers: Int
    /// 0…100,000.
    package let listeners: Int

    package init(talkers: Int = 8, listeners: Int = 50) {
        self.talkers = min(max(talkers, 0), 64)
        self.listeners = min(max(listeners, 0), 100_000)
    }
}

/// The reason why a talk channel refuses a participant. Scope: the publish or play.
package enum TalkRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    case talkersFull(max: Int)
    case listenersFull(max: Int)
    /// Somebody else publishes under this name.
    case nameTaken(ParticipantID)
    /// `untilMs`: milliseconds of the caller's clock.
    case forbidden(ParticipantID, untilMs: Int64)
    /// Clients with the same credential push one another out, or publish too often.
    case flapping(ParticipantID)

    package var description: String {
        switch self {
        case .talkersFull(let max): "all \(max) talker places are taken"
        case .listenersFull(let max): "all \(max) listener places are taken"
        case .nameTaken(let id): "somebody else speaks as \(id)"
        case .forbidden(let id, _): "\(id) is forbidden to take part"
        case .flapping(let id): "\(id) is published too often, or by several clients in turn"
        }
    }
}

/// The admission of a talker. A plain value.
package struct TalkAdmission: Sendable, Equatable {
    package var session: Int64
    /// The same talker's previous session, which ends when this one begins.
    package var replaces: Int64?
}

/// A participant that publishes. A plain value.
package struct TalkMember: Sendable, Equatable {
    package var id: ParticipantID
    package var role: TalkRole
    /// The session on air; before any is, the newest.
    package var session: Int64
    /// Milliseconds: when the talker came; takeovers do not change it.
    package var sinceMs: Int64
    package var isMuted: Bool
    /// A factor.
    package var gain: Float
}

/// The members of a room's talk channel, and the rules that admit them. One per room, a plain value. No clock: `nowMs` is passed in.
///
/// A publish with the same credential takes over the talker; one with another credential is refused. An admitted talker affects others only when it
/// begins, because it may still be refused elsewhere. A participant's settings (mute, gain, role, ban) outlive its sessions.
package struct TalkMembers: Sendable {
    package var limits: TalkLimits
    private var settings: [ParticipantID: Setting] = [:]
    private var speaking: [ParticipantID: Talker] = [:]
    private var listening: [Int64: Listener] = [:]
    private var lastSession: Int64 = 0

    private struct Listener: Sendable {
        var address: TalkAddress
        /// The participant that its credential names, if any.
        var user: ParticipantID?
    }

    private struct Setting: Sendable, Equatable {
        var isMuted = false
        var gain: Float = 1
        var role: TalkRole?
        var forbiddenUntilMs: Int64?
        /// Recent times at which it began to publish, in milliseconds.
        var beginnings: [Int64] = []
        /// Order of the last change.
        var age: Int64 = 0

        var isSet: Bool { self.isMuted || self.gain != 1 || self.role != nil || self.forbiddenUntilMs != nil }
    }

    private struct Talker: Sendable {
        var identity: String
        var role: TalkRole
        /// Admitted sessions that have not ended, in order.
        var sessions: [Int64]
        /// The last session that began.
        var begun: Int64?
        var sinceMs: Int64
        /// Milliseconds: recent takeovers.
        var takeovers: [Int64] = []

        var session: Int64 {
            self.begun.flatMap { self.sessions.contains($0) ? $0 : nil } ?? self.sessions.last ?? 0
        }
    }

    /// Limit of participants with settings. Beyond it the oldest setting of an absent one is dropped.
    private static let maxSettings = 512
    /// Takeovers within ``flappingMs`` after which the next is refused.
    private static let maxTakeovers = 3
    private static let flappingMs: Int64 = 30_000
    /// Beginnings within ``flappingMs`` after which the next is refused. Each adds an event or two to the audit trail.
    private static let maxBeginnings = 30

    package init(limits: TalkLimits = TalkLimits()) { self.limits = limits }

    // MARK: Coming and going

    /// Admits a talker. `identity` comes from its credential; a publish with the same identity is taken over when this one begins
    /// (``began(session:role:nowMs:)``). `user` is the credential's participant; bans of that name apply too.
    package mutating func admitTalker(
        _ id: ParticipantID, identity: String, user: ParticipantID? = nil, role: TalkRole, nowMs: Int64
    ) throws(TalkRefusal) -> TalkAdmission {
        try self.requireAllowed(id, nowMs)
        if let user { try self.requireAllowed(user, nowMs) }
        guard self.beginnings(id, nowMs).count < Self.maxBeginnings else { throw .flapping(id) }
        guard let talker = self.speaking[id] else {
            guard self.speaking.count < self.limits.talkers else { throw .talkersFull(max: self.limits.talkers) }
            let session = self.newSession()
            self.speaking[id] = Talker(identity: identity, role: role, sessions: [session], sinceMs: nowMs)
            return TalkAdmission(session: session, replaces: nil)
        }
        // By bytes: `==` also takes other spellings of the same characters for equal.
        guard talker.identity.utf8.elementsEqual(identity.utf8) else { throw .nameTaken(id) }
        guard talker.takeovers.count(where: { nowMs - $0 < Self.flappingMs }) < Self.maxTakeovers else { throw .flapping(id) }
        let session = self.newSession()
        self.speaking[id]?.sessions.append(session)
        return TalkAdmission(session: session, replaces: talker.session)
    }

    /// Puts an admitted talker on air. From now on its role applies; this counts as a beginning and, if another session was on air, as a takeover.
    package mutating func began(session: Int64, role: TalkRole, nowMs: Int64) {
        guard let id = self.speaking.first(where: { $0.value.sessions.contains(session) })?.key, var talker = self.speaking[id] else {
            return
        }
        if talker.begun != nil {
            talker.takeovers.removeAll { nowMs - $0 >= Self.flappingMs }
            talker.takeovers.append(nowMs)
        }
        talker.begun = session
        talker.role = role
        self.speaking[id] = talker
        let beginnings = self.beginnings(id, nowMs) + [nowMs]
        self.set(id) { $0.beginnings = beginnings }
    }

    private func beginnings(_ id: ParticipantID, _ nowMs: Int64) -> [Int64] {
        (self.settings[id]?.beginnings ?? []).filter { nowMs - $0 < Self.flappingMs }
    }

    /// Admits a listener and returns its session. `user` is the participant that its credential names, if any.
    package mutating func admitListener(_ address: TalkAddress, user: ParticipantID? = nil, nowMs: Int64) throws(TalkRefusal) -> Int64 {
        if case .mixWithout(let id) = address { try self.requireAllowed(id, nowMs) }
        if let user { try self.requireAllowed(user, nowMs) }
        guard self.listening.count < self.limits.listeners else { throw .listenersFull(max: self.limits.listeners) }
        let session = self.newSession()
        self.listening[session] = Listener(address: address, user: user)
        return session
    }

    /// Ends a session. Returns true when its participant is gone with it; false when the session had already ended, or the talker has another
    /// session.
    package mutating func left(session: Int64) -> Bool {
        if self.listening.removeValue(forKey: session) != nil { return true }
        guard let id = self.speaking.first(where: { $0.value.sessions.contains(session) })?.key else { return false }
        self.speaking[id]?.sessions.removeAll { $0 == session }
        guard self.speaking[id]?.sessions.isEmpty == true else { return false }
        self.speaking[id] = nil
        return true
    }

    /// Whether the talker is on air, or admitted.
    package func isThere(_ id: ParticipantID) -> Bool { self.speaking[id] != nil }

    private func requireAllowed(_ id: ParticipantID, _ nowMs: Int64) throws(TalkRefusal) {
        if let untilMs = self.forbiddenUntil(id, nowMs: nowMs) { throw .forbidden(id, untilMs: untilMs) }
    }

    private mutating func newSession() -> Int64 {
        self.lastSession += 1
        return self.lastSession
    }

    // MARK: Present members

    /// The talkers in the order in which they came.
    package var talkers: [TalkMember] {
        self.speaking.map { id, talker in
            TalkMember(
                id: id, role: self.role(id) ?? talker.role, session: talker.session, sinceMs: talker.sinceMs, isMuted: self.isMuted(id),
                gain: self.gain(id))
        }.sorted { ($0.sinceMs, $0.session) < ($1.sinceMs, $1.session) }
    }

    package var listenerCount: Int { self.listening.count }

    /// Sessions that play an address.
    package func listeners(of address: TalkAddress) -> [Int64] { self.listening.filter { $0.value.address == address }.keys.sorted() }

    /// The sessions to end when a participant is thrown out: its publishes, on air or admitted, the plays of its own mix, and all plays with its
    /// credential.
    package func sessions(of id: ParticipantID) -> [Int64] {
        let plays = self.listening.filter { $0.value.address == .mixWithout(id) || $0.value.user == id }
        return (self.speaking[id]?.sessions ?? []) + plays.keys.sorted()
    }

    /// Banned participants by name, with the end of each ban. Milliseconds of the caller's clock.
    package func forbidden(nowMs: Int64) -> [(id: ParticipantID, untilMs: Int64)] {
        self.settings.keys.compactMap { id in self.forbiddenUntil(id, nowMs: nowMs).map { (id, $0) } }.sorted {
            $0.id.rawValue < $1.id.rawValue
        }
    }

    // MARK: Settings

    package mutating func setMuted(_ id: ParticipantID, _ isMuted: Bool) { self.set(id) { $0.isMuted = isMuted } }

    /// A factor, clamped to 0…``Mixer/maxGain``.
    package mutating func setGain(_ id: ParticipantID, _ gain: Float) {
        guard gain.isFinite else { return }
        self.set(id) { $0.gain = min(max(gain, 0), Mixer.maxGain) }
    }

    /// Overrides the credential's role.
    package mutating func setRole(_ id: ParticipantID, _ role: TalkRole) { self.set(id) { $0.role = role } }

    /// Bans a participant until a time in milliseconds of the caller's clock; nil lifts the ban. Ends no session.
    package mutating func forbid(_ id: ParticipantID, untilMs: Int64?) { self.set(id) { $0.forbiddenUntilMs = untilMs } }

    package func isMuted(_ id: ParticipantID) -> Bool { self.settings[id]?.isMuted ?? false }

    package func gain(_ id: ParticipantID) -> Float { self.settings[id]?.gain ?? 1 }

    /// The role that was set, else the credential's; nil when there is neither.
    package func role(_ id: ParticipantID) -> TalkRole? { self.settings[id]?.role ?? self.speaking[id]?.role }

    /// End of the ban in milliseconds; nil without a ban at `nowMs`.
    package func forbiddenUntil(_ id: ParticipantID, nowMs: Int64) -> Int64? {
        self.settings[id]?.forbiddenUntilMs.flatMap { nowMs < $0 ? $0 : nil }
    }

    private mutating func set(_ id: ParticipantID, _ change: (inout Setting) -> Void) {
        var setting = self.settings[id] ?? Setting()
        change(&setting)
        setting.age = self.newSession()
        self.settings[id] = setting
        guard self.settings.count > Self.maxSettings else { return }
        // Drops names without settings before those with settings. Present participants stay: they are few.
        let oldest = self.settings.filter { $0.key != id && self.speaking[$0.key] == nil }
            .min { ($0.value.isSet ? 1 : 0, $0.value.age) < ($1.value.isSet ? 1 : 0, $1.value.age) }
        if let oldest { self.settings[oldest.key] = nil }
    }
}
