@testable import Apps
@testable import Rooms
@testable import Support
import Testing

/// The turns of a claw machine: each phase, each way out of it, with all that is told and to whom.
@Suite struct MachineTests {
    private static let polled = ["queue POLL a", "POLL a>1,2,3,4"]
    private static let idle = "turn idle - - ->1,2,3,4"

    @Test func aWonGame() {
        var stage = MachineStage()
        #expect(stage.act(.offer(from: "a", value: "1"), at: 1_000) == ["queue OFFER a", "OFFER a>1,2,3,4"])
        #expect(stage.machine.nextDeadlineMs == 2_500)
        #expect(stage.act(.tick, at: 2_499) == [])
        #expect(
            stage.act(.tick, at: 2_500) == [
                "turn.offered a u1", #"host {"command":11,"data":"u1"}>2"#, "turn offered a u1 12500>2,1", "turn offered a - 12500>3,4",
            ])
        #expect(stage.machine.nextDeadlineMs == 14_500, "2 s later than told")
        #expect(
            stage.command("a", #"{"command":12,"data":"u1","serial":null}"#, to: "m@x.y", at: 3_000) == [
                "turn.accepted a u1", "game.started a u1", "turn playing a u1 33000>2,1", "turn playing a - 33000>3,4",
            ])
        #expect(stage.machine.nextDeadlineMs == 35_000)
        // As they were sent: a camera as a number or a string, with a serial or without.
        for text in [#"{"command":1,"data":"left"}"#, #"{"command":3,"data":2}"#, #"{"command":3,"data":"1","serial":0}"#] {
            #expect(stage.command("a", text, at: 4_000) == ["a \(text)>1"])
        }
        let ack = #"{"command":5,"data":{"command":1,"data":"left"},"serial":0,"code":200}"#
        #expect(stage.command("host", ack, to: "a", at: 4_000) == ["host \(ack)>2"])
        #expect(
            stage.command("a", #"{"command":2,"data":"","serial":1}"#, at: 5_000) == [
                "game.dropped a u1 false", #"a {"command":2,"data":"","serial":1}>1"#, "turn settling a u1 25000>2,1",
                "turn settling a - 25000>3,4",
            ])
        #expect(stage.machine.nextDeadlineMs == 25_000 && stage.queued == ["a"], "the head stays until its game is over")
        #expect(
            stage.command("host", #"{"command":4,"data":"true"}"#, at: 9_000)
                == [#"host {"command":4,"data":"true"}>2"#, "game.result a u1 true"] + Self.polled + ["game.ended a u1 result", Self.idle])
        #expect(stage.machine.turn == nil && stage.machine.nextDeadlineMs == nil)
    }

    @Test func aLostGameByTheClock() {
        var stage = MachineStage()
        stage.playing()
        #expect(stage.act(.tick, at: 33_999) == [])
        #expect(
            stage.act(.tick, at: 34_000) == [
                "game.dropped a u1 true", #"a {"command":2}>1"#, "turn settling a u1 54000>2,1", "turn settling a - 54000>3,4",
            ])
        #expect(stage.act(.tick, at: 53_999) == [])
        #expect(
            stage.act(.tick, at: 54_000)
                == [#"host {"command":4,"data":"false"}>2"#] + Self.polled + ["game.ended a u1 noResult", Self.idle])
        // The next one, 1.5 s later.
        #expect(stage.machine.nextDeadlineMs == 55_500 && stage.act(.tick, at: 55_499) == [])
        #expect(stage.act(.tick, at: 55_500).first == "turn.offered b u2")
    }

    @Test func aLostGame() {
        var stage = MachineStage()
        stage.settling()
        #expect(stage.command("host", #"{"command":4,"data":"false"}"#, at: 4_000)[1] == "game.result a u1 false")
        #expect(stage.queued == ["b"] && stage.machine.nextDeadlineMs == 5_500)
    }

    // MARK: - Out of an invitation

    @Test func anInvitationThatIsRejected() {
        var stage = MachineStage()
        stage.offered()
        #expect(
            stage.command("a", #"{"command":13,"data":"u1"}"#, at: 2_000) == Self.polled + ["turn.declined a u1", Self.idle])
        #expect(stage.queued == ["b"] && stage.act(.tick, at: 3_500).first == "turn.offered b u2")
    }

    @Test func anInvitationWithoutAnswer() {
        var stage = MachineStage()
        stage.offered()
        #expect(stage.act(.tick, at: 13_499) == [])
        // Too late, though nobody has said so yet.
        #expect(
            stage.command("a", #"{"command":12,"data":"u1"}"#, at: 13_500) == [
                #"host {"command":5,"data":{"command":12,"data":"u1"},"code":0}>2"#
            ])
        #expect(stage.act(.tick, at: 13_500) == Self.polled + ["turn.expired a u1", Self.idle])
    }

    @Test func aPlayerWhoLeavesAnInvitation() {
        var stage = MachineStage()
        stage.offered()
        let start = stage
        let gone = Self.polled + ["turn.declined a u1", Self.idle]
        #expect(stage.act(.leave(id: "a"), at: 2_000) == gone + ["departed a left>1,3,4", "left a left"])
        stage = start
        #expect(stage.act(.kick(id: "a"), at: 2_000) == gone + ["departed a kicked>1,3,4", "close 2 kicked", "left a kicked"])
        stage = start
        #expect(stage.act(.poll(from: "a", key: nil), at: 2_000) == gone)
        stage = start
        #expect(stage.act(.poll(from: "host", key: nil), at: 2_000) == gone)
        stage = start
        #expect(stage.act(.remove(key: "a"), at: 2_000) == ["queue DROP a", "DROP a>1,2,3,4", "turn.declined a u1", Self.idle])
        stage = start
        #expect(stage.act(.remove(key: "b"), at: 2_000) == ["queue DROP b", "DROP b>1,2,3,4"] && stage.phase == "offered")
        stage = start
        _ = stage.act(.disconnect(ConnectionID(2)), at: 2_000)
        #expect(stage.act(.tick, at: 11_999) == [] && stage.machine.nextDeadlineMs == 12_000)
        #expect(
            stage.act(.tick, at: 12_000) == [
                "queue POLL a", "POLL a>1,3,4", "turn.declined a u1", "turn idle - - ->1,3,4", "departed a offline>1,3,4", "left a offline",
            ])
    }

    /// It went to a connection that is gone, or came while there was none.
    @Test func aPlayerWhoComesBackIsInvitedAgain() {
        var stage = MachineStage()
        stage.queue()
        _ = stage.act(.disconnect(ConnectionID(2)), at: 1_000)
        #expect(
            stage.act(.tick, at: 1_500) == [
                "turn.offered a u1", #"host {"command":11,"data":"u1"}>"#, "turn offered a u1 11500>1", "turn offered a - 11500>3,4",
            ])
        #expect(
            stage.act(.connect(id: "a", name: "a", role: Machine.player, ConnectionID(9)), at: 2_000) == [
                "back a>1,3,4", #"hello a ["host", "b", "w"] ["a", "b"]>9"#, #"host {"command":11,"data":"u1"}>9"#,
            ])
        _ = stage.command("a", #"{"command":12,"data":"u1"}"#, at: 2_000)
        #expect(
            stage.act(.connect(id: "a", name: "a", role: Machine.player, ConnectionID(10)), at: 2_000) == [
                "close 9 replaced", #"hello a ["host", "b", "w"] ["a", "b"]>10"#,
            ])
    }

    // MARK: - Out of a game

    @Test func aPlayerWhoLeavesItsGame() {
        var stage = MachineStage()
        stage.playing()
        let start = stage
        let dropped = ["game.dropped a u1 false", #"a {"command":2}>1"#]
        let told = ["turn settling a u1 25000>2,1", "turn settling a - 25000>3,4"]
        let drop = ["queue DROP a", "DROP a>1,2,3,4"]
        #expect(stage.act(.leave(id: "a"), at: 5_000) == dropped + told + drop + ["departed a left>1,3,4", "left a left"])
        // The device's result still ends it, and nobody is there to hear it.
        #expect(
            stage.command("host", #"{"command":4,"data":"true"}"#, at: 6_000) == [
                #"host {"command":4,"data":"true"}>"#, "game.result a u1 true", "game.ended a u1 result", "turn idle - - ->1,3,4",
            ])
        #expect(stage.queued == ["b"])
        stage = start
        _ = stage.act(.kick(id: "a"), at: 5_000)
        #expect(stage.act(.tick, at: 25_000) == ["game.ended a u1 playerLeft", "turn idle - - ->1,3,4"])
        stage = start
        #expect(stage.act(.poll(from: "a", key: nil), at: 5_000) == Self.polled + dropped + told)
        #expect(stage.command("a", #"{"command":1,"data":"up"}"#, at: 5_000) == [Self.denied(#"{"command":1,"data":"up"}"#)])
        // Back in the queue, behind: this place outlives the game.
        _ = stage.act(.offer(from: "a", value: "3"), at: 6_000)
        #expect(
            stage.act(.tick, at: 25_000) == [#"host {"command":4,"data":"false"}>2"#, "game.ended a u1 playerLeft", Self.idle])
        #expect(stage.queued == ["b", "a"])
        stage = start
        #expect(stage.act(.remove(key: "a"), at: 5_000) == drop + dropped + told)
        stage = start
        _ = stage.act(.disconnect(ConnectionID(2)), at: 5_000)
        #expect(stage.phase == "playing")
        #expect(
            stage.act(.tick, at: 15_000) == [
                "game.dropped a u1 false", #"a {"command":2}>1"#, "turn settling a u1 35000>1", "turn settling a - 35000>3,4",
                "queue DROP a", "DROP a>1,3,4", "departed a offline>1,3,4", "left a offline",
            ])
        // Without a device that could drop the claw it is over at once.
        stage = start
        _ = stage.act(.disconnect(ConnectionID(1)), at: 4_000)
        #expect(
            stage.act(.poll(from: "a", key: nil), at: 5_000) == [
                "queue POLL a", "POLL a>2,3,4", #"host {"command":4,"data":"false"}>2"#, "game.ended a u1 playerLeft",
                "turn idle - - ->2,3,4",
            ])
    }

    @Test func aPlayerWhoLeavesWhileTheClawIsOnItsWay() {
        var stage = MachineStage()
        stage.settling()
        let start = stage
        #expect(
            stage.act(.leave(id: "a"), at: 5_000) == ["queue DROP a", "DROP a>1,2,3,4", "departed a left>1,3,4", "left a left"])
        #expect(stage.act(.tick, at: 23_000) == ["game.ended a u1 playerLeft", "turn idle - - ->1,3,4"])
        stage = start
        #expect(stage.act(.poll(from: "a", key: nil), at: 5_000) == Self.polled && stage.phase == "settling")
        stage = start
        #expect(
            stage.act(.poll(from: "host", key: nil), at: 5_000)
                == Self.polled + [#"host {"command":4,"data":"false"}>2"#, "game.ended a u1 noResult", Self.idle])
    }

    // MARK: - The device

    @Test func aDeviceThatLeaves() {
        let bye = ["departed host left>2,3,4", "left host left"]
        let over = ["game.ended a u1 deviceGone", Self.idle]
        var stage = MachineStage()
        stage.offered()
        #expect(stage.act(.leave(id: "host"), at: 2_000) == over + bye)
        #expect(stage.queued == ["a", "b"] && stage.machine.nextDeadlineMs == nil, "the player is not to blame, and waits")
        for enter in [{ (stage: inout MachineStage) in stage.playing() }, { $0.settling() }] {
            stage = MachineStage()
            enter(&stage)
            #expect(
                stage.act(.leave(id: "host"), at: 5_000) == [#"host {"command":4,"data":"false"}>2"#] + Self.polled + over + bye)
            #expect(stage.queued == ["b"])
        }
    }

    @Test func aDeviceThatIsLost() {
        var stage = MachineStage()
        stage.playing()
        let start = stage
        _ = stage.act(.disconnect(ConnectionID(1)), at: 4_000)
        // What cannot reach it is not done.
        for text in [#"{"command":1,"data":"up"}"#, #"{"command":2}"#] {
            #expect(stage.command("a", text, at: 5_000) == [Self.denied(text)] && stage.phase == "playing")
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
        let told = #"{"name":"Bears","isOpen":false,"isPublic":true,"mode":"server"}"#
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

    /// The answer that a command is not carried out, to a.
    static func denied(_ text: String) -> String { #"host {"command":5,"data":\#(text),"code":0}>2"# }

    // MARK: - The end, a restart

    @Test func theEnd() {
        let bye = ["closed over>1,2,3,4"]
        for (enter, isPolled) in [
            ({ (stage: inout MachineStage) in stage.offered() }, false), ({ $0.playing() }, true), ({ $0.settling() }, true),
        ] {
            var stage = MachineStage()
            enter(&stage)
            let effects = stage.act(.end(reason: "over"), at: 5_000)
            let result = isPolled ? [#"host {"command":4,"data":"false"}>2"#] + Self.polled : []
            #expect(Array(effects.prefix(result.count + 3)) == result + ["game.ended a u1 ended", Self.idle] + bye)
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
            // Whatever comes before the tick.
            stage = start
            #expect(stage.act(.leave(id: "x"), at: 100_000) == ["not_member"])
            let back = stage.act(.connect(id: "host", name: "", role: Gathering.host, ConnectionID(11)), at: 100_100)
            #expect(Array(back.prefix(over.count)) == over && stage.phase == "idle")
            _ = stage.act(.connect(id: "b", name: "b", role: Machine.player, ConnectionID(12)), at: 100_200)
            _ = stage.act(.connect(id: "a", name: "a", role: Machine.player, ConnectionID(13)), at: 100_300)
            #expect(stage.act(.tick, at: 101_600).first == (isPolled ? "turn.offered b u2" : "turn.offered a u2"))
        }
        // Who does not come back leaves.
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
        let info = #"{"machine":{"name":"Bears","isOpen":true,"isPublic":false,"mode":"server","turn":"#
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
