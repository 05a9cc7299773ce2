import APITestSupport
import Apps
import EarshotServer
import Foundation
import LinkTransport
import ServerTestSupport
import Store
import Support
import Synchronization
import Talk
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import Links
@testable import RoomRegistry
@testable import Rooms
@testable import Talkback

/// The document's forms of events' data: one for each kind, strict, and as the store writes it.
@Suite struct EventFormTests {
    private static let check = Result { SchemaCheck(document: try JSONParser.parse(OpenAPIDocument.bytes)) }

    @Test(arguments: RoomEvent.Kind.allCases) func everyKindHasAForm(_ kind: RoomEvent.Kind) throws {
        let check = try Self.check.get()
        for name in ["Event", "WebhookEvent"] {
            let schema = try check.resolve("#/components/schemas/\(name)").orThrow()
            let reference = JSONValue.string("#/components/schemas/\(kind.schemaName)\(name)")
            #expect(schema["discriminator"]?["propertyName"] == "kind")
            #expect(schema["discriminator"]?["mapping"]?[kind.rawValue] == reference)
            guard case .array(let forms)? = schema["oneOf"] else {
                Issue.record("\(name) has no forms")
                continue
            }
            #expect(forms.count == RoomEvent.Kind.allCases.count && forms.contains(["$ref": reference]))
            let form = try check.resolve(reference.shown).orThrow()
            #expect(form["properties"]?["kind"]?["enum"] == [.string(kind.rawValue)])
            guard case .array(let required)? = form["required"] else {
                Issue.record("\(name) of \(kind) requires nothing")
                continue
            }
            #expect(required.contains("kind") && required.contains("data"))
        }
    }

    /// The document's example fits its form, and no other that differs: a member less, more or of another type is noticed.
    @Test(arguments: RoomEvent.Kind.allCases) func anExampleFitsOnlyItsForm(_ kind: RoomEvent.Kind) throws {
        let check = try Self.check.get()
        let media = check.document["webhooks"]?["event"]?["post"]?["requestBody"]?["content"]?["application/json"]
        let example = try (media?["examples"]?[kind.rawValue]?["value"]).orThrow()
        let schema = try (media?["schema"]).orThrow()
        #expect(example["kind"] == .string(kind.rawValue))
        #expect(check.problems(example, schema).isEmpty, "\(check.problems(example, schema))")
        guard case .object(let members)? = example["data"], case .object(let form) = kind.form.data.inner else {
            Issue.record("the data is no object")
            return
        }
        func isRefused(_ members: [JSONValue.Member], _ what: String) {
            let problems = check.problems(example.replacing("data", with: .object(members)), schema)
            #expect(!problems.isEmpty, "\(kind) \(what): \(members)")
        }
        #expect(members.map(\.name) == form.map(\.name))
        isRefused(members + [.init(name: "other", value: 1)], "with another member")
        for (index, property) in form.enumerated() {
            var others = members
            others[index] = .init(name: property.name, value: property.schema.type == "array" ? "x" : [])
            isRefused(others, "with \(property.name) of another type")
            guard property.isRequired || property.group != nil else { continue }
            others.remove(at: index)
            isRefused(others, "without \(property.name)")
        }
    }

