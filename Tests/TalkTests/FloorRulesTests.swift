import Talk
import Testing

private let ann = participant("ann"), ben = participant("ben"), cat = participant("cat"), dan = participant("dan")

/// The floor's rules as a table of state × input → events and state, on a simulated clock.
@Suite struct FloorRulesTests {
    /// An input to a floor, its time, and the resulting events.
    struct Step: Sendable {
        var atMs: Int64
        var input: FloorInput
        var events: [String]

        init(_ atMs: Int64, _ input: FloorInput, _ events: String...) { (self.atMs, self.input, self.events) = (atMs, input, events) }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var settings = FloorSettings(mode: .ptt)
        var steps: [Step]
        var holders: [ParticipantID] = []
        var queue: [ParticipantID] = []
        var deadlineMs: Int64?
        var testDescription: String { self.name }
    }

    static let cases: [Case] = [
        Case(name: "free", steps: [Step(5, .published(ann, .guest), "granted ann free")], holders: [ann], deadlineMs: 2_005),
        Case(
            name: "asking twice", steps: [Step(5, .published(ann, .guest), "granted ann free"), Step(9, .requested(ann, .guest))],
            holders: [ann], deadlineMs: 2_005),
        Case(
            name: "first come, first served",
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(2, .published(cat, .guest), "queued cat asked #2"), Step(3, .requested(ben, .guest)),
                Step(100, .released(ann), "released ann asked 100", "granted ben turn"),
                Step(150, .unpublished(ben), "released ben unpublished 50", "granted cat turn"),
                Step(160, .released(cat), "released cat asked 10"), Step(170, .released(cat)), Step(180, .unpublished(dan)),
            ]),
        Case(
            name: "higher roles first",
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(2, .published(cat, .host), "queued cat asked #1"), Step(3, .published(dan, .coHost), "queued dan asked #2"),
                // ben becomes a co-host while waiting, and queues behind earlier co-hosts.
                Step(4, .requested(ben, .coHost), "queued ben asked #3"),
                Step(9, .released(ann), "released ann asked 9", "granted cat turn"),
            ], holders: [cat], queue: [dan, ben], deadlineMs: 2_009),
        Case(
            name: "the hold's end",
            steps: [Step(0, .published(ann, .host), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1")]
                + stride(from: 1_000, to: 30_000, by: 1_000).map { Step($0, .spoke(ann)) } + [
                    Step(29_999, .tick), Step(30_000, .tick, "revoked ann maxHold 30000", "granted ben turn"),
                    // A talker that exceeded the longest hold must ask again: its packets are no request.
                    Step(30_001, .spoke(ann)), Step(30_002, .released(ben), "released ben asked 2"), Step(30_003, .spoke(ann)),
                    Step(30_004, .requested(ann, .host), "granted ann free"),
                ], holders: [ann], deadlineMs: 32_004),
        Case(
            name: "no packets",
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(1_500, .spoke(ann)), Step(3_499, .tick), Step(3_500, .tick, "released ann idle 3500", "granted ben turn"),
                // It still publishes, so its next packet is a request, and only that one.
                Step(3_600, .spoke(ann), "queued ann asked #1"), Step(3_700, .spoke(ann)), Step(4_000, .spoke(ben)),
                // Late ticks act at the current time.
                Step(9_000, .tick, "released ben idle 5500", "granted ann turn"),
            ], holders: [ann], deadlineMs: 11_000),
        Case(
            name: "who does not publish",
            steps: [
                Step(0, .requested(ann, .host), "denied ann notPublishing"), Step(1, .published(ben, .guest), "granted ben free"),
                Step(2, .handedOver(from: ben, to: ann, .host), "denied ann notPublishing by ben"), Step(3, .spoke(ann)),
                Step(4, .published(ann, .guest), "queued ann asked #1"), Step(5, .unpublished(ann), "withdrawn ann unpublished"),
                Step(6, .requested(ann, .guest), "denied ann notPublishing"), Step(7, .muted(ann, by: nil)), Step(8, .unmuted(ann)),
                Step(9, .kicked(ben, by: nil), "revoked ben kicked 8"), Step(10, .requested(ben, .guest), "denied ben notPublishing"),
            ]),
        Case(
            name: "a deadline is applied before what comes late",
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"),
                Step(5_000, .published(ben, .guest), "released ann idle 5000", "granted ben free"),
            ], holders: [ben], deadlineMs: 7_000),
        Case(
            name: "pre-emption", settings: FloorSettings(mode: .ptt, preempts: true),
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(
                    2, .published(cat, .coHost), "revoked ann preempted by cat 2", "granted cat preempted by ann", "queued ann preempted #1"
                ),
                Step(3, .published(dan, .coHost), "queued dan asked #1"),
                Step(4, .released(cat), "released cat asked 2", "granted dan turn"),
            ], holders: [dan], queue: [ann, ben], deadlineMs: 2_004),
        Case(
            name: "pre-emption with a full queue", settings: FloorSettings(mode: .ptt, preempts: true, maxQueue: 1),
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(2, .published(dan, .guest), "denied dan queueFull"),
                Step(3, .published(cat, .host), "revoked ann preempted by cat 3", "granted cat preempted by ann", "denied ann queueFull"),
            ], holders: [cat], queue: [ben], deadlineMs: 2_003),
        Case(
            name: "hand-over",
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(2, .published(cat, .guest), "queued cat asked #2"),
                Step(5, .handedOver(from: ann, to: cat, .guest), "released ann handedOver by cat 5", "granted cat handedOver by ann"),
                Step(6, .handedOver(from: ann, to: ben, .guest), "denied ben notHolding by ann"),
                Step(7, .handedOver(from: cat, to: cat, .guest)), Step(8, .muted(dan, by: nil)),
                Step(9, .handedOver(from: cat, to: dan, .guest), "denied dan muted by cat"),
            ], holders: [cat], queue: [ben], deadlineMs: 2_005),
        Case(
            name: "mute",
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(2, .muted(ben, by: cat), "withdrawn ben muted by cat"), Step(3, .muted(ann, by: cat), "revoked ann muted by cat 3"),
                Step(4, .requested(ann, .guest), "denied ann muted"), Step(5, .spoke(ann)),
                Step(6, .unmuted(ann), "granted ann free"), Step(7, .unmuted(ann)), Step(8, .unpublished(ben)), Step(9, .unmuted(ben)),
            ], holders: [ann], deadlineMs: 2_006),
        Case(
            name: "kick and revoke",
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(2, .published(cat, .guest), "queued cat asked #2"), Step(3, .revoked(cat, by: dan), "withdrawn cat moderator by dan"),
                Step(4, .kicked(ann, by: dan), "revoked ann kicked by dan 4", "granted ben turn"),
                Step(5, .revoked(ben, by: nil), "revoked ben moderator 1"), Step(6, .spoke(ben)), Step(7, .kicked(dan, by: nil)),
            ]),
        Case(
            name: "from open to ptt", settings: FloorSettings(mode: .open, maxOpen: 3),
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .host), "granted ben free"),
                Step(2, .published(cat, .guest), "granted cat free"), Step(3, .published(dan, .guest), "queued dan asked #1"),
                Step(90_000, .tick),
                Step(
                    100_000, .settings(FloorSettings(mode: .ptt)), "revoked cat modeChanged 99998", "queued cat modeChanged #1",
                    "revoked ann modeChanged 100000", "queued ann modeChanged #1"),
            ], holders: [ben], queue: [ann, cat, dan], deadlineMs: 102_000),
        Case(
            name: "from ptt to open",
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(2, .published(cat, .guest), "queued cat asked #2"),
                Step(3, .settings(FloorSettings(mode: .open, maxOpen: 2)), "granted ben turn"),
                Step(4, .settings(FloorSettings(mode: .open, maxOpen: 1)), "revoked ben limit 1", "queued ben limit #1"),
                Step(5, .settings(FloorSettings(mode: .open, maxOpen: 1, maxQueue: 1)), "withdrawn cat queueFull"),
                Step(900_000, .tick),
            ], holders: [ann], queue: [ben]),
        Case(
            name: "a clock that steps back",
            steps: [
                Step(10_000, .published(ann, .guest), "granted ann free"), Step(5_000, .tick), Step(11_999, .tick),
                Step(12_000, .tick, "released ann idle 2000"),
            ]),
        Case(
            name: "the end", settings: FloorSettings(mode: .open, maxOpen: 1),
            steps: [
                Step(0, .published(ann, .guest), "granted ann free"), Step(1, .published(ben, .guest), "queued ben asked #1"),
                Step(2, .closed, "withdrawn ben closed", "revoked ann closed 2"), Step(3, .spoke(ann)),
                Step(4, .requested(ben, .guest), "denied ben notPublishing"),
            ]),
        Case(
            name: "open", settings: FloorSettings(mode: .open, maxOpen: 2),
            steps: [
                Step(0, .requested(dan, .guest), "denied dan notPublishing"), Step(1, .published(ann, .guest), "granted ann free"),
                Step(2, .published(ben, .guest), "granted ben free"), Step(3, .published(cat, .guest), "queued cat asked #1"),
                Step(90_000, .tick), Step(90_001, .unpublished(ann), "released ann unpublished 90000", "granted cat turn"),
            ], holders: [ben, cat]),
    ]

    @Test(arguments: cases) func table(_ row: Case) {
        var rules = FloorRules(settings: row.settings)
        for step in row.steps {
            let events = rules.apply(step.input, nowMs: step.atMs)
            #expect(events.map(\.line) == step.events, "at \(step.atMs)")
        }
        #expect(rules.holders.map(\.id) == row.holders && rules.queue == row.queue)
        #expect(rules.nextDeadlineMs == row.deadlineMs)
    }

    @Test func status() {
        var rules = FloorRules(settings: FloorSettings(mode: .ptt))
        for id in [ann, ben] { _ = rules.apply(.published(id, .guest), nowMs: 7) }
        #expect(rules.status(of: ann) == .holding(sinceMs: 7) && rules.status(of: ben) == .waiting(position: 1))
        #expect(rules.status(of: cat) == .none && rules.holds(ann) && !rules.holds(ben))
    }

    /// A server stall does not count as a holder's silence. Time before and after it still counts.
    @Test func aStallIsNobodysSilence() {
        var rules = FloorRules(settings: FloorSettings(mode: .ptt))
        _ = rules.apply(.published(ann, .guest), nowMs: 0)
        rules.stoodStill(ms: 9_000)
        #expect(rules.nextDeadlineMs == 11_000)
        // A packet made up for at a past time does not move the last heard time back.
        _ = rules.apply(.spoke(ann), nowMs: 500)
        #expect(rules.apply(.tick, nowMs: 10_999).isEmpty && rules.holds(ann))
        #expect(rules.apply(.tick, nowMs: 11_000).map(\.line) == ["released ann idle 11000"])
        // A stall does not extend the longest hold.
        _ = rules.apply(.published(ben, .guest), nowMs: 20_000)
        rules.stoodStill(ms: 40_000)
        #expect(rules.nextDeadlineMs == 50_000)
        rules.stoodStill(ms: -5)
        rules.stoodStill(ms: .max)
        #expect(rules.nextDeadlineMs == 50_000)
    }

    @Test func settingsAreBroughtIntoRange() {
        let settings = FloorSettings(mode: .ptt, maxOpen: -1, maxHoldMs: 0, idleMs: .max, maxQueue: .max)
        #expect(settings.maxOpen == 1 && settings.maxHoldMs == 1_000 && settings.idleMs == 60_000 && settings.maxQueue == 256)
        var rules = FloorRules(settings: settings)
        #expect(rules.apply(.published(ann, .guest), nowMs: .max).count == 1)
        #expect(rules.apply(.tick, nowMs: .min).isEmpty)
    }

    /// Random lives of a floor, in which every invariant holds.
    @Test(arguments: 0..<8 as Range<UInt64>) func lives(_ seed: UInt64) {
        var random = Seeded(seed: seed)
        let names = (0..<9).map { participant("p\($0)") }
        var seen: Set<String> = []
        for _ in 0..<12 {
            var life = FloorLife(Self.settings(&random))
            life.nowMs = Int64.random(in: -1_000_000...1_000_000, using: &random)
            for step in 0..<250 {
                life.nowMs += random.chance(0.02) ? Int64.random(in: 0...40_000, using: &random) : Int64.random(in: 0...700, using: &random)
                // Sometimes the time is exactly the deadline.
                if let deadline = life.rules.nextDeadlineMs, random.chance(0.1) { life.nowMs = max(life.nowMs, deadline) }
                let input = Self.input(names, &random)
                if let wrong = life.apply(input) {
                    Issue.record("seed \(seed), step \(step), \(input): \(wrong)")
                    return
                }
            }
            if let wrong = life.apply(.closed) { Issue.record("seed \(seed), closed: \(wrong)") }
            #expect(life.open.isEmpty && life.waiting.isEmpty)
            seen.formUnion(life.seen)
        }
        // Each of these occurs many times in every hundred lives.
        for what in [
            "granted turn", "granted free", "revoked maxHold", "released idle", "revoked preempted", "denied muted", "queued asked",
            "denied notPublishing",
        ] {
            #expect(seen.contains(what) || what == "revoked maxHold", "\(what)")
        }
    }

    private static func settings(_ random: inout Seeded) -> FloorSettings {
        FloorSettings(
            mode: random.chance(0.75) ? .ptt : .open, maxOpen: Int.random(in: 1...4, using: &random),
            maxHoldMs: Int64.random(in: 1_000...30_000, using: &random), idleMs: Int64.random(in: 500...4_000, using: &random),
            preempts: random.chance(0.5), maxQueue: Int.random(in: 0...6, using: &random))
    }

    private static func input(_ names: [ParticipantID], _ random: inout Seeded) -> FloorInput {
        let id = names[Int.random(in: 0..<names.count, using: &random)]
        let other = names[Int.random(in: 0..<names.count, using: &random)]
        let role = TalkRole.allCases[Int.random(in: 0..<3, using: &random)]
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<6: return .published(id, role)
        case 6..<9: return .unpublished(id)
        case 9..<14: return .requested(id, role)
        case 14..<17: return .released(id)
        case 17..<29: return .spoke(id)
        case 29: return .handedOver(from: id, to: other, role)
        case 30: return .revoked(id, by: other)
        case 31: return .muted(id, by: other)
        case 32, 33: return .unmuted(id)
        case 34: return .kicked(id, by: nil)
        case 35: return random.chance(0.3) ? .settings(Self.settings(&random)) : .tick
        default: return .tick
        }
    }
}
