import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// Each code by an input that earns it; a refusal changes nothing.
@Suite struct ClassroomRefusalTests {
    private func expect(_ code: String, _ lab: ClassroomLab, _ inputs: [Classroom.Input], at nowMs: Int64 = 1) {
        for input in inputs {
            var copy = lab
            #expect(copy.act(input, at: nowMs) == [code], "\(input)")
            #expect(copy.room == lab.room, "a refusal changes nothing: \(input)")
        }
    }

    /// Every input but joining, by one member.
    private func all(by: String) -> [Classroom.Input] {
        [
            .kick(by: by, userID: "s"), .downgrade(by: by, users: [.init(userID: "s", role: .audience)]),
            .changeRole(by: by, userID: "s", role: .teacher), .transfer(by: by, userID: "s"),
            .speechApprove(by: by, ticket: "k"), .speechReject(by: by, ticket: "k"),
            .upgradeInvite(by: by, userID: "v", role: .student, newID: "n"),
            .deviceControl(by: by, userID: "s", device: .camera, isOn: true, newID: "n"),
            .deviceControl(by: by, userID: "s", device: .camera, isOn: false, newID: "n"),
            .display(by: by, kind: nil, userID: nil, uri: nil), .boardCreate(by: by, boardID: "w"), .boardDelete(by: by, boardID: "w"),
            .boardTurn(by: by, boardID: "w", page: 1), .deviceSync(by: by, device: .camera, isOn: true),
            .upgradeReject(by: by, ticket: "k"), .deviceApprove(by: by, ticket: "k"), .deviceReject(by: by, ticket: "k"),
            .speechApply(by: by, newID: "n"), .upgradeApprove(by: by, ticket: "k"), .leave(by: by),
        ]
    }

    @Test func authorization() { self.expect("2", .full(), self.all(by: "x")) }

    /// Rights of each role: the places of the inputs of `all(by:)` that it is refused.
    @Test(
        arguments: zip(
            ["a", "t", "s", "v"],
            [
                [14, 15, 16, 17, 18], Array(0...8) + [14, 17, 18], Array(0...12) + [17], Array(0...13) + [15, 16],
            ]))
    func roles(_ id: String, _ refused: [Int]) {
        for (index, input) in self.all(by: id).enumerated() {
            var lab = ClassroomLab.full()
            #expect((lab.act(input) == ["3"]) == refused.contains(index), "\(input)")
        }
    }

    @Test func fields() {
        let lab = ClassroomLab.full()
        self.expect(
            "1", lab,
            [
                .join(id: "n", name: "", isAudience: false, disableCamera: false),
                .join(id: "n", name: "a\u{7}", isAudience: true, disableCamera: false), .downgrade(by: "a", users: []),
                .changeRole(by: "a", userID: "s", role: .student), .upgradeInvite(by: "a", userID: "v", role: .assistant, newID: "n"),
                .upgradeInvite(by: "a", userID: "v", role: .audience, newID: "n"),
                .display(by: "a", kind: .board, userID: nil, uri: nil),
            ])
        var other = lab
        _ = other.act(.boardCreate(by: "a", boardID: "w"))
        self.expect(
            "1", other,
            [
                .boardTurn(by: "a", boardID: "w", page: -1), .boardTurn(by: "a", boardID: "w", page: 1_001),
                .boardTurn(by: "a", boardID: "w", page: .max),
            ])
    }

