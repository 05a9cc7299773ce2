import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// Effects of a class, their receivers and their order: each input of SealClass's table with all that follows.
@Suite struct ClassroomTests {
    private typealias Lab = ClassroomLab

    // MARK: - Coming and going

    @Test func joining() {
        var lab = Lab()
        let shown = "display://type=0?userId=a?uri="
        #expect(
            lab.act(.join(id: "a", name: "A", isAudience: false, disableCamera: false)) == ["joined a assistant", Lab.displayed(shown)])
        #expect(lab.act(.connect(id: "a", name: "X", role: "host", ConnectionID(1))) == ["hello a [] [] >1"])
        #expect(lab.room.gathering.member("a")?.name == "A" && lab.room.role(of: "a") == .assistant, "a login changes neither")
        #expect(
            lab.act(.join(id: "t", name: "T", isAudience: false, disableCamera: true), at: 5) == [
                "joined t teacher", Lab.people(1, "t", 2, at: 5, camera: false) + " >1", Lab.displayed(Lab.teacher("t")),
                Lab.display("t", Lab.teacher("t")) + " >1",
            ])
        #expect(
            lab.act(.join(id: "s", name: "S", isAudience: false, disableCamera: false)) == [
                "joined s student", Lab.people(1, "s", 3) + " >1",
            ])
        #expect(
            lab.act(.join(id: "v", name: "V", isAudience: true, disableCamera: false)) == [
                "joined v audience", Lab.people(1, "v", 4) + " >1",
            ])
        // Again, with the same token: the same role; the camera is as it is said now.
        _ = lab.act(.connect(id: "t", name: "", role: "", ConnectionID(2)))
        #expect(
            lab.act(.join(id: "t", name: "T", isAudience: true, disableCamera: false)) == [
                #"event device.changed {"userId":"t","track":"camera","isOn":true}"#, Lab.people(1, "t", 2) + " >1",
                Lab.display("t", Lab.teacher("t")) + " >1",
            ])
        #expect(lab.act(.join(id: "a", name: "A", isAudience: false, disableCamera: false)) == [Lab.people(1, "a", 1) + " >2"])
    }

    /// A class holds a place for a millisecond at least: a connection that is lost is no leaving.
    @Test(arguments: [(0, 1), (1, 1), (2, 2)] as [(Int64, Int64)]) func aPlaceIsHeldForAMillisecond(_ offlineMs: Int64, _ heldMs: Int64) {
        var limits = ClassroomLimits()
        limits.offlineMs = offlineMs
        var lab = Lab(limits: limits)
        for id in ["a", "s"] { lab.enter(id) }
        _ = lab.act(.disconnect(ConnectionID(2)), at: 10)
        for nowMs in 10...(10 + heldMs) {
            _ = lab.act(.tick, at: nowMs)
            #expect((lab.room.gathering.member("s") != nil) == (nowMs < 10 + heldMs), "\(nowMs)")
        }
    }

    @Test func theNextOneIsTheAssistant() {
        var lab = Lab.full()
        _ = lab.act(.leave(by: "a"))
        #expect(lab.act(.join(id: "w", name: "W", isAudience: true, disableCamera: false)).first == "joined w audience")
        #expect(lab.act(.join(id: "b", name: "B", isAudience: false, disableCamera: false)).first == "joined b assistant")
        #expect(lab.act(.join(id: "c", name: "C", isAudience: false, disableCamera: false)).first == "joined c student")
    }

    @Test func leaving() {
        var lab = Lab.full()
        #expect(
            lab.act(.leave(by: "s")) == ["left s left", "close 3 ended(reason: \"left\")", Lab.people(2, "s", 3) + " >1,2,4"])
        #expect(
            lab.act(.leave(by: "t")) == [
                Lab.displayed(""), Lab.display("t", "") + " >1,4", "left t left", "close 2 ended(reason: \"left\")",
                Lab.people(2, "t", 2) + " >1,4",
            ])
        _ = lab.act(.speechApply(by: "v", newID: "k"), at: 2)
        #expect(
            lab.act(.leave(by: "v")) == [
                "ticket expired k speech v a", #"SC:TEMsg a {"ticket":"k","fromUserId":"v","toUserId":"a"} >4,1"#, "left v left",
                "close 4 ended(reason: \"left\")", Lab.people(2, "v", 4) + " >1",
            ])
        // The last one ends it.
        #expect(
            lab.act(Gathering.Input.leave(id: "a")) == [
                "left a left", "close 1 ended(reason: \"left\")", "closed empty >", "ended empty",
            ])
        #expect(lab.room.isIdle && lab.room.nextDeadlineMs == nil && lab.act(.leave(by: "a")) == ["20"])
        #expect(lab.act(.disconnect(ConnectionID(1))) == [] && lab.act(.tick, at: 1 << 50) == [])
    }

    @Test func kicking() {
        var lab = Lab.full()
        #expect(
            lab.act(.kick(by: "a", userID: "t")) == [
                Lab.people(3, "t", 2, from: "a") + " >1,2,3,4", Lab.displayed(""), Lab.display("a", "") + " >1,2,3,4",
                "close 2 kicked", "left t kicked",
            ])
        #expect(
            lab.act(Gathering.Input.kick(id: "v"), at: 9) == [
                Lab.people(3, "v", 4, from: "server", at: 9) + " >1,3,4", "close 4 kicked", "left v kicked",
            ])
        #expect(lab.act(Gathering.Input.kick(id: "v")) == ["no_such_member"])
        _ = lab.act(Gathering.Input.kick(id: "s"))
        #expect(lab.act(Gathering.Input.kick(id: "a")).suffix(2) == ["closed empty >", "ended empty"])
    }

    @Test func away() {
        var lab = Lab.full()
        #expect(lab.act(.disconnect(ConnectionID(2)), at: 100) == [] && lab.room.nextDeadlineMs == 300_100)
        #expect(lab.act(.connect(id: "t", name: "", role: "", ConnectionID(9)), at: 200) == [#"hello t ["a", "s", "v"] [] >9"#])
        #expect(lab.act(.disconnect(ConnectionID(9)), at: 300) == [] && lab.act(.tick, at: 300_299) == [])
        #expect(
            lab.act(.tick, at: 300_300) == [
                Lab.displayed(""), Lab.display("t", "") + " >1,3,4", "left t offline", Lab.people(2, "t", 2, at: 300_300) + " >1,3,4",
            ])
        // Joined and never connected: away from the beginning; joining again gives the time anew.
        _ = lab.act(.join(id: "b", name: "B", isAudience: false, disableCamera: false), at: 1_000)
        #expect(lab.room.nextDeadlineMs == 301_000)
        _ = lab.act(.join(id: "b", name: "B", isAudience: false, disableCamera: false), at: 2_000)
        #expect(lab.act(.tick, at: 301_999) == [])
        #expect(lab.act(.tick, at: 302_000).first == "left b offline")
    }

    @Test func theEnd() {
        var lab = Lab.full()
        let end = [
            "closed timeOver >1,2,3,4", "close 1 ended(reason: \"timeOver\")", "left a ended", "close 2 ended(reason: \"timeOver\")",
            "left t ended", "close 3 ended(reason: \"timeOver\")", "left s ended", "close 4 ended(reason: \"timeOver\")", "left v ended",
            "ended timeOver",
        ]
        #expect(lab.room.nextDeadlineMs == 7_200_000 && lab.act(.tick, at: 7_199_999) == [] && lab.act(.tick, at: 7_200_000) == end)
        #expect(lab.room.isIdle)
        var other = Lab.full()
        #expect(other.act(.end(reason: "timeOver")) == end)
    }

    // MARK: - Roles

    @Test func downgrading() {
        var lab = Lab.full()
        #expect(
            lab.act(.downgrade(by: "a", users: [.init(userID: "s", role: .audience), .init(userID: "t", role: .audience)])) == [
                Lab.role("s", "audience"), Lab.role("t", "audience"), Lab.displayed(""), Lab.display("a", "") + " >1,2,3,4",
                Lab.roles("a", ("s", 4), ("t", 4)) + " >1,2,3,4",
            ])
        // Other roles, and members that are audience already, do not count.
        #expect(lab.act(.downgrade(by: "a", users: [.init(userID: "s", role: .student), .init(userID: "t", role: .audience)])) == [])
    }

    @Test func anotherTeacher() {
        var lab = Lab.full()
        #expect(
            lab.act(.changeRole(by: "a", userID: "s", role: .teacher)) == [
                Lab.role("t", "student"), Lab.role("s", "teacher"), Lab.roles("a", ("t", 3), ("s", 2)) + " >1,2,3,4",
                Lab.displayed(Lab.teacher("s")), Lab.display("a", Lab.teacher("s")) + " >1,2,3,4",
            ])
        _ = lab.act(.leave(by: "s"))
        #expect(
            lab.act(.changeRole(by: "a", userID: "t", role: .teacher)) == [
                Lab.role("t", "teacher"), Lab.roles("a", ("t", 2)) + " >1,2,4", Lab.displayed(Lab.teacher("t")),
                Lab.display("a", Lab.teacher("t")) + " >1,2,4",
            ])
    }

    @Test func transferring() {
        var lab = Lab.full()
        #expect(
            lab.act(.transfer(by: "a", userID: "t")) == [
                Lab.displayed(""), Lab.display("a", "") + " >1,2,3,4", Lab.role("a", "student"), Lab.role("t", "assistant"),
                #"event assistant.transferred {"from":"a","to":"t"}"#, #"SC:ATMsg a {"opUserId":"a","toUserId":"t"} >1,2,3,4"#,
            ])
        #expect(lab.act(.transfer(by: "t", userID: "v")).last == #"SC:ATMsg t {"opUserId":"t","toUserId":"v"} >1,2,3,4"#)
        #expect(lab.room.role(of: "v") == .assistant && lab.room.role(of: "t") == .student)
    }

    // MARK: - The core's inputs

    @Test func words() {
        var lab = Lab.full()
        #expect(lab.act(.say(from: "v", to: nil, object: "RC:TxtMsg", content: "hi")) == [#"said v RC:TxtMsg "hi" >1,2,3"#])
        #expect(lab.act(.say(from: "v", to: "s", object: "RC:TxtMsg", content: "hi")) == ["RC:TxtMsg v \"hi\" >3"])
        #expect(lab.act(.direct(from: "s", to: "t", name: "offer", data: [])) == ["offer s >2"])
        // Nobody speaks as the server.
        #expect(lab.act(.say(from: "v", to: nil, object: "SC:RCMsg", content: [:])) == ["invalid"])
        #expect(lab.act(.say(from: "x", to: nil, object: "RC:TxtMsg", content: "hi")) == ["not_member"])
        #expect(lab.act(.connect(id: "x", name: "X", role: "assistant", ConnectionID(8))) == ["not_member"])
        #expect(lab.act(.enter(id: "x", name: "X", role: "assistant")) == ["not_member"])
        #expect(lab.act(.enter(id: "a", name: "X", role: "student")) == [])
        #expect(lab.act(.connect(id: "v", name: "", role: "assistant", ConnectionID(8))).first == "close 4 replaced")
        #expect(lab.room.role(of: "v") == .audience && lab.room.role(of: "a") == .assistant)
        let refused: [Gathering.Input] = [
            .command(from: "a", to: nil, content: 1), .offer(from: "a", value: "1"), .poll(from: "a", key: nil), .pause(true),
            .ask(from: "a", to: "v", kind: "speech", payload: 1, newID: "k"), .answer(from: "a", ticket: "k", isApproved: true),
        ]
        for input in refused { #expect(lab.act(input) == ["invalid"]) }
        #expect(lab.act(.remove(key: "a")) == ["not_queued"])
    }

    @Test func theGreeting() throws {
        var lab = Lab.full()
        _ = lab.act(.boardCreate(by: "t", boardID: "w1"), at: 3)
        let member = try #require(lab.room.gathering.member("s"))
        let text = lab.room.greeting(for: member).text
        #expect(
            text.hasPrefix(
                #"{"class":{"display":"display://type=2?userId=t?uri=w1","whiteboards":[{"whiteboardId":"w1","name":"白板1","curPg":0}],"#
                    + #""members":[{"userId":"a","userName":"A","role":1,"joinTime":1,"camera":true,"microphone":true},"#), "\(text)")
    }
}
