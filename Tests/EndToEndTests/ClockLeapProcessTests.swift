import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// The machine's clock leaps under a running server: libfaketime sets the wall clock and leaves the monotonic ones alone.
@Suite(.serialized) struct ClockLeapProcessTests {
    /// Starts a program with a wall clock that ``set(_:)`` moves.
    private struct FakeTime {
        let file: URL

        init(in directory: URL) throws {
            self.file = directory.appendingPathComponent("faketime")
            try self.write("+0")
        }

        /// Sets the offset to the right time. Never negative: the library would delay libdispatch's timers by as much.
        func set(_ offset: String) async throws {
            try self.write(offset)
            // Until the program has read it, within two seconds. To read it at each look at the clock takes a core.
            try await Task.sleep(for: .milliseconds(2_200))
        }

        private func write(_ offset: String) throws {
            // Atomic: the program may read it at any time.
            try "\(offset)\n".write(to: self.file, atomically: true, encoding: .utf8)
        }

        func under() throws -> [String] {
            let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
            let library = folders.map { "\($0)/faketime/libfaketimeMT.so.1" }.first(where: FileManager.default.fileExists)
            return [
                "LD_PRELOAD=\(try library.orThrow())", "FAKETIME_TIMESTAMP_FILE=\(self.file.path)", "FAKETIME_CACHE_DURATION=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1",
                // The library changes the environment of the first program, and Swift then does not find its arguments.
                "env",
            ]
        }
    }

    private struct API {
        let server: EarshotProcess

        func get(_ path: String) async throws -> JSON {
            try await HTTPAnswer.get("\(self.server.http)/api/v1/\(path)", token: self.server.token).json()["data"]
        }

        func post(_ path: String, _ body: String? = nil) async throws -> HTTPAnswer {
            try await HTTPAnswer.call(
                "POST", "\(self.server.http)/api/v1/\(path)", body: body.map { Data($0.utf8) }, token: self.server.token)
        }

        func events(_ prefix: String = "clock.") async throws -> [String] {
            try await self.get("events?limit=1000")["list"].list.compactMap { $0["kind"].string }.filter { $0.hasPrefix(prefix) }
        }

        func finished() async throws -> [String] {
            try await self.get("recordings?limit=1000")["list"].list.filter { $0["state"].string == "finished" }.compactMap {
                $0["recordingId"].string
            }
        }
    }

    private static func seconds(_ text: String?) throws -> Double {
        let format = ISO8601DateFormatter()
        format.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        return try format.date(from: text ?? "").orThrow().timeIntervalSince1970
    }

    private static func lines(_ server: EarshotProcess, _ word: String) -> [String] {
        server.process.errorsSoFar.split(separator: "\n").map(String.init).filter { $0.contains(word) }
    }

    /// Records a few seconds of a new stream.
    private static func record(_ name: String, _ file: String, _ server: EarshotProcess) async throws {
        let api = API(server: server)
        let before = try await api.finished().count
        try await ClientProcess.during(FFmpeg.push(file, to: "\(server.rtmp)/live/\(name)")) { push in
            _ = try await push.outcome()
        }
        try await eventually("the recording of \(name)") { try await api.finished().count > before }
    }

