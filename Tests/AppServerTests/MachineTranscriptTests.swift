import Apps
import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// Every call of `/dollsCatcher/`, every command and every phase, with all that players, watchers and the machine hear, against the tables of the
/// specification.
@Suite struct MachineTranscriptTests {
    private static let everybody = "host Ann Bob Wil"

    /// A machine with its device, two players to be, and who only watches. `configure`: the times of a turn.
    private static func run(
        _ configure: @escaping @Sendable (inout ServerConfig) -> Void,
        _ body: @escaping @Sendable (PortlessServer, Int, [String: MachineSeat], Transcript) async throws -> Void
    ) async throws {
        try await PortlessServer.run(configure) { server in
            let number = try await MachineSeat.machine(server)
            let transcript = Transcript()
            var seats = ["host": try await MachineSeat.device(server, number)]
            for name in ["Ann", "Bob", "Wil"] { seats[name] = try await MachineSeat.guest(server, number) }
            // Whoever came is known to all by now.
            for (name, seat) in seats { try await eventually("\(name)'s neighbours") { try seat.knows(seats.count) } }
            for (name, seat) in seats { try await transcript.add(name, id: seat.id, seat.socket) }
            try await body(server, number, seats, transcript)
            for seat in seats.values { await seat.socket.close() }
        }
    }

    /// A phase as all are told of it: the turn's id is for the player and the machine alone.
    private static func turn(_ phase: String, _ player: String, _ uuid: String) -> [Told] {
        [
            Told("turn \(phase) \(player) \(uuid)", to: "\(player) host"),
            Told("turn \(phase) \(player) null", to: player == "Ann" ? "Bob Wil" : "Ann Wil"),
        ]
    }

    private static func ended(_ player: String) -> [Told] {
        [Told("POLL \(player) {}", to: self.everybody), Told("turn idle null null", to: self.everybody)]
    }

