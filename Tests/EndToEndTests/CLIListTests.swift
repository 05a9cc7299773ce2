import Foundation
import ServerTestSupport
import Synchronization
import TestSupport
import Testing

/// Lists as fetched and printed: pages, widths, colours, closed pipes. Canned answers make the expected output known.
@Suite struct CLIListTests {
    private static func room(_ id: String, title: String = "", state: String = "live") -> String {
        """
        {"roomId":"\(id)","title":"\(title)","state":"\(state)","stateReason":"media","online":3,"peak":12,"owner":null,\
        "streams":[{"isActive":true},{"isActive":false}]}
        """
    }

    /// Pages of 200 from `count` rooms, as the server makes them.
    private static func pages(_ count: Int) -> @Sendable (CannedServer.Request) -> CannedServer.Answer {
        { request in
            let query = URLComponents(string: request.uri)?.queryItems ?? []
            func value(_ name: String) -> Int? { query.first { $0.name == name }?.value.flatMap { Int($0) } }
            let first = value("after") ?? 0
            let end = min(first + (value("pageSize") ?? 20), count)
            let list = (first..<end).map { Self.room("r\($0)") }.joined(separator: ",")
            return .json(200, #"{"code":0,"data":{"list":[\#(list)],"next":\#(end < count ? "\"\(end)\"" : "null"),"total":\#(count)}}"#)
        }
    }

    @Test(
        arguments: [
            (["--limit", "30"], 30, 1), ([], 50, 1), (["--limit", "201"], 201, 2), (["--all"], 450, 3), (["--limit", "1000"], 450, 3),
            (["--limit", "200"], 200, 1),
        ] as [([String], Int, Int)])
    func pagesAreFetchedAsWanted(_ options: [String], _ expected: Int, _ requests: Int) async throws {
        for form in ["", "--quiet", "--json"] {
            try await CannedServer.run(Self.pages(450)) { server, url in
                let line = try CLI(server: url).line(["rooms", "list"] + options + (form.isEmpty ? [] : [form]))
                let outcome = try await ClientProcess.run(line)
                #expect(outcome.status == 0, "\(outcome.errors)")
                let names = (0..<expected).map { "r\($0)" }
                switch form {
                case "--quiet": #expect(outcome.lines == names)
                case "--json":
                    let data = JSON(try JSONSerialization.jsonObject(with: outcome.output))
                    #expect(data["list"].list.compactMap { $0["roomId"].string } == names)
                    #expect(data["total"].int == 450)
                default:
                    #expect(outcome.lines.dropFirst().map { $0.prefix { $0 != " " } } == names.map { $0[...] })
                    let note = expected < 450 ? "\(expected) of 450 rooms; --all shows them all\n" : ""
                    #expect(outcome.errors == note)
                }
                #expect(server.requests.count == requests)
            }
        }
    }

    /// A server that returns the same page for ever is asked twice only.
    @Test func aCursorThatStandsStillEndsTheList() async throws {
        let page = #"{"code":0,"data":{"list":[\#(Self.room("r1"))],"next":"same","total":9}}"#
        try await CannedServer.run({ _ in .json(200, page) }) { server, url in
            let outcome = try await CLI(server: url)("rooms", "list", "--all", "--quiet")
            #expect(outcome.status == 0 && outcome.lines == ["r1", "r1"])
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [
        (["rooms"], "no rooms"), (["streams"], "no streams"), (["streams", "forbidden"], "no forbidden streams"),
        (["streams", "published"], "no pushes"),
        (["sessions"], "no sessions"), (["events", "list"], "no events"), (["webhooks", "deliveries"], "no deliveries"),
        (["rooms", "members", "r1"], "no members"), (["stats", "streams"], "no streams with figures"),
        (["stats", "plays"], "no finished plays"), (["stats", "pushes"], "no finished pushes"),
    ])
    func emptyListsAreSaid(_ command: [String], _ note: String) async throws {
        try await CannedServer.run({ _ in .json(200, #"{"code":0,"data":{"list":[],"next":null,"total":0}}"#) }) { _, url in
            let cli = CLI(server: url)
            let table = try await ClientProcess.run(try cli.line(command))
            #expect(table.status == 0 && table.text.isEmpty && table.errors == "\(note)\n", "\(table.errors)")
            let quiet = try await ClientProcess.run(try cli.line(command + ["--quiet"]))
            #expect(quiet.status == 0 && quiet.text.isEmpty && quiet.errors.isEmpty)
            let all = try await ClientProcess.run(try cli.line(command + ["--json", "--all"]))
            let data = JSON(try JSONSerialization.jsonObject(with: all.output))
            #expect(all.status == 0 && data["total"].int == 0 && data["list"].value is [Any])
        }
    }

    /// A server of another version: a missing field shows as a dash, a field of another type as its value or a dash.
    @Test(arguments: [
        "{}", "{\"list\":7}", "{\"list\":[{},{\"roomId\":7,\"streams\":{},\"id\":[],\"at\":9}]}", "null", "{\"list\":[null,1,\"x\"]}",
    ])
    func strangeAnswersDoNoHarm(_ data: String) async throws {
        try await CannedServer.run({ _ in .json(200, #"{"code":0,"data":\#(data)}"#) }) { _, url in
            for command in [
                ["rooms"], ["rooms", "show", "r"], ["rooms", "play-urls", "r"], ["rooms", "push-url", "r"], ["rooms", "renew", "r"],
                ["rooms", "members", "r"],
                ["streams"], ["streams", "show", "a/b"], ["streams", "stats", "a/b"], ["streams", "published"], ["streams", "forbidden"],
                ["sessions"], ["sessions", "trace", "1"],
                ["events", "list"], ["webhooks", "deliveries"], ["webhooks", "deliveries", "redeliver", "1"],
            ] {
                let outcome = try await ClientProcess.run(try CLI(server: url).line(command))
                #expect(outcome.status == 0, "\(command): \(outcome.status) \(outcome.errors)")
            }
        }
    }

    /// Outside a terminal, every column is whole, aligned and without colour.
    @Test func tablesInPipes() async throws {
        let long = String(repeating: "long ", count: 60)
        let list = [Self.room("r1", title: "前門"), Self.room("room-2", title: long + #"\u001b[31m"#, state: "forbidden")]
        try await CannedServer.run({ _ in .json(200, #"{"code":0,"data":{"list":[\#(list.joined(separator: ","))],"total":2}}"#) }) {
            _, url in
            let outcome = try await CLI(server: url)("rooms")
            let lines = outcome.lines
            #expect(lines.count == 3 && outcome.errors.isEmpty)
            #expect(lines[0] == "ROOM    STATE      BECAUSE  FOR  ONLINE  PEAK  PUSHES  OWNER  TITLE")
            #expect(lines[1] == "r1      live       media      -       3    12     1/2  -      前門")
            #expect(lines[2].hasSuffix(long + #"\u{1b}[31m"#))
        }
    }

    /// On a terminal lines fit the width, and states have colours unless NO_COLOR is set.
    @Test func tablesOnTerminals() async throws {
        let list = [Self.room("r1", title: "前門"), Self.room("room-2", title: String(repeating: "long ", count: 60))]
        try await CannedServer.run({ _ in .json(200, #"{"code":0,"data":{"list":[\#(list.joined(separator: ","))],"total":2}}"#) }) {
            _, url in
            func terminal(_ prefix: String) async throws -> String {
                let command = "stty cols 80; \(prefix) \(try EarshotProcess.binary()) rooms --server \(url)"
                let shown = try await ClientProcess.run(["-u", "NO_COLOR", "TERM=xterm", "script", "-qec", command, "/dev/null"])
                #expect(shown.status == 0)
                return shown.text.replacingOccurrences(of: "\r", with: "")
            }
            let plain = try await terminal("NO_COLOR=1").split(separator: "\n")
            #expect(plain.count == 3, "\(plain)")
            #expect(plain.last?.hasSuffix("…") == true && plain.last?.count == 80, "\(plain)")
            let coloured = try await terminal("env")
            #expect(coloured.contains("\u{1B}[32mlive\u{1B}[0m"), "\(coloured)")
            #expect(!plain.joined().contains("\u{1B}"))
        }
    }

    /// `… | head` is no failure, and stops fetching further pages.
    @Test func aClosedPipeEndsQuietly() async throws {
        try await CannedServer.run(Self.pages(1_000_000)) { server, url in
            let command = "\(try EarshotProcess.binary()) rooms list --all --quiet --server \(url) | head -n 3; echo ${PIPESTATUS[0]}"
            let outcome = try await ClientProcess.run(["bash", "-c", command])
            #expect(outcome.lines == ["r0", "r1", "r2", "0"])
            #expect(outcome.errors.isEmpty, "\(outcome.errors)")
            #expect(server.requests.count < 1_000)
        }
    }

    @Test func aFullDiskIsSaid() async throws {
        try await CannedServer.run(Self.pages(10)) { _, url in
            let command = "\(try EarshotProcess.binary()) rooms list --server \(url) > /dev/full; echo $?"
            let outcome = try await ClientProcess.run(["bash", "-c", command])
            #expect(outcome.lines == ["1"])
            #expect(outcome.errors.contains("cannot write the output: no space left on device"), "\(outcome.errors)")
        }
    }
}
