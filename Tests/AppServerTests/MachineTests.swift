import Access
import AppServer
import Foundation
import PortlessTestSupport
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import Synchronization
import TestSupport
import Testing

@testable import EarshotServer

/// Claw machines over their HTTP API and the channel. Browsers are in Tests/Apps, the rules in AppsTests.
@Suite struct MachineTests {
    private typealias Seat = MachineSeat

    @Test func aGameThatIsWon() async throws {
        try await PortlessServer.run({ $0.apps.machineOfferedMs = 60_000 }) { server in
            let number = try await MachineSeat.machine(server)
            let device = try await Seat.device(server, number)
            let (first, second) = (try await Seat.guest(server, number), try await Seat.guest(server, number))
            try await first.say(#"{"type":"queue.offer","ref":1,"value":"{\"nick\":\"A\"}"}"#)
            try await eventually("the first one's place") { try device.queue.contains("OFFER \(first.id)") }
            try await second.say(#"{"type":"queue.offer","ref":1,"value":"{\"nick\":\"B\"}"}"#)
            let uuid = try await first.hears(11).string.orThrow()
            // Refused: the acceptance of a player that was not invited, and a move before the game.
            try await second.command(12, "\"\(uuid)\"")
            #expect(try await second.hears(5)["command"].int == 12)
            try await first.command(1, "\"left\"")
            #expect(try await first.hears(5)["command"].int == 1)
            try await first.command(12, "\"\(uuid)\"")
            try await eventually("the turn") {
                try device.socket.messages.contains {
                    $0["type"].string == "turn" && $0["phase"].string == "playing" && $0["uuid"].string == uuid
                }
            }
            try await first.command(1, "\"left\"")
            #expect(try await device.hears(1).string == "left")
            try await first.command(3, "\"2\"")
            #expect(try await device.hears(3).string == "2")
            try await device.say(#"{"type":"command","content":{"command":5,"data":{"command":1,"data":"left"},"code":200}}"#)
            #expect(try await first.hears(5, count: 2)["data"].string == "left")
            try await first.command(2)
            _ = try await device.hears(2)
            try await device.command(4, "\"true\"")
            #expect(try await first.hears(4).string == "true")
            try await eventually("the end of the game") { try second.queue.contains("POLL \(first.id)") }
            // The next one's turn.
            #expect(try await second.hears(11).string != uuid)
            let list = try await MachineSeat.call(server, "room/list", "sid=\(first.id)")["data"]
            let entry = list["list"][0]
            #expect(list["total"].int == 1 && entry["roomId"].int == number && entry["name"].string == "The claw")
            #expect(entry["creator"].string == "claw@home.1" && entry["onlineUserCount"].int == 2 && entry["queueCount"].int == 1)
            #expect(entry["httpPullUrl2"].string?.contains("/live/m-\(number)-2.flv?txSecret=") == true)
            let kinds = try await server.api("rooms/m-\(number)/events?limit=100")["list"].list.compactMap { $0["kind"].string }
            let game = kinds.filter { $0.hasPrefix("game.") || $0.hasPrefix("turn.") }
            #expect(game == ["turn.offered", "turn.accepted", "game.started", "game.dropped", "game.result", "game.ended", "turn.offered"])
            #expect(try await server.api("gatherings?kind=machine")["list"].list.map { $0["gatheringId"].string } == ["m-\(number)"])
            for seat in [device, first, second] { await seat.socket.close() }
        }
    }

    /// The status of its streams as the room has it: idle, live, live and recording, disabled.
    @Test func liveStatus() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2))
        try await PortlessServer.run({ $0.rooms.policy.mediaIdleMs = 600_000 }) { server in
            let number = try await MachineSeat.machine(server)
            let sid = try await MachineSeat.call(server, "tourist")["data"]["accid"].string.orThrow()
            func status(_ wanted: Int) async throws {
                try await eventually("liveStatus \(wanted)") {
                    try await MachineSeat.call(server, "room/list", "sid=\(sid)")["data"]["list"][0]["liveStatus"].int == wanted
                }
            }
            try await status(0)
            let url = try await MachineSeat.call(server, "host/query", "roomId=\(number)")["data"]["pushUrl2"].string.orThrow()
            let camera = try await TagClient.publish(
                to: server, try url.components(separatedBy: "/live/").last.map { "live/\($0)" }.orThrow())
            try await camera.send(tags)
            try await status(1)
            for (action, wanted) in [("start", 3), ("stop", 1)] {
                #expect(try await server.call("POST", "rooms/m-\(number)/record", #"{"action":"\#(action)","slot":2}"#).status == 200)
                try await status(wanted)
            }
            #expect(try await server.call("POST", "rooms/m-\(number)/forbid", #"{"reason":"broken"}"#).status == 200)
            try await status(2)
            await camera.close()
        }
    }

