import Talk
import Testing

private let ann = participant("ann"), ben = participant("ben")

@Suite struct TalkMembersTests {
    /// At most 64 talkers and 100,000 listeners, and no negative number of either.
    @Test func limitsAreClamped() {
        for (given, talkers, listeners) in [(-1, 0, 0), (64, 64, 64), (65, 64, 65), (100_000, 64, 100_000), (100_001, 64, 100_000)] {
            let limits = TalkLimits(talkers: given, listeners: given)
            #expect(limits.talkers == talkers && limits.listeners == listeners, "\(given)")
        }
    }

    @Test func thirtyTalkersAtOnce() throws {
        var members = TalkMembers()
        var refused: [TalkRefusal] = []
        for index in 0..<30 {
            do throws(TalkRefusal) {
                _ = try members.admitTalker(participant("t\(index)"), identity: "\(index)", role: .guest, nowMs: 0)
            } catch {
                refused.append(error)
            }
        }
        #expect(members.talkers.map(\.id) == (0..<8).map { participant("t\($0)") })
        #expect(refused == Array(repeating: .talkersFull(max: 8), count: 22) && "\(refused[0])" == "all 8 talker places are taken")
        // One talker leaves and another joins.
        let left1 = members.left(session: members.talkers[3].session)
        #expect(left1)
        #expect(try members.admitTalker(ann, identity: "a", role: .host, nowMs: 1).replaces == nil)
        #expect(throws: TalkRefusal.talkersFull(max: 8)) { try members.admitTalker(ben, identity: "b", role: .host, nowMs: 1) }
        // A higher limit admits one more.
        members.limits = TalkLimits(talkers: 9)
        #expect(try members.admitTalker(ben, identity: "b", role: .host, nowMs: 1).replaces == nil)
    }

    @Test func listeners() throws {
        var members = TalkMembers(limits: TalkLimits(talkers: 1, listeners: 2))
        let one = try members.admitListener(.mix, nowMs: 0), two = try members.admitListener(.mixWithout(ann), nowMs: 0)
        #expect(throws: TalkRefusal.listenersFull(max: 2)) { try members.admitListener(.voice(ann), nowMs: 0) }
        #expect(members.listenerCount == 2 && members.listeners(of: .mix) == [one] && members.sessions(of: ann) == [two])
        let left2 = members.left(session: one)
        #expect(left2)
        let left3 = members.left(session: one)
        #expect(!left3 && members.listenerCount == 1)
    }

    /// Names without settings are evicted before a name with any setting.
    @Test(arguments: 0..<4) func whatIsSetOutlivesNamesThatCameAndWent(_ which: Int) throws {
        var members = TalkMembers(limits: TalkLimits(talkers: 1))
        switch which {
        case 0: members.setMuted(ann, true)
        case 1: members.setGain(ann, 0.5)
        case 2: members.setRole(ann, .host)
        default: members.forbid(ann, untilMs: 1_000_000)
        }
        for index in 0..<600 {
            let talker = try members.admitTalker(participant("t\(index)"), identity: "", role: .guest, nowMs: 0)
            members.began(session: talker.session, role: .guest, nowMs: 0)
            let isGone = members.left(session: talker.session)
            #expect(isGone)
        }
        switch which {
        case 0: #expect(members.isMuted(ann) && members.gain(ann) == 1)
        case 1: #expect(members.gain(ann) == 0.5 && !members.isMuted(ann))
        case 2: #expect(members.role(ann) == .host)
        default: #expect(members.forbiddenUntil(ann, nowMs: 0) == 1_000_000)
        }
    }

    /// The thirty-first start within thirty seconds is refused.
    @Test func beginningsAreCounted() throws {
        var members = TalkMembers()
        for nowMs in 0..<30 as Range<Int64> {
            let talker = try members.admitTalker(ann, identity: "", role: .guest, nowMs: nowMs)
            members.began(session: talker.session, role: .guest, nowMs: nowMs)
            let isGone = members.left(session: talker.session)
            #expect(isGone)
        }
        #expect(throws: TalkRefusal.flapping(ann)) { try members.admitTalker(ann, identity: "", role: .guest, nowMs: 29_999) }
        #expect(try members.admitTalker(ann, identity: "", role: .guest, nowMs: 30_000).replaces == nil)
    }

