import Testing

@testable import Apps
@testable import Support

/// Which calls of RongCloud follow from what happens in a class.
@Suite struct RongCloudEffectsTests {
    /// A class whose members RongCloud connects, but for those named in `sockets` (a socket here) and `away`.
    private struct Stage {
        var room = Classroom(createdAtMs: 0)
        var calls: [RongCloudCall] = []
        var number: UInt64 = 0

        mutating func join(_ id: String, isAudience: Bool = false) throws {
            try self.run(.join(id: id, name: id, isAudience: isAudience, disableCamera: false))
        }

        mutating func connect(_ id: String, isRemote: Bool = true) throws {
            self.number += 1
            let connection = isRemote ? ConnectionID.remote(self.number) : ConnectionID(self.number)
            try self.apply { room throws(GatheringRefusal) in
                try room.apply(Gathering.Input.connect(id: id, name: id, role: "", connection), nowMs: 1)
            }
        }

        mutating func run(_ input: Classroom.Input) throws {
            try self.apply { room throws(GatheringRefusal) in try room.apply(input, nowMs: 1) }
        }

        mutating func core(_ input: Gathering.Input, nowMs: Int64 = 1) throws {
            try self.apply { room throws(GatheringRefusal) in try room.apply(input, nowMs: nowMs) }
        }

        private mutating func apply(_ body: (inout Classroom) throws(GatheringRefusal) -> [Gathering.Effect]) throws {
            let former = self.room.gathering
            self.calls = RongCloudCall.calls(try body(&self.room), former: former, groupID: "m")
        }

        /// `path` without ends, and the fields that differ.
        var shown: [String] {
            self.calls.map { call in
                let fields = Dictionary(
                    call.body.split(separator: "&").map { $0.split(separator: "=", omittingEmptySubsequences: false) }
                        .map { (String($0[0]), String($0[1])) }
                ) { $1 }
                guard call.isMessage else { return "\(call.path) \(fields["userId"] ?? "") \(fields["groupId"] ?? "")" }
                let object = fields["objectName"]?.replacing("%3A", with: ":") ?? ""
                return "\(fields["fromUserId"] ?? "") > \(fields["toUserId"] ?? "all") +\(fields["isIncludeSender"] ?? "") \(object)"
            }
        }
    }

    private func stage(_ members: String...) throws -> Stage {
        var stage = Stage()
        for id in members {
            try stage.join(id)
            try stage.connect(id)
        }
        return stage
    }

    @Test func groups() throws {
        var stage = Stage()
        try stage.join("a")
        #expect(stage.shown == ["/group/create.json a m"])
        try stage.connect("a")
        #expect(stage.shown.isEmpty, "connecting is nobody's business")
        try stage.join("b")
        #expect(stage.shown == ["/group/join.json b m", "b > all +0 SC:RMCMsg", "b > all +0 SC:DisplayMsg"])
        try stage.connect("b")
        try stage.join("b")
        #expect(stage.shown == ["b > all +0 SC:RMCMsg", "b > all +0 SC:DisplayMsg"], "it is in the group already")
        try stage.core(.kick(id: "b"))
        #expect(stage.shown == ["server > all +0 SC:RMCMsg", "server > all +0 SC:DisplayMsg", "/group/quit.json b m"])
        try stage.core(.end(reason: "x"))
        #expect(stage.shown == ["/group/dismiss.json a m"])
        #expect(RongCloudCall.calls([.ended(reason: "x")], former: stage.room.gathering, groupID: "m").count == 1)
    }

    /// Nobody quits a group that is dismissed.
    @Test func theLastOne() throws {
        var stage = try self.stage("a", "b")
        try stage.run(.leave(by: "b"))
        #expect(stage.shown == ["b > all +0 SC:DisplayMsg", "/group/quit.json b m", "b > all +0 SC:RMCMsg"])
        try stage.run(.leave(by: "a"))
        #expect(stage.shown == ["/group/dismiss.json a m"])
        // All at once, when their time is over.
        stage = try self.stage("a", "b", "c")
        try stage.core(.tick, nowMs: 3_600_000 * 2)
        #expect(stage.shown == ["/group/dismiss.json c m"])
    }

    @Test func oneAndAll() throws {
        var stage = try self.stage("a", "b")
        try stage.join("c", isAudience: true)
        try stage.connect("c")
        try stage.run(.speechApply(by: "c", newID: "t"))
        #expect(stage.shown == ["c > a +0 SC:RSMsg"])
        try stage.run(.speechApprove(by: "a", ticket: "t"))
        #expect(stage.shown == ["a > c +0 SC:SRMsg", "a > all +1 SC:RCMsg"])
        try stage.run(.deviceControl(by: "a", userID: "b", device: .camera, isOn: true, newID: "d"))
        #expect(stage.shown == ["a > b +0 SC:CDNMsg"])
        // Both get the message that it is too late; its sender is the member that was asked.
        try stage.core(.tick, nowMs: 40_000)
        #expect(stage.shown == ["b > a +0 SC:TEMsg", "b > b +1 SC:TEMsg"])
        try stage.core(.say(from: "a", to: nil, object: "RC:TxtMsg", content: "x"))
        #expect(stage.shown == ["a > all +0 RC:TxtMsg"])
        try stage.core(.say(from: "a", to: "b", object: "RC:TxtMsg", content: "x"))
        #expect(stage.shown == ["a > b +0 RC:TxtMsg"], "what is for one stays with that one, also when nobody else is there")
        try stage.core(.direct(from: "a", to: "b", name: "n", data: []))
        #expect(stage.shown.isEmpty)
    }

    /// With two here, "all but the sender" and "one" are the same receivers. A third one that is away must not get a message for one.
    @Test func whoIsAway() throws {
        var stage = try self.stage("a", "b", "c")
        try stage.core(.disconnect(.remote(3)))
        #expect(stage.shown.isEmpty)
        try stage.run(.deviceControl(by: "a", userID: "b", device: .camera, isOn: true, newID: "d"))
        #expect(stage.shown == ["a > b +0 SC:CDNMsg"])
        try stage.run(.deviceControl(by: "a", userID: "c", device: .camera, isOn: true, newID: "e"))
        #expect(stage.shown.isEmpty, "it would be heard later")
        // A member that acts while RongCloud calls it offline gets no message about that.
        try stage.run(.deviceSync(by: "c", device: .camera, isOn: false))
        #expect(stage.shown == ["c > all +0 SC:DRMsg"])
    }

    /// Sockets of this server have their own frames.
    @Test func sockets() throws {
        var stage = Stage()
        for id in ["a", "b", "c"] {
            try stage.join(id)
            try stage.connect(id, isRemote: id == "c")
        }
        try stage.run(.deviceControl(by: "a", userID: "b", device: .camera, isOn: true, newID: "d"))
        #expect(stage.shown.isEmpty)
        try stage.run(.deviceSync(by: "a", device: .camera, isOn: false))
        #expect(stage.shown == ["a > all +0 SC:DRMsg"])
        try stage.core(.disconnect(.remote(3)))
        try stage.run(.deviceSync(by: "a", device: .camera, isOn: true))
        #expect(stage.shown.isEmpty, "nobody hears it there")
        #expect(!ConnectionID(7).isRemote && ConnectionID.remote(7).isRemote && ConnectionID.remote(7) != ConnectionID(7))
    }
}