    /// The clock leaps a week ahead for some seconds, as by a time server's mistake.
    @Test func secondsOfAWeekDestroyNothing() async throws {
        let file = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 2)
        try await Fixture.withDirectory { directory in
            let time = try FakeTime(in: directory)
            let config = directory.appendingPathComponent("earshot.yaml")
            try """
            recording: {apps: [live], retention: 24h}
            rooms: {policy: {neverStarted: 1h, grace: 2s, cleanStop: 1s, maxDuration: 12h}}
            """.write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: try time.under()) { server in
                let api = API(server: server)
                #expect(try await api.post("rooms", #"{"roomId":"waiting"}"#).status == 201)
                try await Self.record("before", file, server)
                let long = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 60)
                try await ClientProcess.during(FFmpeg.pushForEver(long, to: "\(server.rtmp)/live/cam1")) { _ in
                    try await eventually("the room to be live") { try await api.get("rooms/cam1")["state"].string == "live" }
                    let created = try await api.get("rooms/cam1")["createdAt"].string
                    try await time.set("+7d")
                    try await eventually("the leap to be told") { try await api.events() == ["clock.leapt"] }
                    // The server looks for old recordings every 20 s.
                    try await Task.sleep(for: .seconds(21))
                    try await Self.record("during", file, server)
                    try await time.set("+0")
                    try await Task.sleep(for: .seconds(12))
                    try await Self.record("after", file, server)
                    #expect(try await api.finished().count == 3)
                    let room = try await api.get("rooms/cam1")
                    #expect(room["state"].string == "live" && room["createdAt"].string == created)
                    #expect(try await api.get("rooms/waiting")["state"].string == "created")
                    #expect(try await api.events() == ["clock.leapt"])
                    #expect(Self.lines(server, "clock").count == 1, "\(Self.lines(server, "clock"))")
                    // Timestamps are right.
                    #expect(try await api.post("rooms/waiting/close").status == 200)
                    let last = try await api.get("rooms/waiting/events?limit=100")["list"].list.last
                    let closedAt = try Self.seconds(last?["at"].string)
                    #expect(abs(closedAt - Date().timeIntervalSince1970) < 30)
                    for recording in try await api.get("recordings?limit=1000")["list"].list {
                        let startedAt = try Self.seconds(recording["startedAt"].string)
                        #expect(abs(startedAt - Date().timeIntervalSince1970) < 300)
                    }
                }
            }
        }
    }

    /// Signed URLs and tokens follow the machine's clock at once, two hours ahead and back; rooms keep their time.
    @Test func credentialsGoByTheMachinesClock() async throws {
        try await Fixture.withDirectory { directory in
            let time = try FakeTime(in: directory)
            let config = directory.appendingPathComponent("earshot.yaml")
            try "access: {playFrom: none}\nhttp: {firstWait: 1s}\n".write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: try time.under()) { server in
                let api = API(server: server)
                #expect(try await api.post("rooms", #"{"roomId":"cam1"}"#).status == 201)
                let created = try await api.get("rooms/cam1")["createdAt"].string
                func urls() async throws -> [String] {
                    var urls: [String] = []
                    for scheme in ["txSecret", "jwt"] {
                        let made = try await api.get("rooms/cam1/play-urls?lifetime=3600&scheme=\(scheme)")["streams"][0]
                        urls.append(try made["flv"].string.orThrow())
                    }
                    return urls
                }
                /// Nobody publishes: a good credential finds no stream, and any other is refused.
                func answers(_ urls: [String]) async throws -> [String] {
                    var answers: [String] = []
                    for url in urls {
                        let answer = try await HTTPAnswer.get(url)
                        answers.append("\(answer.status)\(answer.text.contains("expired") ? " expired" : "")")
                    }
                    return answers
                }
                let before = try await urls()
                #expect(try await answers(before) == ["404", "404"])
                try await time.set("+2h")
                #expect(try await answers(before) == ["403 expired", "403 expired"])
                let during = try await urls()
                #expect(try await answers(during) == ["404", "404"])
                try await eventually("the leap to be told") { try await api.events() == ["clock.leapt"] }
                #expect(try await api.get("rooms/cam1")["createdAt"].string == created)
                try await time.set("+0")
                #expect(try await answers(before + during) == ["404", "404", "404", "404"])
            }
        }
    }

    /// The server and its rooms adopt a leap that lasts, and the way back; a restart uses the machine's time.
    @Test func aLeapThatHoldsIsFollowed() async throws {
        try await Fixture.withDirectory { directory in
            let time = try FakeTime(in: directory)
            let config = directory.appendingPathComponent("earshot.yaml")
            try "rooms: {clockHold: 4s, policy: {neverStarted: 1h}}\n".write(to: config, atomically: true, encoding: .utf8)
            let week = 7.0 * 86_400
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: try time.under()) { server in
                let api = API(server: server)
                #expect(try await api.post("rooms", #"{"roomId":"cam1"}"#).status == 201)
                func createdAt() async throws -> Double { try Self.seconds(try await api.get("rooms/cam1")["createdAt"].string) }
                let before = try await createdAt()
                #expect(abs(before - Date().timeIntervalSince1970) < 60)
                try await time.set("+7d")
                try await eventually("the leap to be followed") { abs(try await createdAt() - before - week) < 2 }
                // One event, which announces the time of adoption on the old clock.
                let told = try await api.get("events?limit=1000")["list"].list.filter { $0["kind"].string == "clock.leapt" }
                let adoptsAt = try Self.seconds(told.first?["data"]["adoptsAt"].string)
                let toldAt = try Self.seconds(told.first?["at"].string)
                #expect(told.count == 1 && abs(adoptsAt - 4 - toldAt) < 2, "\(told)")
                #expect(try await api.get("rooms/cam1")["state"].string == "created")
                try await time.set("+0")
                try await eventually("the way back") { abs(try await createdAt() - before) < 2 }
                #expect(try await api.events() == ["clock.leapt", "clock.leapt"])
                #expect(Self.lines(server, "clock").count == 2, "\(Self.lines(server, "clock"))")
                server.process.send(SIGTERM)
                #expect(try await server.process.outcome().status == 0)
            }
            // The clock is set wrong while the server is stopped.
            try await time.set("+7d")
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: try time.under()) { server in
                let api = API(server: server)
                #expect(try await api.post("rooms", #"{"roomId":"cam2"}"#).status == 201)
                let created = try Self.seconds(try await api.get("rooms/cam2")["createdAt"].string)
                #expect(abs(created - Date().timeIntervalSince1970) < 60)
                #expect(try await api.get("rooms/cam1")["state"].string == "created")
            }
        }
    }
}