    @Test func takeover() throws {
        var members = TalkMembers(limits: TalkLimits(talkers: 1))
        let first = try members.admitTalker(ann, identity: "phone", role: .guest, nowMs: 100)
        members.began(session: first.session, role: .guest, nowMs: 100)
        #expect(throws: TalkRefusal.nameTaken(ann)) { try members.admitTalker(ann, identity: "thief", role: .guest, nowMs: 200) }
        let second = try members.admitTalker(ann, identity: "phone", role: .coHost, nowMs: 300)
        #expect(second.replaces == first.session && second.session != first.session)
        #expect(members.talkers[0].role == .guest && members.talkers[0].session == first.session)
        members.began(session: second.session, role: .coHost, nowMs: 300)
        // The late end of the first session has no effect.
        let left4 = members.left(session: first.session)
        #expect(!left4 && members.talkers.count == 1)
        #expect(members.talkers[0].sinceMs == 100 && members.talkers[0].role == .coHost && members.talkers[0].session == second.session)
        var sessions = [second.session]
        for nowMs in [400, 500, 30_300] as [Int64] {
            if nowMs == 30_300 {
                #expect(throws: TalkRefusal.flapping(ann)) { try members.admitTalker(ann, identity: "phone", role: .guest, nowMs: 30_299) }
            }
            let next = try members.admitTalker(ann, identity: "phone", role: .guest, nowMs: nowMs)
            members.began(session: next.session, role: .guest, nowMs: nowMs)
            let leftEarly = members.left(session: sessions[sessions.count - 1])
            #expect(!leftEarly)
            sessions.append(next.session)
        }
        let left5 = members.left(session: sessions[sessions.count - 1])
        #expect(left5 && members.talkers.isEmpty)
    }

    /// A talker admitted here but refused elsewhere leaves no trace. It replaces nobody, changes no role and does not count as a start,
    /// whichever of two sessions ends first.
    @Test func takeoversThatNeverBegin() throws {
        var members = TalkMembers()
        let first = try members.admitTalker(ann, identity: "phone", role: .guest, nowMs: 0)
        members.began(session: first.session, role: .guest, nowMs: 0)
        for nowMs in 1...40 as ClosedRange<Int64> {
            let other = try members.admitTalker(ann, identity: "phone", role: .host, nowMs: nowMs)
            #expect(members.role(ann) == .guest && members.talkers[0].session == first.session)
            let left = members.left(session: other.session)
            #expect(!left && members.isThere(ann))
        }
        let second = try members.admitTalker(ann, identity: "phone", role: .host, nowMs: 41)
        // The session on air ends before the next one begins.
        let leftFirst = members.left(session: first.session)
        #expect(!leftFirst && members.isThere(ann))
        let third = try members.admitTalker(ann, identity: "phone", role: .coHost, nowMs: 42)
        members.began(session: second.session, role: .host, nowMs: 43)
        #expect(members.role(ann) == .host && members.sessions(of: ann) == [second.session, third.session])
        let leftThird = members.left(session: third.session), leftSecond = members.left(session: second.session)
        #expect(!leftThird && leftSecond && !members.isThere(ann))
    }

    @Test func whatIsSetStays() throws {
        var members = TalkMembers()
        members.setMuted(ann, true)
        members.setGain(ann, 2)
        members.setRole(ann, .host)
        #expect(members.role(ben) == nil && members.gain(ben) == 1 && !members.isMuted(ben))
        for _ in 0..<2 {
            let session = try members.admitTalker(ann, identity: "a", role: .guest, nowMs: 0).session
            let member = members.talkers[0]
            #expect(member.isMuted && member.gain == 2 && member.role == .host && members.role(ann) == .host)
            let left6 = members.left(session: session)
            #expect(left6)
        }
        for (gain, kept) in [(100, 8), (-1, 0), (.nan, 0), (.infinity, 0)] as [(Float, Float)] {
            members.setGain(ann, gain)
            #expect(members.gain(ann) == kept)
        }
    }

    @Test func forbidden() throws {
        var members = TalkMembers()
        members.forbid(ann, untilMs: 1_000)
        #expect(throws: TalkRefusal.forbidden(ann, untilMs: 1_000)) {
            try members.admitTalker(ann, identity: "a", role: .guest, nowMs: 999)
        }
        #expect(throws: TalkRefusal.forbidden(ann, untilMs: 1_000)) { try members.admitListener(.mixWithout(ann), nowMs: 999) }
        #expect(members.forbiddenUntil(ann, nowMs: 999) == 1_000 && members.forbiddenUntil(ann, nowMs: 1_000) == nil)
        _ = try members.admitListener(.mix, nowMs: 0)
        _ = try members.admitTalker(ann, identity: "a", role: .guest, nowMs: 1_000)
        members.forbid(ben, untilMs: .max)
        members.forbid(ben, untilMs: nil)
        _ = try members.admitTalker(ben, identity: "b", role: .guest, nowMs: 0)
    }

    /// Settings of absent names are bounded; those of present talkers are kept.
    @Test func memoryIsBounded() throws {
        var members = TalkMembers()
        _ = try members.admitTalker(ann, identity: "a", role: .guest, nowMs: 0)
        members.setMuted(ann, true)
        for index in 0..<2_000 { members.setMuted(participant("p\(index)"), true) }
        #expect(members.isMuted(ann) && members.isMuted(participant("p1999")) && !members.isMuted(participant("p0")))
        #expect((0..<2_000).filter { members.isMuted(participant("p\($0)")) }.count == 511)
    }
}
