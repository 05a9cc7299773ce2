@testable import Apps
@testable import Rooms
@testable import Support
import Testing

/// The commands of players and devices: their text, who may send which when, and how many.
@Suite struct MachineCommandTests {
    private static let table: [(String, MachineCommand)] = [
        (#"{"command":1,"data":"up"}"#, .init(.move(.up))), (#"{"command":1,"data":"down","serial":0}"#, .init(.move(.down), serial: 0)),
        (#"{"command":1,"data":"left"}"#, .init(.move(.left))), (#"{"command":1,"data":"right"}"#, .init(.move(.right))),
        (#"{"command":1,"data":"stop"}"#, .init(.move(.stop))), (#"{"command":2}"#, .init(.drop)),
        (#"{"command":2,"serial":7}"#, .init(.drop, serial: 7)), (#"{"command":3,"data":2}"#, .init(.camera(2))),
        (#"{"command":4,"data":"true"}"#, .init(.result(won: true))), (#"{"command":4,"data":"false"}"#, .init(.result(won: false))),
        (
            #"{"command":5,"data":{"command":1,"data":"up"},"serial":3,"code":0}"#,
            .init(.ack(["command": 1, "data": "up"], code: 0), serial: 3)
        ),
        (#"{"command":5,"data":"ack"}"#, .init(.ack("ack", code: nil))), (#"{"command":11,"data":"x"}"#, .init(.invite(uuid: "x"))),
        (#"{"command":12,"data":"x"}"#, .init(.accept(uuid: "x"))), (#"{"command":13,"data":"x"}"#, .init(.reject(uuid: "x"))),
    ]

    @Test func theTable() throws {
        for (text, command) in Self.table {
            #expect(try MachineCommand.read(JSONParser.parse(text.utf8), longest: 1_024) == command)
            #expect(try MachineCommand.read(.string(text), longest: 1_024) == command, "as text")
            #expect(command.content.text == text)
        }
        // Other spellings that clients use.
        #expect(try MachineCommand.read(["command": 3, "data": "1"], longest: 99).body == .camera(1))
        #expect(try MachineCommand.read(["command": 2, "data": "", "serial": nil], longest: 99) == .init(.drop))
    }

    @Test func whatIsNoCommand() {
        let wrong: [(JSONValue, String)] = [
            (1, "content"), ("nonsense", "content"), ("[1]", "content"), ([:], "command"), (["command": "1"], "command"),
            (["command": 0], "command"), (["command": 6], "command"), (["command": 14], "command"), (["command": .number(1.5)], "command"),
            (["command": 1], "data"), (["command": 1, "data": "sideways"], "data"), (["command": 3], "data"),
            (["command": 3, "data": 3], "data"), (["command": 4, "data": true], "data"), (["command": 4, "data": "yes"], "data"),
            (["command": 5, "code": 1], "code"), (["command": 11], "data"), (["command": 12, "data": ""], "data"),
            (["command": 13, "data": .string(String(repeating: "x", count: 65))], "data"),
            (["command": 2, "serial": "1"], "serial"), (["command": 2, "serial": .number(1e300)], "serial"),
            (["command": 2, "x": .string(String(repeating: "x", count: 1_024))], "content"),
            (.string(String(repeating: " ", count: 1_100) + #"{"command":2}"#), "content"),
        ]
        for (content, field) in wrong {
            do throws(FieldError) {
                let command = try MachineCommand.read(content, longest: 1_024)
                Issue.record("\(content.text) is read as \(command)")
            } catch {
                #expect(error.field == field, "\(content.text)")
            }
        }
    }

    // MARK: - Who and when

    /// Player's commands that are not carried out; each changes nothing but the count.
    @Test func denials() {
        let all = (1...3).map { #"{"command":\#($0),"data":\#(["", "\"up\"", "\"\"", "1"][$0])}"# }
        let answers = [#"{"command":12,"data":"u1"}"#, #"{"command":13,"data":"u1"}"#]
        let never = [#"{"command":4,"data":"true"}"#, #"{"command":5,"data":1}"#, #"{"command":11,"data":"u1"}"#]
        let wrong = [#"{"command":12,"data":"u2"}"#, #"{"command":13,"data":"x"}"#]
        func check(_ stage: MachineStage, _ id: String, _ connection: Int, _ texts: [String], to: String? = nil) {
            for text in texts {
                var copy = stage
                #expect(
                    copy.command(id, text, to: to, at: 5_000) == [
                        MachineStage.denied(text).dropLast(1) + "\(connection)"
                    ], "\(id) \(text)")
                copy.machine.rates = stage.machine.rates
                #expect(copy.machine == stage.machine, "\(id) \(text)")
            }
        }
        var stage = MachineStage()
        check(stage, "a", 2, all + answers + never + wrong)
        stage.offered()
        check(stage, "a", 2, all + never + wrong)
        check(stage, "a", 2, answers, to: "b")
        for (id, connection) in [("b", 3), ("w", 4)] { check(stage, id, connection, all + answers + never) }
        stage = MachineStage()
        stage.playing()
        check(stage, "a", 2, answers + never + wrong)
        check(stage, "a", 2, all, to: "w")
        for (id, connection) in [("b", 3), ("w", 4)] { check(stage, id, connection, all + answers + never) }
        stage = MachineStage()
        stage.settling()
        check(stage, "a", 2, all + answers + never)
        #expect(
            stage.command("a", #"{"command":1,"data":"up","serial":4}"#, at: 5_000) == [
                #"host {"command":5,"data":{"command":1,"data":"up"},"serial":4,"code":0}>2"#
            ], "the serial comes back")
    }

    @Test func refusals() {
        var stage = MachineStage()
        let result = #"{"command":4,"data":"true"}"#
        let invitation = #"{"command":11,"data":"x"}"#
        #expect(stage.command("x", #"{"command":2}"#) == ["not_member"])
        #expect(stage.command("a", #"{"command":9}"#) == ["invalid"])
        #expect(stage.command("host", result) == ["not_now"])
        for text in [
            #"{"command":1,"data":"up"}"#, #"{"command":2}"#, #"{"command":3,"data":1}"#, #"{"command":12,"data":"x"}"#, invitation,
        ] {
            #expect(stage.command("host", text) == ["not_yours"], "\(text)")
        }
        #expect(stage.command("host", #"{"command":5,"data":1}"#) == [], "an acknowledgement that nobody waits for")
        stage.offered()
        #expect(stage.command("host", result, at: 2_000) == ["not_now"])
        stage = MachineStage()
        stage.playing()
        #expect(stage.command("host", result, at: 3_000) == ["not_now"])
        stage = MachineStage()
        stage.settling()
        #expect(stage.command("host", result, to: "b", at: 4_000) == ["not_yours"])
        // Roles.
        #expect(stage.act(.offer(from: "w", value: "1")) == ["not_yours"] && stage.act(.offer(from: "host", value: "1")) == ["not_yours"])
        #expect(stage.act(.offer(from: "x", value: "1")) == ["not_member"])
        #expect(stage.act(.connect(id: "z", name: "", role: Gathering.host, ConnectionID(9))) == ["role"], "there is one device")
        #expect(stage.act(.connect(id: "host", name: "", role: Machine.player, ConnectionID(9))) == ["role"])
        #expect(stage.act(.connect(id: "a", name: "", role: "viewer", ConnectionID(9))) == ["role"])
        #expect(stage.act(.enter(id: "z", name: "", role: Gathering.host)) == ["role"])
        // The core's.
        #expect(stage.act(.poll(from: "b", key: "a")) == ["not_yours"] && stage.act(.remove(key: "w")) == ["not_queued"])
        #expect(stage.act(.leave(id: "x")) == ["not_member"] && stage.act(.kick(id: "x")) == ["no_such_member"])
        #expect(stage.act(.offer(from: "a", value: String(repeating: "x", count: 4_097))) == ["invalid"])
        _ = stage.act(.pause(true))
        _ = stage.act(.connect(id: "c", name: "c", role: Machine.player, ConnectionID(9)))
        #expect(stage.act(.offer(from: "c", value: "1")) == ["queue_paused"])
    }

    @Test func aFullMachine() {
        var limits = MachineLimits(members: 4)
        limits.gathering.queue = 1
        var stage = MachineStage(limits: limits)
        #expect(stage.act(.connect(id: "c", name: "c", role: Machine.player, ConnectionID(9))) == ["full"])
        _ = stage.act(.offer(from: "a", value: "1"))
        #expect(stage.act(.offer(from: "b", value: "1")) == ["queue_full"])
    }

    @Test func theRate() {
        var stage = MachineStage()
        stage.playing()
        let move = #"{"command":1,"data":"up"}"#
        for _ in 0..<30 { #expect(stage.command("a", move, at: 5_000) == ["a \(move)>1"]) }
        #expect(stage.command("a", move, at: 5_000) == ["407"] && stage.command("a", move, at: 5_999) == ["407"])
        // Others have their own.
        #expect(stage.command("b", move, at: 5_000).first?.hasPrefix("host") == true)
        for _ in 0..<30 { #expect(stage.command("a", move, at: 6_000) == ["a \(move)>1"]) }
        #expect(stage.command("a", move, at: 6_500) == ["407"])
        // A clock that goes back a little gives none, and a long rest no more than a second's.
        #expect(stage.command("a", move, at: 5_500) == ["407"])
        let passed = (0..<40).count { _ in stage.command("a", move, at: 15_000) != ["407"] }
        #expect(passed == 30)
        _ = stage.act(.leave(id: "b"), at: 15_000)
        #expect(Set(stage.machine.rates.keys).isSubset(of: Set(stage.machine.gathering.members.map(\.id))))
    }

    /// A member who may be away for no time at all.
    @Test func aMachineWithoutPatience() {
        var stage = MachineStage(limits: MachineLimits(offlineMs: 0))
        stage.playing()
        #expect(stage.act(.disconnect(ConnectionID(2)), at: 5_000).first == "game.dropped a u1 false")
        #expect(stage.act(.disconnect(ConnectionID(1)), at: 6_000).first == "game.ended a u1 deviceGone")
        #expect(stage.act(.disconnect(ConnectionID(99)), at: 6_000) == [])
    }

    // MARK: - A machine that drives itself

    @Test func aMachineThatDrivesItself() {
        var stage = MachineStage(.device)
        let invitation = #"{"command":11,"data":"x","serial":5}"#
        #expect(stage.command("host", invitation) == ["not_now"], "nobody waits")
        stage.queue()
        #expect(stage.machine.nextDeadlineMs == nil && stage.act(.tick, at: 60_000) == [], "the server invites nobody")
        #expect(stage.command("host", invitation, to: "b", at: 61_000) == ["not_yours"], "only the first")
        _ = stage.act(.pause(true))
        #expect(stage.command("host", invitation, at: 61_000) == ["not_now"])
        _ = stage.act(.pause(false))
        #expect(
            stage.command("host", invitation, to: "a", at: 61_000) == [
                "turn.offered a x", "host \(invitation)>2", "turn offered a x 71000>2,1", "turn offered a - 71000>3,4",
            ])
        #expect(stage.command("host", invitation, to: "a", at: 61_000) == ["not_now"], "one at a time")
        let start = stage
        // Its program hears the answers.
        #expect(
            stage.command("a", #"{"command":13,"data":"x"}"#, at: 62_000)
                == ["queue POLL a", "POLL a>1,2,3,4", "turn.declined a x", "turn idle - - ->1,2,3,4", #"a {"command":13,"data":"x"}>1"#])
        stage = start
        let accepted = stage.command("a", #"{"command":12,"data":"x"}"#, at: 62_000)
        #expect(accepted.first == "turn.accepted a x" && accepted.last == #"a {"command":12,"data":"x"}>1"#)
        // It may have dropped the claw by its own clock. It polls its player itself.
        #expect(
            stage.command("host", #"{"command":4,"data":"true"}"#, at: 63_000) == [
                #"host {"command":4,"data":"true"}>2"#, "game.result a x true", "game.ended a x result", "turn idle - - ->1,2,3,4",
            ])
        #expect(stage.queued == ["a", "b"])
        #expect(stage.act(.poll(from: "host", key: nil), at: 63_000) == ["queue POLL a", "POLL a>1,2,3,4"])
        // The server's times are upper bounds.
        _ = stage.command("host", #"{"command":11,"data":"y"}"#, at: 70_000)
        _ = stage.command("b", #"{"command":12,"data":"y"}"#, at: 71_000)
        #expect(stage.act(.tick, at: 103_000).first == "game.dropped b y true")
        #expect(stage.act(.tick, at: 124_999) == [])
        #expect(
            stage.act(.tick, at: 125_000) == [
                #"host {"command":4,"data":"false"}>3"#, "queue POLL b", "POLL b>1,2,3,4", "game.ended b y noResult",
                "turn idle - - ->1,2,3,4",
            ])
        stage = start
        #expect(stage.act(.tick, at: 73_000).contains("turn.expired a x"))
    }
}
