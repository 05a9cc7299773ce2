import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// The rules of a gathering: a table of inputs and effects, and random lives that keep to what must always hold.
@Suite struct GatheringTests {
    private static let limits: GatheringLimits = {
        var limits = GatheringLimits(members: 4, offlineMs: 300_000)
        limits.queue = 2
        limits.tickets = 3
        limits.valueBytes = 8
        return limits
    }()

    private func room(_ people: String...) throws -> Gathering {
        var room = Gathering(limits: Self.limits)
        for (index, id) in people.enumerated() {
            _ = try room.apply(
                .connect(id: id, name: id.uppercased(), role: id == "h" ? Gathering.host : "", ConnectionID(UInt64(index + 1))), nowMs: 0)
        }
        return room
    }

    /// Applies an input; the effects in short, or the refusal's code.
    private func act(_ room: inout Gathering, _ input: Gathering.Input, at nowMs: Int64 = 1) -> [String] {
        let before = room
        do throws(GatheringRefusal) {
            return try room.apply(input, nowMs: nowMs).map(Self.short)
        } catch {
            #expect(room == before, "a refusal changes nothing")
            return [error.code]
        }
    }

    private static func short(_ effect: Gathering.Effect) -> String {
        switch effect {
        case .send(let signal, let to): "\(self.short(signal))>\(to.map { "\($0.rawValue)" }.joined(separator: ","))"
        case .close(let connection, let why): "close \(connection.rawValue) \(why)"
        case .joined(let member): "joined \(member.id)"
        case .left(let member, let why): "left \(member.id) \(why)"
        case .queueChanged(let change, let entry): "queue \(change.rawValue) \(entry.key)"
        case .ticketChanged(let change, let ticket): "ticket \(change) \(ticket.id)"
        case .event(let kind, _): "event \(kind.rawValue)"
        case .mute(let id, let isMuted): "mute \(id) \(isMuted)"
        case .ended(let reason): "ended \(reason)"
        }
    }

    private static func short(_ signal: Gathering.Signal) -> String {
        switch signal {
        case .hello(let you, let others, let queue, let tickets):
            "hello \(you.id) \(others.map(\.id)) \(queue.map(\.key)) \(tickets.map(\.id))"
        case .arrived(let member): "arrived \(member.id)"
        case .away(let member): "away \(member.id)"
        case .back(let member): "back \(member.id)"
        case .departed(let member, let why): "departed \(member.id) \(why)"
        case .said(let from, let object, let content, _): "said \(from.id) \(object) \(content.text)"
        case .notified(let from, let object, let content, _): "notified \(from) \(object) \(content.text)"
        case .commanded(let from, let content): "command \(from) \(content.text)"
        case .turn(let phase, let player, _, _): "turn \(phase) \(player ?? "")"
        case .directed(let from, let name, _): "\(name) \(from.id)"
        case .queue(let change, let entry): "\(change.rawValue) \(entry.key)=\(entry.value)"
        case .ticket(let change, let ticket): "\(change) \(ticket.id)"
        case .closed(let reason): "closed \(reason)"
        }
    }

