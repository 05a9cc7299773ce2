import Relay
import Rooms
import Streaming
import Talk

/// The state of a ``TalkChannel``, under its lock. A plain value.
package struct TalkChannelState {
    var settings: TalkSettings
    var members: TalkMembers
    var floor: FloorRules
    /// Talkers on air.
    var talkers: [ParticipantID: TalkPublishSession] = [:]
    /// Admitted talkers that do not own their stream yet, by session.
    var coming: [Int64: TalkPublishSession] = [:]
    var listeners: [Int64: TalkListenSession] = [:]
    var outputs = TalkOutputs()
    var reports: [ParticipantID: VoiceReport] = [:]
    var mixes = 0
    var totals = TalkTotals()
    /// Streams whose recordings the mix accompanies.
    var held: Set<StreamPath> = []
    var isTicking = false
    var isClosed = false
    /// The due time of the newest tick, or the time when ticking began; nil: never.
    var tickedMs: Int64?
    var emptySinceMs: Int64?
    var reportedMs: Int64 = 0
    var reportedText = ""
    var heardMs: [ParticipantID: Int64] = [:]

    /// The mix that accompanies recordings.
    static var recorded: TalkOutputs.Key { TalkOutputs.Key(target: .mix, codec: .aac) }

    /// Shorter delays of ticks are caught up; a longer one is a stall.
    private static let stallMs: Int64 = 1_100

    /// Excludes a stall of the server from the floor's times: the server heard nobody meanwhile, and must not revoke the floor for that. Call before
    /// using these times.
    mutating func noteStall(nowMs: Int64) {
        guard self.isTicking, let tickedMs = self.tickedMs, nowMs - tickedMs > Self.stallMs else { return }
        self.floor.stoodStill(ms: nowMs - tickedMs)
        self.tickedMs = nowMs
    }

    /// The work of a tick.
    func plan(bitRate: Int) -> TalkEngine.Plan {
        var plan = TalkEngine.Plan()
        plan.ducks = self.settings.ducks
        plan.bitRate = bitRate
        plan.isRecorded = !self.held.isEmpty
        plan.talkers = self.talkers.values.map {
            .init(id: $0.id, inbox: $0.inbox, gain: self.members.gain($0.id), isHeard: $0.isOpen)
        }
        let wanted = self.wanted
        for (key, output) in self.outputs.all {
            guard case .open(let stream) = output else { continue }
            plan.mixes.append(.init(target: key.target, codec: key.codec, stream: stream, isWanted: wanted.contains(key)))
        }
        return plan
    }

    /// The request, or a refusal if it would give the floor to a banned participant.
    func permitted(_ input: FloorInput, nowMs: Int64) -> FloorInput {
        switch input {
        case .requested(let id, _) where self.members.forbiddenUntil(id, nowMs: nowMs) != nil: .refused(id, .banned, by: nil)
        case .handedOver(let from, let to, _) where self.members.forbiddenUntil(to, nowMs: nowMs) != nil: .refused(to, .banned, by: from)
        default: input
        }
    }

    /// Mixes that are listened to or recorded.
    var wanted: Set<TalkOutputs.Key> {
        var wanted = Set(self.listeners.values.filter(\.target.isMix).map(\.output))
        if !self.held.isEmpty { wanted.insert(Self.recorded) }
        return wanted
    }

    /// The talkers, as the API shows them.
    var shown: [TalkSnapshot.Member] {
        self.members.talkers.map { member in
            TalkSnapshot.Member(
                member, hasFloor: self.floor.holds(member.id), report: self.reports[member.id],
                leftOut: self.talkers[member.id]?.counts)
        }.sorted { $0.userID < $1.userID }
    }
}