    private static func command(_ from: String, _ number: Int, _ data: String? = nil, to: String) -> Told {
        Told("command \(from) {\"command\":\(number)\(data.map { ",\"data\":\($0)" } ?? "")}", to: to)
    }

    /// Not allowed: the machine's answer to who asked, and nothing else.
    private static func denied(_ number: Int, _ data: String, to: String) -> Told {
        Told("command host {\"code\":0,\"command\":5,\"data\":{\"command\":\(number),\"data\":\(data)}}", to: to)
    }

    @Test func aGame() async throws {
        // Nothing here runs out.
        try await Self.run({
            $0.apps.machineOfferedMs = 100_000
            $0.apps.machinePlayingMs = 100_000
            $0.apps.machineSettlingMs = 100_000
        }) { server, number, seats, transcript in
            func say(_ who: String, _ frame: String) async throws { try await seats[who].orThrow().say(frame) }
            func command(_ who: String, _ number: Int, _ data: String? = nil) async throws {
                try await seats[who].orThrow().command(number, data)
            }
            let offer = #"{"type":"queue.offer","ref":1,"value":"{}"}"#
            // Offered: 11 to the head, and to it alone.
            try await say("Ann", offer)
            try await transcript.expect(
                "an offer",
                [Told("OFFER Ann {}", to: Self.everybody), Self.command("host", 11, "\"#1\"", to: "Ann")]
                    + Self.turn("offered", "Ann", "#1"))
            try await say("Bob", offer)
            try await transcript.expect("another", [Told("OFFER Bob {}", to: Self.everybody)])
            try await say("Bob", #"{"type":"queue.offer","ref":2,"value":"{}"}"#)
            try await transcript.expect("the same place", [Told("OFFER Bob {}", to: Self.everybody)])
            // Commands before their time, of others, and a foreign answer.
            try await command("Ann", 1, "\"left\"")
            try await transcript.expect("too early", [Self.denied(1, "\"left\"", to: "Ann")])
            let uuid = "\"\(try await transcript.id("#1"))\""
            try await command("Bob", 12, uuid)
            try await transcript.expect("another's answer", [Self.denied(12, "\"#1\"", to: "Bob")])
            try await command("host", 4, "\"true\"")
            try await command("host", 11, "\"mine\"")
            try await transcript.expect(
                "the machine's, too early", [Told("error not_now", to: "host"), Told("error not_yours", to: "host")])
            // Playing.
            try await command("Ann", 12, uuid)
            try await transcript.expect("yes", Self.turn("playing", "Ann", "#1"))
            for direction in ["up", "down", "left", "right", "stop"] {
                try await command("Ann", 1, "\"\(direction)\"")
                try await transcript.expect(direction, [Self.command("Ann", 1, "\"\(direction)\"", to: "host")])
            }
            for camera in ["1", "\"2\""] {
                try await command("Ann", 3, camera)
                try await transcript.expect("camera \(camera)", [Self.command("Ann", 3, camera, to: "host")])
            }
            try await say("host", #"{"type":"command","content":{"command":5,"data":{"command":3,"data":"2"},"serial":7,"code":200}}"#)
            try await transcript.expect(
                "done", [Told(#"command host {"code":200,"command":5,"data":{"command":3,"data":"2"},"serial":7}"#, to: "Ann")])
            try await command("Wil", 1, "\"left\"")
            try await command("Ann", 4, "\"true\"")
            try await command("Ann", 13, uuid)
            try await transcript.expect(
                "what is not theirs",
                [
                    Self.denied(1, "\"left\"", to: "Wil"), Self.denied(4, "\"true\"", to: "Ann"), Self.denied(13, "\"#1\"", to: "Ann"),
                ])
            for number in [1, 2, 3] {
                try await command("host", number, number == 2 ? nil : number == 1 ? "\"up\"" : "1")
                try await transcript.expect("the machine's \(number)", [Told("error not_yours", to: "host")])
            }
            // Dropped, and won: told to the player; the place is free, the next one is called.
            try await command("Ann", 2)
            try await transcript.expect("drop", [Self.command("Ann", 2, to: "host")] + Self.turn("settling", "Ann", "#1"))
            try await command("host", 4, "\"true\"")
            try await transcript.expect(
                "won",
                [Self.command("host", 4, "\"true\"", to: "Ann")] + Self.ended("Ann") + [Self.command("host", 11, "\"#2\"", to: "Bob")]
                    + Self.turn("offered", "Bob", "#2"))
            try await command("Bob", 13, "\"\(try await transcript.id("#2"))\"")
            try await transcript.expect("no", Self.ended("Bob"))
            // Leaving the queue is a no.
            try await say("Ann", offer)
            try await transcript.expect(
                "again",
                [Told("OFFER Ann {}", to: Self.everybody), Self.command("host", 11, "\"#3\"", to: "Ann")]
                    + Self.turn("offered", "Ann", "#3"))
            try await say("Ann", #"{"type":"queue.poll","ref":3}"#)
            try await transcript.expect("out of the queue", Self.ended("Ann"))
            try await say("Bob", #"{"type":"queue.poll","ref":4}"#)
            try await say("Ann", #"{"type":"queue.poll","ref":5,"key":"host"}"#)
            try await say("host", offer)
            try await transcript.expect(
                "who is not in it",
                [Told("error not_queued", to: "Bob"), Told("error not_yours", to: "Ann"), Told("error not_yours", to: "host")])
            // Words go to all others; what changes the machine to all.
            try await say("Wil", #"{"type":"send","ref":6,"object":"chat","content":"hello"}"#)
            try await transcript.expect("a word", [Told(#"Wil chat "hello""#, to: "host Ann Bob")])
            #expect(try await MachineSeat.call(server, "host/manage?roomId=\(number)", "roomStatus=false")["code"].int == 200)
            try await transcript.expect(
                "closed",
                [
                    Told(
                        #"host machine {"isOpen":false,"isPaused":false,"isPublic":true,"mode":"server","name":"The claw"}"#,
                        to: Self.everybody)
                ])
        }
    }

    /// Every phase ends by itself: nobody answers; nobody drops, and no result comes.
    @Test func whatRunsOut() async throws {
        try await Self.run({
            $0.apps.machineOfferedMs = 60_000
            $0.apps.machinePlayingMs = 300
            $0.apps.machineSettlingMs = 500
        }) { server, _, seats, transcript in
            try await seats["Ann"].orThrow().say(#"{"type":"queue.offer","ref":1,"value":"{}"}"#)
            _ = try await seats["Ann"].orThrow().hears(11)
            server.pass(60_000)
            try await transcript.expect(
                "no answer",
                [Told("OFFER Ann {}", to: Self.everybody), Self.command("host", 11, "\"#1\"", to: "Ann")]
                    + Self.turn("offered", "Ann", "#1")
                    + Self.ended("Ann"))
            let bob = try seats["Bob"].orThrow()
            try await bob.say(#"{"type":"queue.offer","ref":1,"value":"{}"}"#)
            try await bob.command(12, "\"\(try await bob.hears(11).string.orThrow())\"")
            try await transcript.expect(
                "no drop, no result",
                [Told("OFFER Bob {}", to: Self.everybody), Self.command("host", 11, "\"#2\"", to: "Bob")]
                    + Self.turn("offered", "Bob", "#2")
                    + Self.turn("playing", "Bob", "#2") + [Self.command("Bob", 2, to: "host")] + Self.turn("settling", "Bob", "#2")
                    + [Self.command("host", 4, "\"false\"", to: "Bob")] + Self.ended("Bob"))
        }
    }

    /// The exact answers of all calls; nobody on the channel hears of them.
    @Test func theWholeAPI() async throws {
        try await Self.run({ _ in }) { server, _, _, transcript in
            var routes: Set<String> = []
            func call(_ path: String, _ form: String) async throws -> JSON {
                routes.insert(path)
                let answer = try await MachineSeat.call(server, path, form)
                #expect(answer["code"].int == 200, "\(path): \(answer)")
                return answer
            }
            let made = try await call("host/create", "accid=Shop@Town.1&nickname=bears&password=x&name=Bears")
            #expect(made.names == ["code", "data"])
            let number = try made["data"].int.orThrow()
            #expect(try await call("host/manage", "roomId=\(number)&bePublic=true&roomStatus=false").names == ["code"])
            let host = try await call("host/query", "roomId=\(number)")["data"]
            #expect(host.names == ["roomId", "name", "creator", "creatorToken", "pushUrl1", "pushUrl2", "roomStatus"])
            #expect(host["roomId"].int == number && host["name"].string == "Bears" && host["creator"].string == "shop@town.1")
            #expect(host["roomStatus"].bool == false)
            for (url, slot) in [("pushUrl1", "m-\(number)"), ("pushUrl2", "m-\(number)-2")] {
                #expect(host[url].string?.contains("/live/\(slot)?txSecret=") == true, "\(host[url])")
            }
            let guest = try await call("tourist", "")["data"]
            #expect(guest.names == ["accid", "nickname", "imToken"])
            #expect(guest["accid"].string?.wholeMatch(of: /player[0-9]+[0-9]{2}/) != nil)
            #expect(guest["nickname"].string?.wholeMatch(of: /玩家[0-9]{6}/) != nil)
            let sid = try guest["accid"].string.orThrow()
            #expect(try await call("tourist", "sid=\(sid)")["data"]["nickname"].string == guest["nickname"].string)
            let list = try await call("room/list", "sid=\(sid)")["data"]
            #expect(list.names == ["total", "list"] && list["total"].int == 2)
            var pages: [JSON] = []
            for offset in 0...2 { pages.append(try await call("room/list", "sid=\(sid)&limit=1&offset=\(offset)")["data"]["list"]) }
            #expect(pages.map(\.count) == [1, 1, 0] && pages[0][0]["roomId"].int == list["list"][0]["roomId"].int)
            let entry = try list["list"].list.first { $0["roomId"].int == number }.orThrow()
            #expect(
                entry.names == [
                    "roomId", "name", "creator", "rtmpPullUrl1", "rtmpPullUrl2", "httpPullUrl1", "httpPullUrl2", "hlsPullUrl1",
                    "hlsPullUrl2",
                    "roomStatus", "liveStatus", "onlineUserCount", "queueCount",
                ])
            #expect(
                entry["roomStatus"].bool == false && entry["liveStatus"].int == 0 && entry["onlineUserCount"].int == 0
                    && entry["queueCount"].int == 0 && entry["creator"].string == "shop@town.1")
            for (kind, ending) in [("rtmp", ""), ("http", ".flv"), ("hls", ".m3u8")] {
                for (camera, slot) in [(1, "m-\(number)"), (2, "m-\(number)-2")] {
                    let url = entry["\(kind)PullUrl\(camera)"].string ?? ""
                    #expect(url.contains("/live/\(slot)\(ending)?txSecret="), "\(url)")
                }
            }
            // Not listed any more.
            _ = try await call("host/manage", "roomId=\(number)&bePublic=false")
            #expect(try await call("room/list", "sid=\(sid)")["data"]["total"].int == 1)
            #expect(routes == MachineTables.routes)
            try await transcript.expect("calls about another machine", [])
        }
    }

    /// The server has what the tables have, and no more; its documents have all codes.
    @Test func theTables() throws {
        #expect(Set(DollsCatcherCall.Path.allCases.map(\.rawValue)) == MachineTables.routes)
        #expect(Set(DollsCatcherError.Code.allCases.map(\.rawValue)) == MachineTables.codes)
        // Its tables of codes and of commands.
        #expect(try Guide("machine").codes == MachineTables.codes.union(MachineTables.commands))
        #expect(Set(Machine.Turn.Phase.allCases.map(\.rawValue)).union([Machine.idle]) == MachineTables.phases)
        // Read with one of the data that some command takes.
        let data = [#""left""#, "1", #""true""#, #""a""#, "{}"]
        let read = (-5...200).filter { number in
            data.contains {
                (try? MachineCommand.read(try JSONParser.parse("{\"command\":\(number),\"data\":\($0)}".utf8), longest: 1_024)) != nil
            }
        }
        #expect(Set(read) == MachineTables.commands)
    }
}
