@testable import Apps
@testable import Rooms
@testable import Support
import Testing

/// Games that the device, the owner or a restart ends or keeps from beginning, and what others see of that.
@Suite struct MachineDeviceTests {
    @Test func aDeviceThatLeaves() {
        let bye = ["departed host left>2,3,4", "left host left"]
        let over = ["game.ended a u1 deviceGone", MachineStage.idle]
        var stage = MachineStage()
        stage.offered()
        #expect(stage.act(.leave(id: "host"), at: 2_000) == over + bye)
        #expect(stage.queued == ["a", "b"] && stage.machine.nextDeadlineMs == nil, "the player is not to blame, and waits")
        for enter in [{ (stage: inout MachineStage) in stage.playing() }, { $0.settling() }] {
            stage = MachineStage()
            enter(&stage)
            #expect(
                stage.act(.leave(id: "host"), at: 5_000) == [#"host {"command":4,"data":"false"}>2"#] + MachineStage.polled + over + bye)
            #expect(stage.queued == ["b"])
        }
    }

    @Test func aDeviceThatIsLost() {
        var stage = MachineStage()
        stage.playing()
        let start = stage
        _ = stage.act(.disconnect(ConnectionID(1)), at: 4_000)
        // Commands that cannot reach the device are denied.
        for text in [#"{"command":1,"data":"up"}"#, #"{"command":2}"#] {
            #expect(stage.command("a", text, at: 5_000) == [MachineStage.denied(text)] && stage.phase == "playing")
        }
        let back = stage
        // After 10 s, or when its time is over, whichever is first.
        #expect(stage.act(.tick, at: 13_999) == [])
        #expect(
            stage.act(.tick, at: 14_000) == [
                #"host {"command":4,"data":"false"}>2"#, "queue POLL a", "POLL a>2,3,4", "game.ended a u1 deviceGone",
                "turn idle - - ->2,3,4", "departed host offline>2,3,4", "left host offline",
            ])
        stage = start
        _ = stage.act(.disconnect(ConnectionID(1)), at: 30_000)
        #expect(
            stage.act(.tick, at: 34_000) == [
                #"host {"command":4,"data":"false"}>2"#, "queue POLL a", "POLL a>2,3,4", "game.ended a u1 deviceGone",
                "turn idle - - ->2,3,4",
            ])
        stage = back
        _ = stage.act(.connect(id: "host", name: "", role: Gathering.host, ConnectionID(9)), at: 13_999)
        #expect(stage.act(.tick, at: 14_000) == [] && stage.phase == "playing")
        #expect(stage.command("a", #"{"command":2}"#, at: 15_000)[1] == #"a {"command":2}>9"#)
        _ = stage.act(.disconnect(ConnectionID(9)), at: 34_999)
        #expect(stage.act(.tick, at: 35_000).contains("game.ended a u1 deviceGone"))
    }

    @Test func whoMayBeInvited() {
        var stage = MachineStage()
        #expect(stage.machine.nextDeadlineMs == nil)
        stage.queue()
        #expect(stage.machine.nextDeadlineMs == 1_500)
        // Each of these stops it, and its end begins the 1.5 s anew.
        _ = stage.act(.pause(true), at: 1_000)
        #expect(stage.machine.nextDeadlineMs == nil && stage.act(.tick, at: 2_000) == [])
        _ = stage.act(.pause(false), at: 3_000)
        #expect(stage.machine.nextDeadlineMs == 4_500)
        let told = #"{"name":"Bears","isOpen":false,"isPublic":true,"mode":"server","isPaused":false}"#
        let effects = stage.machine.manage(isOpen: false, isPublic: true, nowMs: 4_000)
        #expect(stage.short(effects) == ["notified host machine \(told)>1,2,3,4"])
        #expect(stage.machine.manage(isOpen: false, isPublic: nil, nowMs: 4_000) == [], "nothing new")
        #expect(stage.machine.nextDeadlineMs == nil && stage.act(.tick, at: 5_000) == [])
        _ = stage.machine.manage(isOpen: true, isPublic: nil, nowMs: 6_000)
        #expect(stage.machine.nextDeadlineMs == 7_500 && stage.machine.info.isPublic)
        _ = stage.act(.disconnect(ConnectionID(1)), at: 7_000)
        #expect(stage.machine.nextDeadlineMs == 17_000)
        _ = stage.act(.connect(id: "host", name: "", role: Gathering.host, ConnectionID(9)), at: 8_000)
        #expect(stage.machine.nextDeadlineMs == 9_500 && stage.act(.tick, at: 9_500).first == "turn.offered a u1")
        // A running game goes on.
        _ = stage.machine.manage(isOpen: false, isPublic: nil, nowMs: 10_000)
        _ = stage.act(.pause(true), at: 10_000)
        #expect(stage.command("a", #"{"command":12,"data":"u1"}"#, at: 11_000).contains("game.started a u1"))
        _ = stage.command("a", #"{"command":2}"#, at: 12_000)
        #expect(stage.command("host", #"{"command":4,"data":"true"}"#, at: 13_000).contains("game.ended a u1 result"))
        #expect(stage.machine.nextDeadlineMs == nil && stage.queued == ["b"])
    }

    /// A refusal repeats at most eighty characters of what somebody calls itself.
    @Test(arguments: [79, 80, 81]) func aRefusalShortensLongIDs(_ count: Int) {
        var machine = MachineStage().machine
        let error = #expect(throws: GatheringRefusal.self) {
            try machine.apply(.enter(id: String(repeating: "x", count: count), name: "x", role: Gathering.host), nowMs: 0)
        }
        let shown = String(repeating: "x", count: min(count, 80))
        #expect(error == .dialect(code: "role", message: "\"\(shown)\" has another role here."))
    }

    // MARK: - The end, a restart

    @Test func theEnd() {
        let bye = ["closed over>1,2,3,4"]
        for (enter, isPolled) in [
            ({ (stage: inout MachineStage) in stage.offered() }, false), ({ $0.playing() }, true), ({ $0.settling() }, true),
        ] {
            var stage = MachineStage()
            enter(&stage)
            let effects = stage.act(.end(reason: "over"), at: 5_000)
            let result = isPolled ? [#"host {"command":4,"data":"false"}>2"#] + MachineStage.polled : []
            #expect(Array(effects.prefix(result.count + 3)) == result + ["game.ended a u1 ended", MachineStage.idle] + bye)
            #expect(effects.last == "over over" && stage.machine.isIdle && stage.machine.nextDeadlineMs == nil)
            #expect(stage.command("a", #"{"command":2}"#) == ["ended"] && stage.act(.tick, at: 99_000) == [])
            #expect(stage.machine.manage(isOpen: false, isPublic: nil, nowMs: 0) == [])
        }
        var stage = MachineStage()
        #expect(!stage.machine.isIdle)
        #expect(stage.act(.end(reason: "over")).first == bye[0])
    }

    @Test func aRestart() throws {
        for (enter, isPolled) in [
            ({ (stage: inout MachineStage) in stage.offered() }, false), ({ $0.playing() }, true), ({ $0.settling() }, true),
        ] {
            var stage = MachineStage()
            enter(&stage)
            stage.machine = try Machine(state: stage.machine.state.text, limits: MachineLimits(), nowMs: 100_000)
            #expect(stage.machine.nextDeadlineMs == 100_000)
            let start = stage
            let over = (isPolled ? ["queue POLL a", "POLL a>"] : []) + ["game.ended a u1 serverRestart"]
            #expect(stage.act(.tick, at: 100_000) == over)
            #expect(stage.queued == (isPolled ? ["b"] : ["a", "b"]))
            // Other inputs before the tick have the same result.
            stage = start
            #expect(stage.act(.leave(id: "x"), at: 100_000) == ["not_member"])
            let back = stage.act(.connect(id: "host", name: "", role: Gathering.host, ConnectionID(11)), at: 100_100)
            #expect(Array(back.prefix(over.count)) == over && stage.phase == "idle")
            _ = stage.act(.connect(id: "b", name: "b", role: Machine.player, ConnectionID(12)), at: 100_200)
            _ = stage.act(.connect(id: "a", name: "a", role: Machine.player, ConnectionID(13)), at: 100_300)
            #expect(stage.act(.tick, at: 101_600).first == (isPolled ? "turn.offered b u2" : "turn.offered a u2"))
        }
        // Members that do not come back leave.
        var stage = MachineStage()
        stage.playing()
        stage.machine = try Machine(state: stage.machine.state.text, limits: MachineLimits(), nowMs: 100_000)
        _ = stage.act(.tick, at: 100_000)
        #expect(stage.machine.nextDeadlineMs == 110_000)
        _ = stage.act(.tick, at: 110_000)
        #expect(stage.machine.gathering.members.isEmpty && stage.queued == [])
    }

    @Test func aBrokenState() {
        let state = MachineStage().machine.state
        #expect(throws: Never.self) { try Machine(state: state.text, limits: MachineLimits(), nowMs: 0) }
        for broken in [
            "", "{}", state.replacing("mode", with: "x").text, state.replacing("gathering", with: .null).text,
            state.replacing("turn", with: .object([])).text, state.replacing("salt", with: 1).text,
        ] {
            #expect(throws: (any Error).self, "\(broken)") { try Machine(state: broken, limits: MachineLimits(), nowMs: 0) }
        }
    }

    // MARK: - What is shown

    @Test func greetings() throws {
        var stage = MachineStage()
        func greeting(_ id: String) throws -> String {
            let text = JSONValue.object(stage.machine.greeting(for: try #require(stage.machine.gathering.member(id)))).text
            return text.replacing(stage.machine.uuid(of: 1), with: "u1")
        }
        let info = #"{"machine":{"name":"Bears","isOpen":true,"isPublic":false,"mode":"server","isPaused":false,"turn":"#
        #expect(try greeting("a") == info + #"{"phase":"idle","player":null,"uuid":null,"deadline":null}}}"#)
        stage.playing()
        let deadline = Instant.text(32_000)
        for id in ["a", "host"] {
            #expect(try greeting(id) == info + #"{"phase":"playing","player":"a","uuid":"u1","deadline":"\#(deadline)"}}}"#)
        }
        for id in ["b", "w"] {
            #expect(try greeting(id) == info + #"{"phase":"playing","player":"a","uuid":null,"deadline":"\#(deadline)"}}}"#)
        }
    }

    @Test func turnsIDs() {
        let machine = MachineStage().machine
        let other = Machine(machine.info, limits: machine.limits, salt: "5a18")
        let ids = (1...100).map { machine.uuid(of: $0) }
        #expect(Set(ids).count == 100 && ids.allSatisfy { $0.utf8.count == 32 && $0.allSatisfy(\.isHexDigit) })
        #expect(machine.uuid(of: 1) != other.uuid(of: 1))
    }
}