    /// Random calls, pushes, links, recordings and talk on one store, the same in each run: every event fits its form, and there is one of
    /// each kind.
    @Test func whatTheStoreWritesFits() async throws {
        try await Fixture.withDirectory { directory in
            let time = WalkTime()
            var settings = RoomRegistry.Settings()
            settings.historyMs = 10_000 * 86_400_000
            let registry = try RoomRegistry(.folder(directory.path), settings: settings, clock: RoomClock(now: { time.now }))
            try await registry.start()
            for round in 0..<300 {
                let done = await registry.result { work in
                    var walk = StoreWalk(work, SeededGenerator(seed: UInt64(round) &* 0x9E37_79B9_7F4A_7C15))
                    for _ in 0..<12 { try walk.step() }
                }
                try done.get()
                time.advance(round)
                await registry.runDue()
            }
            var events: [RoomEvent] = []
            while true {
                let page = try await registry.events(after: events.last?.id ?? 0, room: nil, limit: 1_000)
                if page.isEmpty { break }
                events += page
            }
            await registry.stop()
            var told: Set<RoomEvent.Kind> = []
            for event in events {
                let problems = try EventCheck.problems(event)
                // One description of a kind is enough.
                if !problems.isEmpty, told.insert(event.kind).inserted { Issue.record("\(problems) in \(event.data)") }
            }
            let missing = Set(RoomEvent.Kind.allCases).subtracting(events.map(\.kind))
            #expect(missing.isEmpty, "of \(events.count) events")
        }
    }
}

extension Schema {
    /// The schema without its name.
    fileprivate var inner: Schema { if case .named(_, let schema) = self { schema } else { self } }
}

/// A clock that the test sets.
private final class WalkTime: Sendable {
    private let ms = Mutex<Int64>(1_795_255_200_000)
    var now: Int64 { self.ms.withLock { $0 } }

    /// Mostly seconds; now and then beyond a grace, a day's retention.
    func advance(_ round: Int) {
        let seconds: Int64 = round % 40 == 39 ? 90_000 : round % 7 == 6 ? 400 : 5
        self.ms.withLock { $0 += seconds * 1_000 }
    }
}

/// Random operations of one transaction on a store.
private struct StoreWalk {
    private let work: RoomTransaction
    private var random: SeededGenerator
    private static let caller = Actor("token:test")

    init(_ work: RoomTransaction, _ random: SeededGenerator) {
        self.work = work
        self.random = random
    }

    /// Applies one operation; a refused one changes nothing.
    mutating func step() throws {
        do {
            var walk = self
            defer { self.random = walk.random }
            try self.work.undoingFailure { try walk.operate() }
        } catch is RegistryError {
        } catch is FieldError {
        } catch is PushRefusal {
        } catch is RoomRefusal {
        }
    }

    private mutating func any<Value>(_ values: [Value]) -> Value { values[Int.random(in: values.indices, using: &self.random)] }

    private mutating func operate() throws {
        let id = self.any(["a", "b", "c"])
        let user = self.any(["olga", "ann"])
        let until = self.work.now + self.any([10_000, 3_000_000])
        switch Int.random(in: 0..<26, using: &self.random) {
        case 0, 1: try self.create(id)
        case 2..<7: try self.push(to: self.any(["live/\(id)", "live/\(id)", "live/\(id)-2", "live/walk"]))
        case 7..<11: try self.changePush(id)
        case 11:
            let input = self.any([.close, .expire, .resume, .pauseAnnounced(slot: nil), .heartbeat(sender: "olga")] as [RoomInput])
            _ = try self.work.apply(input, to: id, action: "test", if: nil, by: Self.caller)
        case 12:
            let input = self.any([.renew(byMs: nil), .renew(byMs: 1_000), .forbid(untilMs: until, reason: "r")] as [RoomInput])
            _ = try self.work.apply(input, to: id, action: "test", if: nil, by: Self.caller)
        case 13:
            let path = StreamPath(app: "live", name: self.any([id, "\(id)-2", "nobody"]))
            _ = try self.work.forbid(path, until: until, reason: "r", by: Self.caller)
        case 14: _ = try self.work.resume(StreamPath(app: "live", name: self.any([id, "nobody"])), by: Self.caller)
        case 15: _ = try self.work.join(id, user: user, nick: "N")
        case 16 where self.random.next() % 8 == 0:
            let path = StreamPath(app: "live", name: id)
            try self.work.kick(
                SessionKick(sessionID: 7, transport: "rtmp", clientAddress: "192.0.2.1", publishing: [path], playing: []), by: Self.caller)
        case 16: try self.work.leave(id, user: user, as: self.any([.memberLeft, .memberKicked]), by: Self.caller)
        case 17: try self.update(id)
        case 18: if Bool.random(using: &self.random) { try self.work.delete(id, if: nil, by: Self.caller) }
        case 19: try self.talk(in: id)
        case 20: try self.record(id)
        case 21: try self.link(id)
        case 22: try self.lookAround(id)
        case 23: try self.ownerComesAndGoes(id)
        case 24: try self.gather(id)
        default: if Int.random(in: 0..<8, using: &self.random) == 0 { try self.restart() }
        }
    }