    @Test func comingAndGoing() throws {
        var room = try self.room("a", "b")
        #expect(
            self.act(&room, .connect(id: "c", name: "C", role: "", ConnectionID(3))) == [
                "joined c", "arrived c>1,2", #"hello c ["a", "b"] [] []>3"#,
            ])
        // Another login of the same person replaces the first, without a notice to anybody.
        #expect(
            self.act(&room, .connect(id: "b", name: "B", role: "", ConnectionID(9))) == [
                "close 2 replaced", #"hello b ["a", "c"] [] []>9"#,
            ])
        #expect(self.act(&room, .disconnect(ConnectionID(2))) == [])
        #expect(self.act(&room, .disconnect(ConnectionID(9)), at: 100) == ["away b>1,3"])
        #expect(room.nextDeadlineMs == 300_100)
        #expect(
            self.act(&room, .connect(id: "b", name: "B", role: "", ConnectionID(10))) == ["back b>1,3", #"hello b ["a", "c"] [] []>10"#])
        #expect(self.act(&room, .disconnect(ConnectionID(10)), at: 200) == ["away b>1,3"])
        #expect(self.act(&room, .tick, at: 300_199) == [])
        #expect(self.act(&room, .tick, at: 300_200) == ["departed b offline>1,3", "left b offline"])
        #expect(self.act(&room, .leave(id: "b")) == ["not_member"])
        #expect(self.act(&room, .kick(id: "c")) == ["departed c kicked>1", "close 3 kicked", "left c kicked"])
        #expect(
            self.act(&room, .end(reason: "over")) == ["closed over>1", "close 1 ended(reason: \"over\")", "left a ended", "ended over"])
        #expect(self.act(&room, .say(from: "a", to: nil, object: "x", content: 1)) == ["ended"])
        #expect(self.act(&room, .disconnect(ConnectionID(1))) == [] && room.isIdle)
    }

    @Test func aFullRoom() throws {
        var room = try self.room("a", "b", "c", "d")
        #expect(self.act(&room, .connect(id: "e", name: "E", role: "", ConnectionID(5))) == ["full"])
        #expect(self.act(&room, .connect(id: "d", name: "D", role: "", ConnectionID(5))).first == "close 4 replaced")
    }

    @Test func words() throws {
        var room = try self.room("a", "b", "c")
        #expect(self.act(&room, .say(from: "a", to: nil, object: "chat", content: "hi")) == [#"said a chat "hi">2,3"#])
        #expect(self.act(&room, .say(from: "a", to: "c", object: "chat", content: "hi")) == [#"notified a chat "hi">3"#])
        #expect(self.act(&room, .command(from: "b", to: nil, content: 5)) == ["command b 5>1,3"])
        #expect(self.act(&room, .direct(from: "b", to: "a", name: "offer", data: [])) == ["offer b>1"])
        #expect(self.act(&room, .say(from: "x", to: nil, object: "chat", content: "hi")) == ["not_member"])
        #expect(self.act(&room, .say(from: "a", to: "x", object: "chat", content: "hi")) == ["no_such_member"])
        // Nothing is kept for members that are away.
        _ = self.act(&room, .disconnect(ConnectionID(3)))
        #expect(self.act(&room, .say(from: "a", to: "c", object: "chat", content: "hi")) == [#"notified a chat "hi">"#])
    }

    @Test func theQueue() throws {
        var room = try self.room("h", "a", "b", "c")
        #expect(self.act(&room, .offer(from: "a", value: "1"), at: 5) == ["queue OFFER a", "OFFER a=1>1,2,3,4"])
        #expect(self.act(&room, .offer(from: "b", value: "2"), at: 6) == ["queue OFFER b", "OFFER b=2>1,2,3,4"])
        #expect(self.act(&room, .offer(from: "c", value: "3")) == ["queue_full"])
        #expect(self.act(&room, .offer(from: "a", value: "9"), at: 7) == ["queue OFFER a", "OFFER a=9>1,2,3,4"])
        #expect(room.queue.map(\.key) == ["a", "b"] && room.queue[0].atMs == 5, "a new value keeps the place")
        #expect(self.act(&room, .offer(from: "a", value: "123456789")) == ["invalid"])
        #expect(
            self.act(&room, .poll(from: "b", key: "a")) == ["not_yours"] && self.act(&room, .poll(from: "c", key: nil)) == ["not_queued"])
        #expect(self.act(&room, .pause(true)) == [] && self.act(&room, .offer(from: "c", value: "3")) == ["queue_paused"])
        #expect(self.act(&room, .offer(from: "b", value: "4")) == ["queue OFFER b", "OFFER b=4>1,2,3,4"], "who has a place keeps it")
        #expect(self.act(&room, .poll(from: "h", key: nil)) == ["queue POLL a", "POLL a=9>1,2,3,4"])
        #expect(self.act(&room, .poll(from: "b", key: nil)) == ["queue POLL b", "POLL b=4>1,2,3,4"])
        _ = self.act(&room, .pause(false))
        _ = self.act(&room, .offer(from: "a", value: "1"))
        #expect(
            self.act(&room, .remove(key: "a")) == ["queue DROP a", "DROP a=1>1,2,3,4"]
                && self.act(&room, .remove(key: "a")) == ["not_queued"])
        _ = self.act(&room, .offer(from: "a", value: "1"))
        #expect(self.act(&room, .leave(id: "a")) == ["queue DROP a", "DROP a=1>1,2,3,4", "departed a left>1,3,4", "left a left"])
    }

    /// A ticket carries 1,024 bytes of JSON.
    @Test(arguments: [(1_024, ["ticket opened t", "opened t>1"]), (1_025, ["invalid"])])
    func payloads(_ bytes: Int, _ effects: [String]) throws {
        var room = try self.room("h", "a")
        let payload = JSONValue.string(String(repeating: "x", count: bytes - 2))
        #expect(self.act(&room, .ask(from: "a", to: "h", kind: "speak", payload: payload, newID: "t")) == effects)
    }

    @Test func tickets() throws {
        var room = try self.room("h", "a", "b")
        func ask(_ from: String, _ to: String, _ id: String) -> Gathering.Input {
            .ask(from: from, to: to, kind: "speak", payload: 1, newID: id)
        }
        #expect(self.act(&room, ask("a", "h", "t1"), at: 0) == ["ticket opened t1", "opened t1>1"])
        // Asked again, the same one is sent again.
        #expect(self.act(&room, ask("a", "h", "t2"), at: 10) == ["opened t1>1"])
        #expect(self.act(&room, .answer(from: "b", ticket: "t1", isApproved: true), at: 10) == ["no_such_ticket"], "it is for another")
        #expect(self.act(&room, .answer(from: "h", ticket: "t1", isApproved: true), at: 10) == ["ticket approved t1", "approved t1>2"])
        #expect(self.act(&room, .answer(from: "h", ticket: "t1", isApproved: true), at: 11) == ["no_such_ticket"], "once")
        _ = self.act(&room, ask("b", "h", "t3"), at: 100)
        #expect(room.nextDeadlineMs == 30_100)
        #expect(self.act(&room, .answer(from: "h", ticket: "t3", isApproved: false), at: 30_100) == ["no_such_ticket"], "too late")
        #expect(self.act(&room, .tick, at: 30_100) == ["ticket expired t3", "expired t3>3,1"])
        for (index, to) in ["a", "b", "h"].enumerated() {
            _ = self.act(&room, .ask(from: "h", to: to, kind: "k", payload: 0, newID: "n\(index)"))
        }
        #expect(self.act(&room, ask("a", "b", "t9")) == ["too_many_tickets"] && self.act(&room, ask("a", "x", "t9")) == ["no_such_member"])
        #expect(self.act(&room, .leave(id: "a")).contains("ticket expired n0"))
    }

    /// After a restart everybody is away, and everything that members were notified of is still there.
    @Test func aRestart() throws {
        var room = try self.room("h", "a")
        _ = self.act(&room, .offer(from: "a", value: "1"))
        room.restart(nowMs: 1_000)
        #expect(room.members.allSatisfy { $0.connection == nil && $0.awaySinceMs == 1_000 } && room.queue.map(\.key) == ["a"])
        #expect(
            self.act(&room, .connect(id: "a", name: "A", role: "", ConnectionID(7)), at: 2_000) == [
                "back a>", #"hello a ["h"] ["a"] []>7"#,
            ])
    }

    /// After a restart everybody has the whole time to come back, also a member that had come back from being away, which is not stored.
    @Test func whatWasAwayBeforeARestart() throws {
        var room = try self.room("h", "a", "b")
        _ = self.act(&room, .offer(from: "a", value: "1"))
        _ = self.act(&room, .disconnect(ConnectionID(2)), at: 500)
        // Another member's change stores which members are away.
        _ = self.act(&room, .offer(from: "b", value: "2"), at: 600)
        let stored = room.state.text
        #expect(self.act(&room, .connect(id: "a", name: "A", role: "", ConnectionID(7)), at: 700).first == "back a>1,3")
        let late: Int64 = 700 + 10 * Self.limits.offlineMs
        var read = try Gathering(state: stored, limits: Self.limits, nowMs: late)
        #expect(read.member("a")?.awaySinceMs == 500 && read.nextDeadlineMs == late + Self.limits.offlineMs)
        #expect(self.act(&read, .tick, at: late + Self.limits.offlineMs - 1).isEmpty && read.queue.map(\.key) == ["a", "b"])
        #expect(!self.act(&read, .tick, at: late + Self.limits.offlineMs).isEmpty && read.members.isEmpty && read.queue.isEmpty)
    }

    @Test func names() {
        for name in ["a", "张三", "👩\u{200D}👧", String(repeating: "x", count: 64)] { #expect(GatheringLimits.isName(name), "\(name)") }
        for name in ["", " ", "\u{3000}\u{200D}", "a\u{7}", "a\u{200B}", "a\u{202E}b", String(repeating: "x", count: 65)] {
            #expect(!GatheringLimits.isName(name))
        }
    }

    /// For any input, ids are unique, limits hold, a ticket is used once, and everybody named in a message is present.
    @Test(arguments: 1...40 as ClosedRange<UInt64>) func randomLives(_ seed: UInt64) {
        var dice = SplitMix(seed)
        var room = Gathering(limits: Self.limits)
        var (nowMs, next) = (Int64(1_000), UInt64(1))
        var used: Set<String> = []
        let people = ["h", "a", "b", "c", "d", "e"]
        for _ in 0..<400 {
            nowMs += Int64.random(in: 0...20_000, using: &dice)
            let (one, other) = (people.randomElement(using: &dice) ?? "a", people.randomElement(using: &dice) ?? "b")
            let input: Gathering.Input
            switch Int.random(in: 0..<18, using: &dice) {
            case 0, 1:
                next += 1
                input = .connect(id: one, name: one, role: one == "h" ? Gathering.host : "", ConnectionID(next))
            case 2: input = .disconnect(room.members.randomElement(using: &dice)?.connection ?? ConnectionID(0))
            case 3: input = .leave(id: one)
            case 4: input = .offer(from: one, value: "v")
            case 5: input = .poll(from: one, key: Bool.random(using: &dice) ? other : nil)
            case 6, 7:
                next += 1
                input = .ask(from: one, to: other, kind: "k", payload: 0, newID: "t\(next)")
            case 8: input = .answer(from: one, ticket: room.tickets.randomElement(using: &dice)?.id ?? "t", isApproved: true)
            case 9: input = .tick
            case 10: input = .kick(id: one)
            case 11: input = .remove(key: one)
            case 12: input = .pause(Bool.random(using: &dice))
            case 13: input = .enter(id: one, name: one, role: one == "h" ? Gathering.host : "")
            case 14: input = .command(from: one, to: other, content: 0)
            case 15: input = .direct(from: one, to: other, name: "n", data: [])
            case 16:
                // The server is started anew.
                var away = room
                away.restart(nowMs: nowMs)
                room = (try? Gathering(state: room.state.text, limits: Self.limits, nowMs: nowMs)) ?? room
                #expect(room == away)
                continue
            default: input = .say(from: one, to: Bool.random(using: &dice) ? other : nil, object: "o", content: 0)
            }
            let before = room
            guard let effects = try? room.apply(input, nowMs: nowMs) else {
                #expect(room == before)
                continue
            }
            // Places keep their order.
            let kept = before.queue.map(\.key).filter { key in room.queue.contains { $0.key == key } }
            #expect(room.queue.prefix(kept.count).map(\.key) == kept)
            for case .ticketChanged(let change, let ticket) in effects where change != .opened {
                #expect(used.insert(ticket.id).inserted, "\(ticket.id) ends twice")
            }
            #expect(Set(room.members.map(\.id)).count == room.members.count && room.members.count <= Self.limits.members)
            #expect(room.members.map(\.order) == room.members.map(\.order).sorted())
            #expect(Set(room.members.compactMap(\.connection)).count == room.members.compactMap(\.connection).count)
            #expect(Set(room.queue.map(\.key)).isSubset(of: Set(room.members.map(\.id))) && room.queue.count <= Self.limits.queue)
            #expect(
                room.tickets.allSatisfy { room.member($0.from) != nil && room.member($0.to) != nil }
                    && room.tickets.count <= Self.limits.tickets)
            #expect(room.members.allSatisfy { ($0.connection == nil) == ($0.awaySinceMs != nil) })
            let there = Set(before.members.compactMap(\.connection) + room.members.compactMap(\.connection))
            for case .send(_, let receivers) in effects { #expect(Set(receivers).isSubset(of: there)) }
        }
    }
}

/// A generator with a seed (SplitMix64).
private struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { self.state = seed }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var value = self.state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
