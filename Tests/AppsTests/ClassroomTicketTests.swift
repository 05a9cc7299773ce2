import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// Tickets, devices, the display and whiteboards of a class, with all that follows from each input.
@Suite struct ClassroomTicketTests {
    private typealias Lab = ClassroomLab

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
        // A student may be asked, say no, and say yes.
        _ = lab.act(.upgradeInvite(by: "a", userID: "s", role: .teacher, newID: "k5"))
        #expect(lab.act(.upgradeReject(by: "s", ticket: "k5")).count == 2)
        _ = lab.act(.upgradeInvite(by: "a", userID: "s", role: .teacher, newID: "k6"))
        #expect(
            lab.act(.upgradeApprove(by: "s", ticket: "k6")) == [
                "ticket approved k6 invite a s", Lab.role("v", "student"), Lab.role("s", "teacher"),
                self.invitation(3, "k6", 2, by: "s", to: 1), Lab.roles("s", ("v", 3), ("s", 2)) + " >1,2,3,4",
            ])
        // A member that has the offered role by now has nothing to answer.
        _ = lab.act(.upgradeInvite(by: "a", userID: "v", role: .teacher, newID: "k7"))
        _ = lab.act(.changeRole(by: "a", userID: "v", role: .teacher))
        #expect(lab.act(.upgradeApprove(by: "v", ticket: "k7")).first != "ticket approved k7 invite a v")
    }

    private func device(_ action: Int, _ type: Int, _ ticket: String, by: String, to: Int) -> String {
        #"SC:CDNMsg \#(by) {"action":\#(action),"type":\#(type),"ticket":"\#(ticket)","opUserId":"\#(by)","#
            + #""opUserName":"\#(by.uppercased())"} >\#(to)"#
    }

    private func switched(_ by: String, _ type: Int, _ isOn: Bool, _ id: String) -> String {
        #"SC:DRMsg \#(by) {"type":\#(type),"enable":\#(isOn),"userId":"\#(id)","userName":"\#(id.uppercased())"} >1,2,3,4"#
    }

    private func event(_ id: String, _ device: String, _ isOn: Bool) -> String {
        #"event device.changed {"userId":"\#(id)","track":"\#(device)","isOn":\#(isOn)}"#
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

    /// A whiteboard is shown on when its creator goes, and when another one is deleted.
    @Test func boardsStay() {
        var lab = Lab.full()
        for id in ["w1", "w2"] { _ = lab.act(.boardCreate(by: "t", boardID: id)) }
        let shown = "display://type=2?userId=t?uri=w2"
        #expect(lab.act(.boardDelete(by: "a", boardID: "w1")).count == 2 && lab.room.display?.text == shown)
        #expect(lab.act(.downgrade(by: "a", users: [.init(userID: "t", role: .audience)])).count == 2)
        #expect(lab.act(.kick(by: "a", userID: "t")).count == 3 && lab.room.display?.text == shown)
    }
}
