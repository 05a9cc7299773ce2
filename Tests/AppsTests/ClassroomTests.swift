import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// What a class does and whom it tells, in which order: each input of SealClass's table with all that follows.
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
                #"event device.changed {"userId":"t","device":"camera","isOn":true}"#, Lab.people(1, "t", 2) + " >1",
                Lab.display("t", Lab.teacher("t")) + " >1",
            ])
        #expect(lab.act(.join(id: "a", name: "A", isAudience: false, disableCamera: false)) == [Lab.people(1, "a", 1) + " >2"])
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
        // Other roles, and who is audience already, do not count.
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

    // MARK: - Tickets

    @Test func speech() {
        var lab = Lab.full()
        let asked = #"SC:RSMsg v {"reqUserId":"v","reqUserName":"V","ticket":"k1"} >1"#
        #expect(lab.act(.speechApply(by: "v", newID: "k1"), at: 10) == ["ticket opened k1 speech v a", asked])
        #expect(lab.act(.speechApply(by: "v", newID: "k2"), at: 20) == [asked], "the one that waits is sent again")
        #expect(
            lab.act(.speechReject(by: "a", ticket: "k1")) == [
                "ticket rejected k1 speech v a",
                #"SC:SRMsg a {"action":2,"opUserId":"a","opUserName":"A","reqUserId":"v","reqUserName":"V","role":3} >4"#,
            ])
        _ = lab.act(.speechApply(by: "v", newID: "k3"))
        #expect(
            lab.act(.speechApprove(by: "a", ticket: "k3")) == [
                "ticket approved k3 speech v a", Lab.role("v", "student"),
                #"SC:SRMsg a {"action":1,"opUserId":"a","opUserName":"A","reqUserId":"v","reqUserName":"V","role":3} >4"#,
                Lab.roles("a", ("v", 3)) + " >1,2,3,4",
            ])
        #expect(lab.act(.speechApprove(by: "a", ticket: "k3")) == ["30"], "once")
    }

    private func invitation(_ action: Int, _ ticket: String, _ role: Int, by: String, to: Int) -> String {
        #"SC:IURMsg \#(by) {"action":\#(action),"ticket":"\#(ticket)","role":\#(role),"opUserId":"\#(by)","opUserName":"\#(by.uppercased())"}"#
            + " >\(to)"
    }

    @Test func invitations() {
        var lab = Lab.full()
        #expect(
            lab.act(.upgradeInvite(by: "a", userID: "v", role: .student, newID: "k1")) == [
                "ticket opened k1 invite a v", self.invitation(1, "k1", 3, by: "a", to: 4),
            ])
        #expect(
            lab.act(.upgradeInvite(by: "a", userID: "v", role: .student, newID: "k2")) == [self.invitation(1, "k1", 3, by: "a", to: 4)])
        // Another role takes the place of the invitation that waits.
        #expect(
            lab.act(.upgradeInvite(by: "a", userID: "v", role: .teacher, newID: "k3")) == [
                "ticket expired k1 invite a v", #"SC:TEMsg v {"ticket":"k1","fromUserId":"a","toUserId":"v"} >1,4"#,
                "ticket opened k3 invite a v", self.invitation(1, "k3", 2, by: "a", to: 4),
            ])
        #expect(
            lab.act(.upgradeReject(by: "v", ticket: "k3")) == [
                "ticket rejected k3 invite a v", self.invitation(2, "k3", 2, by: "v", to: 1),
            ]
        )
        _ = lab.act(.upgradeInvite(by: "a", userID: "v", role: .teacher, newID: "k4"))
        // There is one teacher.
        #expect(
            lab.act(.upgradeApprove(by: "v", ticket: "k4")) == [
                "ticket approved k4 invite a v", Lab.role("t", "student"), Lab.role("v", "teacher"),
                self.invitation(3, "k4", 2, by: "v", to: 1), Lab.displayed(""), Lab.display("v", "") + " >1,2,3,4",
                Lab.roles("v", ("t", 3), ("v", 2)) + " >1,2,3,4",
            ])
        // A student may be asked and say no.
        _ = lab.act(.upgradeInvite(by: "a", userID: "s", role: .student, newID: "k5"))
        #expect(lab.act(.upgradeReject(by: "s", ticket: "k5")).count == 2)
    }

    private func device(_ action: Int, _ type: Int, _ ticket: String, by: String, to: Int) -> String {
        #"SC:CDNMsg \#(by) {"action":\#(action),"type":\#(type),"ticket":"\#(ticket)","opUserId":"\#(by)","#
            + #""opUserName":"\#(by.uppercased())"} >\#(to)"#
    }

    private func switched(_ by: String, _ type: Int, _ isOn: Bool, _ id: String) -> String {
        #"SC:DRMsg \#(by) {"type":\#(type),"enable":\#(isOn),"userId":"\#(id)","userName":"\#(id.uppercased())"} >1,2,3,4"#
    }

    private func event(_ id: String, _ device: String, _ isOn: Bool) -> String {
        #"event device.changed {"userId":"\#(id)","device":"\#(device)","isOn":\#(isOn)}"#
    }

    @Test func devices() {
        var lab = Lab.full()
        func control(_ device: ClassroomDevice, _ isOn: Bool, _ newID: String) -> Classroom.Input {
            .deviceControl(by: "a", userID: "s", device: device, isOn: isOn, newID: newID)
        }
        // Off is done at once, to the member that was named.
        #expect(
            lab.act(control(.microphone, false, "")) == [
                self.event("s", "microphone", false), "mute s true", self.switched("a", 0, false, "s"),
            ])
        #expect(lab.act(control(.microphone, false, "")) == [self.switched("a", 0, false, "s")], "told again, but nothing has changed")
        #expect(lab.act(control(.camera, false, "")) == [self.event("s", "camera", false), self.switched("a", 1, false, "s")])
        #expect(lab.room.devices(of: "a") == .init(camera: true, microphone: true))
        // On is a question for each device.
        #expect(
            lab.act(control(.microphone, true, "k1")) == ["ticket opened k1 microphone a s", self.device(1, 0, "k1", by: "a", to: 3)])
        #expect(lab.act(control(.camera, true, "k2")) == ["ticket opened k2 camera a s", self.device(1, 1, "k2", by: "a", to: 3)])
        #expect(lab.act(control(.camera, true, "k3")) == [self.device(1, 1, "k2", by: "a", to: 3)])
        #expect(
            lab.act(.deviceReject(by: "s", ticket: "k2")) == ["ticket rejected k2 camera a s", self.device(2, 1, "k2", by: "s", to: 1)])
        #expect(
            lab.act(.deviceApprove(by: "s", ticket: "k1")) == [
                "ticket approved k1 microphone a s", self.device(3, 0, "k1", by: "s", to: 1), self.event("s", "microphone", true),
                "mute s false", self.switched("s", 0, true, "s"),
            ])
        #expect(
            lab.act(.deviceSync(by: "t", device: .camera, isOn: false)) == [
                self.event("t", "camera", false), self.switched("t", 1, false, "t"),
            ])
    }

    @Test func expiry() throws {
        var lab = Lab.full()
        _ = lab.act(.speechApply(by: "v", newID: "k"), at: 100)
        #expect(lab.room.nextDeadlineMs == 30_100)
        // It outlives a restart.
        lab.room = try Classroom(state: lab.room.state.text, nowMs: 200)
        for (number, id) in ["a", "t", "s", "v"].enumerated() {
            _ = lab.act(.connect(id: id, name: "", role: "", ConnectionID(UInt64(number) + 11)))
        }
        #expect(lab.act(.tick, at: 30_099) == [])
        #expect(lab.act(.speechApprove(by: "a", ticket: "k"), at: 30_100) == ["30"], "too late, also before the tick")
        #expect(
            lab.act(.tick, at: 30_100) == [
                "ticket expired k speech v a", #"SC:TEMsg a {"ticket":"k","fromUserId":"v","toUserId":"a"} >14,11"#,
            ])
    }

    // MARK: - Display and whiteboards

    @Test func displays() {
        var lab = Lab.full()
        func shows(_ kind: ClassroomDisplay.Kind?, _ id: String? = nil, _ text: String) {
            #expect(
                lab.act(.display(by: "t", kind: kind, userID: id, uri: nil)) == [Lab.displayed(text), Lab.display("t", text) + " >1,3,4"])
        }
        shows(.assistant, "nobody", "display://type=0?userId=a?uri=")
        shows(.teacher, nil, "display://type=1?userId=t?uri=")
        shows(.screen, "s", "display://type=3?userId=s?uri=")
        shows(.screen, nil, "display://type=3?userId=t?uri=")
        shows(nil, nil, "")
        #expect(lab.act(.display(by: "a", kind: nil, userID: nil, uri: nil)) == [Lab.display("a", "") + " >2,3,4"])
    }

    @Test func boards() {
        var lab = Lab.full()
        func board(_ change: String, _ page: Int) -> String {
            #"event board.\#(change) {"boardId":"w1","name":"白板1","page":\#(page)}"#
        }
        let shown = "display://type=2?userId=t?uri=w1"
        #expect(
            lab.act(.boardCreate(by: "t", boardID: "w1")) == [
                board("created", 1), #"SC:WBMsg t {"action":1,"whiteboardId":"w1","whiteboardName":"白板1"} >1,3,4"#, Lab.displayed(shown),
                Lab.display("t", shown) + " >1,2,3,4",
            ])
        let turned = #"SC:WBTPMsg a {"whiteboardId":"w1","userId":"a","curPg":4} >2,3,4"#
        #expect(lab.act(.boardTurn(by: "a", boardID: "w1", page: 4)) == [board("turned", 5), turned])
        #expect(lab.act(.boardTurn(by: "a", boardID: "w1", page: 4)) == [turned])
        // Who made it goes; it stays and is shown on.
        _ = lab.act(.changeRole(by: "a", userID: "s", role: .teacher))
        #expect(
            lab.act(.display(by: "s", kind: .board, userID: "s", uri: "w1")).last
                == Lab.display("s", "display://type=2?userId=?uri=w1") + " >1,2,4")
        #expect(
            lab.act(.boardDelete(by: "a", boardID: "w1")) == [
                board("deleted", 5), Lab.displayed(""), Lab.display("a", "") + " >1,2,3,4",
                #"SC:WBMsg a {"action":2,"whiteboardId":"w1","whiteboardName":"白板1"} >1,2,3,4"#,
            ])
        _ = lab.act(.boardCreate(by: "a", boardID: "w2"))
        _ = lab.act(.display(by: "a", kind: .assistant, userID: nil, uri: nil))
        #expect(lab.room.boards.map(\.name) == ["白板2"], "names count on")
        #expect(
            lab.act(.boardDelete(by: "s", boardID: "w2")).last
                == #"SC:WBMsg s {"action":2,"whiteboardId":"w2","whiteboardName":"白板2"} >1,2,3,4"#)
        #expect(lab.room.display?.text == "display://type=0?userId=a?uri=", "another one was deleted")
    }

    // MARK: - The core's inputs

    @Test func words() {
        var lab = Lab.full()
        #expect(lab.act(.say(from: "v", to: nil, object: "RC:TxtMsg", content: "hi")) == [#"said v RC:TxtMsg "hi" >1,2,3"#])
        #expect(lab.act(.say(from: "v", to: "s", object: "RC:TxtMsg", content: "hi")) == [#"said v RC:TxtMsg "hi" >3"#])
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