    @Test func people() {
        let lab = ClassroomLab.full()
        self.expect(
            "21", lab,
            [
                .kick(by: "a", userID: "x"),
                .downgrade(by: "a", users: [.init(userID: "s", role: .audience), .init(userID: "x", role: .audience)]),
                .changeRole(by: "a", userID: "x", role: .teacher), .transfer(by: "a", userID: "x"),
                .upgradeInvite(by: "a", userID: "x", role: .student, newID: "n"),
                .deviceControl(by: "a", userID: "x", device: .camera, isOn: true, newID: "n"),
                .deviceControl(by: "a", userID: "x", device: .camera, isOn: false, newID: "n"),
                .display(by: "a", kind: .screen, userID: "x", uri: nil),
            ])
        self.expect(
            "29", lab,
            [
                .kick(by: "a", userID: "a"), .downgrade(by: "a", users: [.init(userID: "a", role: .audience)]),
                .changeRole(by: "a", userID: "a", role: .teacher), .transfer(by: "a", userID: "a"),
                .upgradeInvite(by: "a", userID: "a", role: .student, newID: "n"),
                .deviceControl(by: "a", userID: "a", device: .camera, isOn: true, newID: "n"),
            ])
        self.expect("33", lab, [.upgradeInvite(by: "a", userID: "t", role: .student, newID: "n")])
        self.expect("33", lab, [.upgradeInvite(by: "a", userID: "s", role: .audience, newID: "n")])
        // Nor to what one is already.
        self.expect("33", lab, [.upgradeInvite(by: "a", userID: "s", role: .student, newID: "n")])
        self.expect("33", lab, [.upgradeInvite(by: "a", userID: "t", role: .teacher, newID: "n")])
        self.expect(
            "34", lab, [.changeRole(by: "a", userID: "t", role: .teacher), .changeRole(by: "a", userID: "v", role: .teacher)])
        var alone = lab
        _ = alone.act(.leave(by: "t"))
        self.expect("23", alone, [.display(by: "a", kind: .teacher, userID: "a", uri: nil)])
        var leaderless = lab
        _ = leaderless.act(.leave(by: "a"))
        self.expect("24", leaderless, [.display(by: "t", kind: .assistant, userID: nil, uri: nil), .speechApply(by: "v", newID: "n")])
    }

    @Test func whiteboards() {
        var lab = ClassroomLab.full()
        self.expect(
            "26", lab,
            [
                .boardDelete(by: "a", boardID: "w"), .boardTurn(by: "t", boardID: "w", page: 1),
                .display(by: "a", kind: .board, userID: nil, uri: "w"),
            ])
        for number in 0..<50 { _ = lab.act(.boardCreate(by: "a", boardID: "w\(number)")) }
        self.expect("25", lab, [.boardCreate(by: "a", boardID: "w50")])
        _ = lab.act(.boardDelete(by: "a", boardID: "w0"))
        self.expect(
            "25", lab,
            [
                .boardCreate(by: "a", boardID: "w1"), .boardCreate(by: "a", boardID: ""),
                .boardCreate(by: "a", boardID: String(repeating: "w", count: 1_025)),
            ])
    }

    /// Unknown, used, late, of another kind, for another member, or overtaken by a change of role.
    @Test func tickets() {
        var lab = ClassroomLab.full()
        _ = lab.act(.speechApply(by: "v", newID: "k1"), at: 0)
        _ = lab.act(.upgradeInvite(by: "a", userID: "v", role: .student, newID: "k2"), at: 0)
        _ = lab.act(.deviceControl(by: "a", userID: "s", device: .camera, isOn: true, newID: "k3"), at: 0)
        self.expect(
            "30", lab,
            [
                .speechApprove(by: "a", ticket: "x"), .speechApprove(by: "a", ticket: "k2"), .speechReject(by: "a", ticket: "k3"),
                .upgradeApprove(by: "v", ticket: "k1"), .upgradeReject(by: "s", ticket: "k2"), .deviceApprove(by: "t", ticket: "k3"),
                .deviceReject(by: "t", ticket: "k3"), .deviceApprove(by: "s", ticket: "k2"),
            ])
        self.expect(
            "30", lab,
            [
                .speechApprove(by: "a", ticket: "k1"), .speechReject(by: "a", ticket: "k1"), .upgradeApprove(by: "v", ticket: "k2"),
                .upgradeReject(by: "v", ticket: "k2"), .deviceApprove(by: "s", ticket: "k3"), .deviceReject(by: "s", ticket: "k3"),
            ], at: 30_000)
        _ = lab.act(.upgradeApprove(by: "v", ticket: "k2"))
        self.expect("30", lab, [.speechApprove(by: "a", ticket: "k1"), .upgradeReject(by: "v", ticket: "k2")])
        _ = lab.act(.deviceReject(by: "s", ticket: "k3"))
        self.expect("30", lab, [.deviceApprove(by: "s", ticket: "k3")])
        // An invitation that is pending for the present assistant is no application.
        _ = lab.act(.upgradeInvite(by: "a", userID: "s", role: .teacher, newID: "k4"))
        _ = lab.act(.transfer(by: "a", userID: "s"))
        self.expect("30", lab, [.speechReject(by: "s", ticket: "k4")])
    }