    /// Two people in a channel: a place in the queue, and a ticket with its end.
    private mutating func gather(_ id: String) throws {
        var gathering = Gathering(limits: GatheringLimits(members: 2, offlineMs: 1_000))
        let ask = Gathering.Input.ask(from: "ann", to: "olga", kind: "speak", payload: .null, newID: "t1")
        let end = self.any(
            [
                .answer(from: "olga", ticket: "t1", isApproved: true), .answer(from: "olga", ticket: "t1", isApproved: false),
                .leave(id: "ann"),
            ] as [Gathering.Input])
        let inputs: [Gathering.Input] = [
            .connect(id: "olga", name: "Olga", role: Gathering.host, ConnectionID(1)),
            .connect(id: "ann", name: "Ann", role: "", ConnectionID(2)),
            .offer(from: "ann", value: "v"), ask, end,
        ]
        for input in inputs {
            var effects = try gathering.apply(input, nowMs: self.work.now)
            if case .offer = input { effects += Self.ofClassesAndMachines }
            let stored = StoredGathering(
                id: "plain-\(id)", kind: "plain", roomID: RoomID(stored: id), state: gathering.state.text, createdAt: self.work.now)
            try self.work.commit(GatheringChange(stored, effects))
        }
    }

    /// Events of classes and machines, in their forms. The rules that cause them have tests of their own.
    private static let ofClassesAndMachines: [Gathering.Effect] = {
        func data(_ members: (String, JSONValue)...) -> [JSONValue.Member] { members.map { .init(name: $0.0, value: $0.1) } }
        let board = data(("boardId", "b1"), ("name", "白板1"), ("page", 1))
        let turn = data(("player", "ann"), ("uuid", "0f"))
        return [
            .event(.memberRole, data(("userId", "ann"), ("role", "student"))),
            .event(.assistantTransferred, data(("from", "ann"), ("to", "olga"))),
            .event(.deviceChanged, data(("userId", "ann"), ("track", "camera"), ("isOn", false))),
            .event(.displayChanged, data(("display", ""))), .event(.boardCreated, board), .event(.boardDeleted, board),
            .event(.boardTurned, board), .event(.turnOffered, turn), .event(.turnAccepted, turn), .event(.turnDeclined, turn),
            .event(.turnExpired, turn), .event(.gameStarted, turn), .event(.gameDropped, turn + data(("byClock", true))),
            .event(.gameResult, turn + data(("won", true))), .event(.gameEnded, turn + data(("endReason", "result"))),
        ]
    }()

    private mutating func create(_ id: String) throws {
        var new = NewRoom(policy: RoomPolicy())
        new.id = self.any([RoomID(stored: id), nil])
        new.deviceUid = self.any(["device-\(id)", nil])
        new.slots = self.any([1, 2])
        new.owner = self.any(["olga", nil])
        new.title = "A walk"
        // A room without an id would be one more each time.
        if new.id == nil, new.deviceUid == nil { return }
        _ = try self.work.create(new, by: Self.caller)
    }

