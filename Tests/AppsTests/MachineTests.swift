@testable import Apps
@testable import Rooms
@testable import Support
import Testing

/// The turns of a claw machine: each phase, each way out of it, with all messages and their receivers.
@Suite struct MachineTests {
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
                == [#"host {"command":4,"data":"true"}>2"#, "game.result a u1 true"] + MachineStage.polled + [
                    "game.ended a u1 result", MachineStage.idle,
                ])
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
                == [#"host {"command":4,"data":"false"}>2"#] + MachineStage.polled + ["game.ended a u1 noResult", MachineStage.idle])
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
            stage.command("a", #"{"command":13,"data":"u1"}"#, at: 2_000) == MachineStage.polled + [
                "turn.declined a u1", MachineStage.idle,
            ])
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
        #expect(stage.act(.tick, at: 13_500) == MachineStage.polled + ["turn.expired a u1", MachineStage.idle])
    }

    @Test func aPlayerWhoLeavesAnInvitation() {
        var stage = MachineStage()
        stage.offered()
        let start = stage
        let gone = MachineStage.polled + ["turn.declined a u1", MachineStage.idle]
        #expect(stage.act(.leave(id: "a"), at: 2_000) == gone + ["departed a left>1,3,4", "left a left"])
        stage = start
        #expect(stage.act(.kick(id: "a"), at: 2_000) == gone + ["departed a kicked>1,3,4", "close 2 kicked", "left a kicked"])
        stage = start
        #expect(stage.act(.poll(from: "a", key: nil), at: 2_000) == gone)
        stage = start
        #expect(stage.act(.poll(from: "host", key: nil), at: 2_000) == gone)
        stage = start
        #expect(stage.act(.remove(key: "a"), at: 2_000) == ["queue DROP a", "DROP a>1,2,3,4", "turn.declined a u1", MachineStage.idle])
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

    /// The invitation went to a connection that is gone, or was sent while there was none.
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
        #expect(stage.act(.poll(from: "a", key: nil), at: 5_000) == MachineStage.polled + dropped + told)
        #expect(stage.command("a", #"{"command":1,"data":"up"}"#, at: 5_000) == [MachineStage.denied(#"{"command":1,"data":"up"}"#)])
        // Back in the queue, behind: this place outlives the game.
        _ = stage.act(.offer(from: "a", value: "3"), at: 6_000)
        #expect(
            stage.act(.tick, at: 25_000) == [#"host {"command":4,"data":"false"}>2"#, "game.ended a u1 playerLeft", MachineStage.idle])
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
        #expect(stage.act(.poll(from: "a", key: nil), at: 5_000) == MachineStage.polled && stage.phase == "settling")
        stage = start
        #expect(
            stage.act(.poll(from: "host", key: nil), at: 5_000)
                == MachineStage.polled + [#"host {"command":4,"data":"false"}>2"#, "game.ended a u1 noResult", MachineStage.idle])
    }
}