    @Test func full() {
        var lab = ClassroomLab.full()
        _ = lab.act(.speechApply(by: "v", newID: "k1"))
        _ = lab.act(.upgradeInvite(by: "a", userID: "v", role: .student, newID: "k2"))
        for number in 0..<13 {
            let joined = lab.act(.join(id: "n\(number)", name: "N", isAudience: false, disableCamera: false))
            #expect(joined.first == "joined n\(number) student")
        }
        #expect(lab.room.activeMembers == 16)
        self.expect(
            "31", lab,
            [
                .join(id: "x", name: "X", isAudience: false, disableCamera: false), .speechApprove(by: "a", ticket: "k1"),
                .upgradeInvite(by: "a", userID: "v", role: .student, newID: "n"), .upgradeApprove(by: "v", ticket: "k2"),
                .transfer(by: "a", userID: "v"),
            ])
        // Members may join again, and audience may still join.
        #expect(lab.act(.join(id: "s", name: "S", isAudience: false, disableCamera: false)) != ["31"])
        #expect(lab.act(.join(id: "x", name: "X", isAudience: true, disableCamera: false)).first == "joined x audience")
        // The tickets are still good once there is a seat.
        _ = lab.act(.leave(by: "n0"))
        #expect(lab.act(.upgradeApprove(by: "v", ticket: "k2")).first == "ticket approved k2 invite a v")
    }

    /// The audience cannot take the seats.
    @Test func fullOfAudience() {
        var limits = ClassroomLimits()
        limits.activeMembers = 2
        limits.members = 4
        var lab = ClassroomLab(limits: limits)
        for id in ["v1", "v2"] { #expect(lab.act(.join(id: id, name: "V", isAudience: true, disableCamera: false)) != ["31"]) }
        self.expect("31", lab, [.join(id: "v3", name: "V", isAudience: true, disableCamera: false)])
        for id in ["a", "t"] { #expect(lab.act(.join(id: id, name: "A", isAudience: false, disableCamera: false)) != ["31"]) }
        // Downgraded people make the audience larger than that; then the whole number counts.
        _ = lab.act(.downgrade(by: "a", users: [.init(userID: "t", role: .audience)]))
        self.expect("31", lab, [.join(id: "s", name: "S", isAudience: false, disableCamera: false)])
    }

    @Test func ended() {
        var lab = ClassroomLab.full()
        _ = lab.act(.end(reason: "over"))
        self.expect("20", lab, self.all(by: "a"))
        #expect(lab.act(.say(from: "a", to: nil, object: "RC:TxtMsg", content: "hi")) == ["ended"])
    }

    @Test func codes() {
        // What the vendor has in 28 and 32 cannot happen here.
        let given = Set([0, 1, 2, 3, 4, 255] + Array(10...13) + Array(20...34)).subtracting([28, 32])
        #expect(Set(ClassroomCode.allCases.map(\.rawValue)) == given)
        for code in ClassroomCode.allCases { #expect(ClassroomCode(code.refusal("why")) == code) }
        let others: [(GatheringRefusal, ClassroomCode)] = [
            (.full(limit: 1), .full), (.notMember, .authorization), (.noSuchMember("a"), .noSuchMember), (.noSuchTicket, .ticket),
            (.notYours, .role), (.ended, .noSuchClass), (.invalid(FieldError("a", "", "b")), .parameter), (.queuePaused, .other),
            (.tooManyTickets(limit: 1), .other), (.dialect(code: "full", message: ""), .other), (.dialect(code: "99", message: ""), .other),
        ]
        for (refusal, code) in others { #expect(ClassroomCode(refusal) == code) }
    }
}