    private mutating func update(_ id: String) throws {
        var patch = RoomPatch()
        patch.title = self.any(["A", "B", nil])
        patch.owner = self.any([.some("olga"), .some(nil), nil])
        patch.isPublic = self.any([true, false, nil])
        patch.custom = self.any(["{}", #"{"a":1}"#])
        let field = self.any(RoomPolicy.fields)
        patch.policy[field.name] = self.any([field.range.lowerBound, field.get(RoomPolicy())])
        _ = try self.work.update(id, patch, if: nil, by: Self.caller)
    }

    private mutating func ownerComesAndGoes(_ id: String) throws {
        var patch = RoomPatch()
        patch.owner = .some("olga")
        _ = try self.work.update(id, patch, if: nil, by: Self.caller)
        _ = try self.work.join(id, user: "olga", nick: "O")
        try self.work.leave(id, user: "olga", as: .memberLeft, by: Self.caller)
        guard Bool.random(using: &self.random) else { return }
        _ = try self.work.apply(.heartbeat(sender: "olga"), to: id, action: "test", if: nil, by: Self.caller)
    }

    private mutating func push(to path: String) throws {
        let path = try StreamPath(path).orThrow()
        let request = PushRequest(path: path, clientAddress: "192.0.2.1:7", session: 7, parameters: "a=1", mayCreateRoom: true)
        let grant = try self.work.admit(request, mayMakeRoom: { nil })
        var media = MediaSummary()
        if Bool.random(using: &self.random) { (media.width, media.height, media.videoCodec) = (640, 360, "H264") }
        if Bool.random(using: &self.random) { media.audioCodec = "AAC" }
        if Int.random(in: 0..<5, using: &self.random) > 0 { try self.work.mediaArrived(grant.sequence.rawValue, media) }
    }

    private mutating func changePush(_ id: String) throws {
        guard let room = try self.work.store.room(id), let sequence = self.any(room.slots).sequence else { return }
        switch Int.random(in: 0..<6, using: &self.random) {
        case 5:
            let reason = HealthRecord.Reason(
                code: "uplink_stalls", severity: "bad", value: self.any([1_200, nil]), expected: self.any([0, nil]),
                unit: self.any(["ms", nil]), message: "m")
            try self.work.healthChanged(
                sequence, HealthRecord(verdict: self.any(["bad", "good"]), former: "degraded", reasons: self.any([[reason], []])))
        case 0: try self.work.streamWent(sequence, isPause: false)
        case 1: try self.work.streamWent(sequence, isPause: true)
        case 2: try self.work.mediaArrived(sequence, MediaSummary())
        default: try self.work.pushEnded(sequence, self.any(PushEnd.allCases))
        }
    }

    /// The steps of a server that finds its last run's rooms.
    private func restart() throws {
        _ = try self.work.endLeftPushes(after: 0, upTo: .max, limit: 100)
        _ = try self.work.restartRooms(after: 0, limit: 100)
    }

    private mutating func lookAround(_ id: String) throws {
        let path = StreamPath(app: "live", name: id)
        let name = "\(Int.random(in: 1...1_000_000_000, using: &self.random))"
        let snapshot = SnapshotRecord(
            id: name, path: path, roomID: RoomID(stored: id), slot: 1, file: "f", takenAt: self.work.now, bytes: 5, width: 640, height: 360)
        _ = try self.work.snapshotTaken(snapshot, SnapshotBounds(perStream: 3, bytes: 0))
        try self.work.clockLeapt(byMs: self.any([-90_000, 90_000]), holdMs: 60_000, adoptsAt: self.work.now + 60_000)
    }

    // MARK: Recordings

    private mutating func record(_ id: String) throws {
        let name = "\(Int.random(in: 1...1_000_000_000, using: &self.random))"
        let task = RecordingTask(
            id: "t\(name)", path: StreamPath(app: "live", name: id), roomID: self.any([RoomID(stored: id), nil]), slot: self.any([0, 1]))
        let end = self.any(RecordingEnd.allCases)
        guard Int.random(in: 0..<4, using: &self.random) > 0 else { return try self.work.recordingTaskEnded(task, end, wasStarted: false) }
        let media = self.any([MediaSummary(width: 640, height: 360, videoCodec: "avc1"), MediaSummary(audioCodec: "mp4a.40.2")])
        let recording = Recording(id: "r\(name)", task: task, part: 1, file: "f", startedAt: self.work.now, media: media)
        try self.work.store.insert(recording)
        try self.work.recordingStarted(recording.id)
        let outcome = RecordingOutcome(end: end, endedAt: self.work.now, durationMs: 10, bytes: 10, droppedFrames: 0)
        try self.work.recordingEnded(recording.id, outcome)
        switch Int.random(in: 0..<3, using: &self.random) {
        case 0: try self.work.recordingLost(recording.id, self.any([.fileMissing, .empty]), bytes: 0)
        default: try self.work.recordingFinished(recording.id, bytes: 10, durationMs: self.any([10, nil]), isSeekable: true)
        }
        try self.work.recordingTaskEnded(task, end, wasStarted: true)
    }

    // MARK: Links

    private mutating func link(_ id: String) throws {
        var progress = LinkProgress()
        for _ in 0..<12 {
            let error = self.any([LinkError.closed(while: "reading"), .cancelled, nil])
            let news: LinkProgress.News? =
                switch Int.random(in: 0..<10, using: &self.random) {
                case 0: progress.held("forbidden", "the stream is forbidden")
                case 1: progress.rests("no_viewer")
                case 2: progress.changed(.stopped, error: error)
                case 3: progress.changed(.failed(reason: "given up", permanent: true), error: error)
                case 4: progress.changed(.waiting(untilMs: 0), error: error)
                case 5, 6: progress.changed(.running, error: error)
                default: progress.changed(.connecting, error: error)
                }
            guard let news else { continue }
            try self.work.linkChanged(
                LinkChange(
                    linkID: 1, direction: self.any(Link.Direction.allCases), path: StreamPath(app: "live", name: id),
                    target: "rtmp://192.0.2.1/live", kind: news.kind, reason: news.reason, error: news.words))
        }
    }

    // MARK: Talk

    private mutating func talk(in id: String) throws {
        guard try self.work.store.room(id) != nil else { return }
        let people = try ["p1", "p2", "p3", "p4"].map { try ParticipantID($0) }
        var floor = FloorRules(settings: self.floorSettings())
        var nowMs: Int64 = 0
        for _ in 0..<40 {
            nowMs += self.any([0, 100, 5_000])
            let (one, other) = (self.any(people), self.any(people))
            let input: FloorInput =
                switch Int.random(in: 0..<16, using: &self.random) {
                case 0..<3: .published(one, self.any(TalkRole.allCases))
                case 3..<6: .requested(one, self.any(TalkRole.allCases))
                case 6: .unpublished(one)
                case 7: .released(one)
                case 8: .spoke(one)
                case 9, 10: .handedOver(from: one, to: other, self.any(TalkRole.allCases))
                case 11: .revoked(one, by: self.any([other, nil]))
                case 12: self.any([.muted(one, by: nil), .unmuted(one), .unmuted(other)] as [FloorInput])
                case 13: .kicked(one, by: nil)
                case 14: self.any([.settings(self.floorSettings()), .refused(one, .banned, by: nil)] as [FloorInput])
                default: self.any([.tick, .tick, .tick, .closed] as [FloorInput])
                }
            let (mode, actor) = (floor.settings.mode.rawValue, self.any([Self.caller, nil]))
            let events = floor.apply(input, nowMs: nowMs)
            try self.work.floorChanged(RoomID(stored: id), events.compactMap { FloorRecord($0, mode: mode, actor: actor) })
        }
    }

    private mutating func floorSettings() -> FloorSettings {
        FloorSettings(
            mode: self.any(FloorMode.allCases), maxOpen: self.any([1, 2]), maxHoldMs: 4_000, idleMs: self.any([100, 60_000]),
            preempts: self.any([true, false]), maxQueue: self.any([0, 1, 32]))
    }
}