    /// Times run out by the server's clock: nobody answers, nobody drops, no result.
    @Test func timesThatRunOut() async throws {
        try await PortlessServer.run({
            $0.apps.machineOfferedMs = 10_000
            $0.apps.machinePlayingMs = 300
            $0.apps.machineSettlingMs = 500
        }) { server in
            let number = try await MachineSeat.machine(server)
            let device = try await Seat.device(server, number)
            let (first, second) = (try await Seat.guest(server, number), try await Seat.guest(server, number))
            for seat in [first, second] {
                try await seat.say(#"{"type":"queue.offer","ref":1,"value":"{}"}"#)
                try await eventually("the place") { try device.queue.contains("OFFER \(seat.id)") }
            }
            _ = try await first.hears(11)
            server.pass(10_000)
            try await eventually("the first one's end") { try second.queue.contains("POLL \(first.id)") }
            try await second.command(12, "\"\(try await second.hears(11).string.orThrow())\"")
            _ = try await device.hears(2)
            #expect(try await second.hears(4).string == "false")
            try await eventually("the second one's end") { try second.queue.contains("POLL \(second.id)") }
            let ends = try await server.api("rooms/m-\(number)/events?limit=100")["list"].list.filter { $0["kind"].string == "game.ended" }
            #expect(ends.map { $0["data"]["endReason"].string } == ["noResult"])
            for seat in [device, first, second] { await seat.socket.close() }
        }
    }

    /// The machine's own program calls the players, hears their answers, and takes them out of the queue.
    @Test func aMachineThatDrivesItself() async throws {
        try await PortlessServer.run { server in
            let made = try await MachineSeat.call(server, "host/create", "accid=own&nickname=wawa&name=Own&mode=device")
            let number = try made["data"].int.orThrow()
            let (device, player) = (try await Seat.device(server, number), try await Seat.guest(server, number))
            try await player.say(#"{"type":"queue.offer","ref":1,"value":"{}"}"#)
            try await eventually("the place") { try device.queue.contains("OFFER \(player.id)") }
            try await device.command(11, "\"mine\"")
            #expect(try await player.hears(11).string == "mine")
            try await player.command(12, "\"mine\"")
            #expect(try await device.hears(12).string == "mine")
            try await player.command(2)
            _ = try await device.hears(2)
            try await device.command(4, "\"true\"")
            #expect(try await player.hears(4).string == "true")
            #expect(try !device.queue.contains("POLL \(player.id)"), "the program polls")
            try await device.say("{\"type\":\"queue.poll\",\"ref\":2,\"key\":\"\(player.id)\"}")
            try await eventually("the player's end") { try player.queue.contains("POLL \(player.id)") }
            for seat in [device, player] { await seat.socket.close() }
        }
    }

    /// Every code by a request that earns it.
    @Test func codes() async throws {
        try await PortlessServer.run { server in
            func code(_ path: String, _ form: String = "") async throws -> Int? {
                try await MachineSeat.call(server, path, form)["code"].int
            }
            let number = try await MachineSeat.machine(server)
            #expect(try await code("host/create", "accid=CLAW@home.1&nickname=w&name=n") == 906)
            #expect(try await code("host/create", "accid=a b&nickname=w&name=n") == 901)
            #expect(try await code("host/create", "accid=a&nickname=!&name=n") == 902)
            #expect(try await code("host/create", "accid=a&nickname=w") == 400)
            #expect(try await code("host/manage", "roomId=\(number)") == 400)
            #expect(try await code("host/manage", "roomId=1&bePublic=true") == 804)
            #expect(try await code("host/query", "roomId=1") == 804)
            #expect(try await code("room/list", "") == 400)
            #expect(try await code("room/list", "sid=player1") == 401)
            #expect(try await code("dance", "") == 404)
            let account = try await MachineSeat.call(server, "tourist")["data"]["accid"].string.orThrow()
            #expect(try await MachineSeat.call(server, "tourist", "sid=\(account)")["data"]["accid"].string == account, "renewed")
            var made = 1
            while made < 200, try await code("tourist") == 200 { made += 1 }
            #expect(made == 100, "guests of one address and day")
            #expect(try await code("tourist") == 1101)
            #expect(try await code("tourist", "sid=\(account)") == 200, "who is known is let in")
        }
    }

    /// Refused: other addresses, other sites' pages, tokens for other kinds and rooms.
    @Test func whoMayNot() async throws {
        try await PortlessServer.run({
            $0.apps.machineFrom = []
            $0.apps.machineHostFrom = []
        }) { server in
            for path in ["tourist", "host/query?roomId=1"] {
                let code = try await MachineSeat.call(server, path)["code"].int
                #expect(code == 403, "\(path)")
            }
        }
        try await PortlessServer.run { server in
            let foreign = try await HTTPAnswer.call(
                "POST", "\(server.http)/dollsCatcher/tourist", body: Data(), headers: ["Origin": "http://evil.example"])
            #expect(try foreign.json()["code"].int == 403)
            // Its script may read why.
            #expect(foreign.headers["access-control-allow-origin"] == "http://evil.example")
            let own = try await HTTPAnswer.call(
                "POST", "\(server.http)/dollsCatcher/tourist", body: Data(), headers: ["Origin": server.http])
            #expect(try own.json()["code"].int == 200)
            #expect(own.headers["access-control-allow-origin"] == server.http)
            let preflight = try await HTTPAnswer.call("OPTIONS", "\(server.http)/dollsCatcher/tourist", headers: ["Origin": server.http])
            #expect(preflight.status == 204 && preflight.headers["access-control-allow-methods"]?.contains("POST") == true)
            let token = try await MachineSeat.call(server, "tourist")["data"]["imToken"].string.orThrow()
            for target in ["/channel?token=\(token)", "/channel?token=\(token)&room=cam1", "/mesh?token=\(token)"] {
                await #expect(throws: (any Error).self, "\(target)") {
                    await (try WebSocketClient.open(server.addresses.http.port, target)).socket.close()
                }
            }
            let none = try await WebSocketClient.open(server.addresses.http.port, "/channel?token=\(token)&room=m-1")
            #expect(try await none.message("error", within: 60)["code"].string == "no_such_room")
            await none.close()
        }
    }

    /// A machine is still there after a restart, with its queue for those who come back; its game is over.
    @Test func aRestart() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-data-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let kept = Mutex((number: 0, player: ""))
        try await PortlessServer.run(data: directory) { server in
            let number = try await MachineSeat.machine(server)
            let (device, first) = (try await Seat.device(server, number), try await Seat.guest(server, number))
            kept.withLock { $0 = (number, first.id) }
            try await first.say(#"{"type":"queue.offer","ref":1,"value":"{}"}"#)
            try await first.command(12, "\"\(try await first.hears(11).string.orThrow())\"")
            try await eventually("the game") { try first.socket.messages.contains { $0["phase"].string == "playing" } }
            for seat in [device, first] { await seat.socket.close() }
        }
        let (number, player) = kept.withLock { $0 }
        try await PortlessServer.run(data: directory) { server in
            try await eventually("the game's end") {
                try await server.api("rooms/m-\(number)/events?limit=100")["list"].list.contains {
                    $0["kind"].string == "game.ended" && $0["data"]["endReason"].string == "serverRestart"
                        && $0["data"]["player"].string == player
                }
            }
            let device = try await Seat.device(server, number)
            let other = try await Seat.guest(server, number)
            try await other.say(#"{"type":"queue.offer","ref":1,"value":"{}"}"#)
            _ = try await other.hears(11)
            #expect(try await MachineSeat.call(server, "host/create", "accid=claw@home.1&nickname=w&name=n")["code"].int == 906)
            for seat in [device, other] { await seat.socket.close() }
        }
    }

    /// Commands past thirty a second are refused; the queue and the others go on.
    @Test func aFloodOfCommands() async throws {
        try await PortlessServer.run({ $0.apps.messageRate = 200 }) { server in
            let number = try await MachineSeat.machine(server)
            let (device, first) = (try await Seat.device(server, number), try await Seat.guest(server, number))
            try await first.say(#"{"type":"queue.offer","ref":1,"value":"{}"}"#)
            try await first.command(12, "\"\(try await first.hears(11).string.orThrow())\"")
            let begin = ContinuousClock.now
            for _ in 0..<200 { try await first.command(1, "\"up\"") }
            try await eventually("an answer to each") {
                let refused = try first.socket.messages.filter { $0["type"].string == "error" && $0["code"].string == "407" }.count
                return refused + (try device.commands(1).count) + (try first.commands(5).count) >= 200
            }
            // Thirty in each second that this machine took.
            let most = 30 * (1 + Int((ContinuousClock.now - begin) / .seconds(1)))
            let kept = try device.commands(1).count
            #expect((25...most).contains(kept), "\(kept) of \(most)")
            #expect(try first.socket.closeCode == nil)
            for seat in [device, first] { await seat.socket.close() }
        }
    }
}
