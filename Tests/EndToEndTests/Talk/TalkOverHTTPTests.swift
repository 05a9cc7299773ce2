import Foundation
import NIOCore
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import SignalCheck
import TestSupport
import Testing

@testable import EarshotServer
@testable import Support

/// A talk channel's mixes and voices over HTTP and WebSocket, with real players.
@Suite struct TalkOverHTTPTests {
    /// Two members speak; ffmpeg hears both in the mix of all, and one in the mix without the other.
    @Test(.timeLimit(.minutes(5)), arguments: ["mix.flv", "mix.mp4", "mix-ann.flv", "mix-ann.mp4", "ben.flv"])
    func ffmpegHears(_ name: String) async throws {
        try await TalkRoom.run { room in
            try await Self.speaking(in: room) {
                let raw = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).f32")
                defer { try? FileManager.default.removeItem(at: raw) }
                let began = StallMeter.pool.start()
                let heard = try await ClientProcess.run([
                    "ffmpeg", "-v", "error", "-i", "\(room.server.http)/talk/r1/\(name)", "-t", "3", "-ac", "1", "-ar", "48000", "-f",
                    "f32le",
                    raw.path,
                ])
                #expect(heard.status == 0, "\(heard.errors)")
                // Meanwhile neither the microphones nor the mix went on.
                let stalled = try await StallMeter.pool.stalled(from: began, to: .now) / .seconds(1)
                let samples = try RawSamples.read(raw)
                #expect(samples.count >= 139_000 - Int(stalled * 48_000), "the machine stood still for \(stalled) s")
                for (frequency, isHeard) in [(440.0, name.hasPrefix("mix.")), (1_000, true)] {
                    let levels = Tone.levels(samples, frequency)
                    if isHeard {
                        // Half of the time: a microphone that its machine holds up pauses.
                        let share = Double(levels.count { $0 > -20 }) / Double(max(1, levels.count))
                        #expect(share > 0.5 - stalled / 3, "\(frequency) Hz, the machine stood still for \(stalled) s: \(levels)")
                    } else {
                        #expect(levels[levels.count - 2] < -50, "\(frequency) Hz: \(levels)")
                    }
                }
            }
        }
    }

    /// Listeners of every protocol get the same runs of AAC, none lost and none twice, at even times.
    @Test(.timeLimit(.minutes(5))) func sameRunsEverywhere() async throws {
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix")
            try await Self.speaking(in: room) {
                let url = "\(room.server.http)/talk/r1/mix"
                let players = try ["\(url).flv", "\(url).mp4"].map { url in
                    try ClientProcess(["ffmpeg", "-v", "error", "-i", url, "-c", "copy", "-frames:a", "140", "-f", "framecrc", "-"])
                }
                defer { for player in players { player.send(SIGKILL) } }
                for player in players {
                    let outcome = try await player.outcome()
                    #expect(outcome.status == 0, "\(outcome.errors)")
                    let runs = outcome.text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
                        line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
                    }
                    let sums = runs.compactMap(\.last)
                    try #require(sums.count == 140)
                    func all() throws -> [String] {
                        try ear.media().filter { $0.message.type == .audio }.map { try Self.sum($0.message.payload) }
                    }
                    try await eventually("the ear to have them") {
                        let all = try all()
                        return all.firstIndex(of: sums[0]).map { all.count >= $0 + 140 } ?? true
                    }
                    let sent = try all()
                    let start = try #require(sent.firstIndex(of: sums[0]), "the first run is none of the mix")
                    #expect(sent.count >= start + 140 && Array(sent[start..<(start + 140)]) == sums)
                }
            }
            try room.expectEven(ear)
        }
    }

    /// Listeners are admitted or refused as over RTMP, with an answer for each refusal.
    @Test(.timeLimit(.minutes(5))) func admission() async throws {
        try await TestServer.run({
            TalkRoom<TestServer>.patient(&$0)
            $0.access.publishFrom = []
            $0.access.playFrom = []
        }) { server in
            for room in ["r1", "early"] { #expect(try await server.call("POST", "rooms", #"{"roomId":"\#(room)"}"#).status == 201) }
            let key = try await server.call("POST", "rooms/r1/push-url", "{}").json()["data"]["streamKey"].string.orThrow()
            let camera = try await RawClient.publishing(server.addresses.rtmp.port, key)
            camera.send(.video, SyntheticTag.videoHeader)
            camera.send(.video, SyntheticTag.video(1, isKeyframe: true, bytes: 2_000))
            try await server.wait("rooms/r1") { $0["state"].string == "live" }
            let made = try await server.call("POST", "rooms/r1/talk/token", #"{"userId":"ann","role":"listener"}"#).json()["data"]
            let token = try made["token"].string.orThrow()
            let early = try await server.call("POST", "rooms/early/talk/token", #"{"userId":"ann"}"#).json()["data"]["token"].string
                .orThrow()
            for (target, status, rule) in [
                ("r1/mix.mp4", 403, "credential_missing"), ("r1/mix.flv?token=rubbish", 403, "credential_wrong"),
                ("r1/mix.mp4?token=\(early)", 403, "credential_wrong"), ("early/mix.mp4?token=\(early)", 410, "room_closed"),
                ("r1/mix-.mp4?token=\(token)", 400, "bad_name"), ("r1/a%20b.flv?token=\(token)", 400, "bad_name"),
                ("mix.mp4?token=\(token)", 400, "bad_name"), ("r1/x/mix.flv?token=\(token)", 400, "bad_name"),
                ("r1/\(String(repeating: "a", count: 65)).mp4?token=\(token)", 400, "bad_name"),
                ("r1/nobody.flv?token=\(token)", 404, nil), ("r1/mix.m3u8?token=\(token)", 404, nil),
            ] as [(String, Int, String?)] {
                let answer = try await HTTPAnswer.get("\(server.http)/talk/\(target)")
                #expect(answer.status == status, "\(target): \(answer.text)")
                #expect(try answer.json()["error"]["rule"].string == rule, "\(target): \(answer.text)")
                #expect(try answer.json()["message"].string?.isEmpty == false)
            }
            // URLs that the API hands out are admitted, by every transport.
            let play = try await server.api("rooms/r1/play-urls")["talk"]
            let user = try await server.api("rooms/r1/play-urls?userId=ann")["talk"]
            for url in [made["mp4"], made["flv"], play["mp4"], play["flv"], user["mp4"], user["flv"]] {
                try await Self.listening(try url.string.orThrow()) {
                    let talk = try await server.api("rooms/r1/talk")
                    #expect(talk["listening"].int == 1)
                }
                try await server.wait("rooms/r1/talk") { $0["listening"].int == 0 }
            }
            #expect(made["mp4"].string?.contains("/talk/r1/mix-ann.mp4?token=") == true)
            #expect(!server.lines.all.contains { $0.contains(token) }, "a credential is logged")
            await camera.close()
        }
    }

    /// No room, and the ends of present listeners.
    @Test(.timeLimit(.minutes(5))) func aRoomThatIsNone() async throws {
        try await TalkRoom.run { room in
            let answer = try await HTTPAnswer.get("\(room.server.http)/talk/nowhere/mix.mp4")
            #expect(try answer.status == 404 && answer.json()["error"]["rule"].string == "no_room", "\(answer.text)")
            // A room in which nobody speaks is silent.
            try await Self.listening("\(room.server.http)/talk/r1/mix.flv") {}
        }
    }

    /// Listeners of all protocols have the same places.
    @Test(.timeLimit(.minutes(5))) func aFullChannel() async throws {
        try await TalkRoom.run({ $0.talk.settings.listeners = 2 }) { room in
            let ear = try await room.listener("mix")
            let url = "\(room.server.http)/talk/r1/mix"
            try await Self.listening("\(url).mp4") {
                let third = try await HTTPAnswer.get("\(url)-ann.flv")
                #expect(try third.status == 503 && third.json()["error"]["rule"].string == "too_many_viewers", "\(third.text)")
                #expect(try third.json()["message"].string?.contains("all 2 listener places are taken") == true)
                let other = try await room.client()
                try await other.createStreamAndTryToPlay("r1/mix")
                try await other.waitUntilClosed()
                #expect(other.statuses.last?.description.contains("[too_many_viewers]") == true, "\(other.statuses)")
            }
            // The place is free again, whichever way the listener went.
            try await room.server.wait("rooms/r1/talk") { $0["listening"].int == 1 }
            try await Self.listening("\(url).flv") {}
            try await eventually("a self-check that is right") { try await room.server.api("selfcheck")["ok"].bool == true }
            await ear.close()
        }
    }

    private enum End: String, CaseIterable, Sendable { case session, participant, forbidden, closed }

    /// Each body ends properly and says why where its protocol can; the session is listed until then.
    @Test(.timeLimit(.minutes(5)), arguments: End.allCases) private func ends(_ end: End) async throws {
        try await TalkRoom.run { room in
            let server = room.server
            let token = try await room.post("token", #"{"userId":"ann"}"#).json()["data"]["token"].string.orThrow()
            let bodies = try ["flv", "mp4"].map {
                try ClientProcess(["curl", "-sSN", "-o", "/dev/null", "\(server.http)/talk/r1/mix.\($0)?token=\(token)"])
            }
            defer { for body in bodies { body.send(SIGKILL) } }
            let socket = try await WebSocketClient.open(server.addresses.http.port, "/talk/r1/mix-ann.mp4?token=\(token)")
            try await eventually("media over the WebSocket") { try socket.all.count { $0.opcode == 2 } >= 3 }
            #expect(try socket.messages.first?["mimeType"].string == #"audio/mp4; codecs="mp4a.40.2""#)
            func sessions() async throws -> [JSON] {
                try await server.api("sessions?role=player")["list"].list.filter { $0["app"].string == "talk" }
            }
            try await eventually("three sessions") { try await sessions().count == 3 }
            #expect(Set(try await sessions().compactMap { $0["transport"].string }) == ["http-flv", "http-fmp4", "ws-fmp4"])
            #expect(try await server.api("sessions?stream=talk/r1/mix-ann")["list"].list.count == 1)
            let reason: CloseReason
            switch end {
            case .session:
                for session in try await sessions() {
                    let id = try session["sessionId"].int.orThrow()
                    #expect(try await server.call("DELETE", "sessions/\(id)").status == 200)
                }
                reason = .kicked
            case .participant:
                #expect(try await room.post("members/ann/kick", "{}").status == 200)
                reason = .kicked
            case .forbidden:
                #expect(try await server.call("POST", "rooms/r1/forbid", "{}").status == 200)
                reason = .forbidden
            case .closed:
                #expect(try await server.call("POST", "rooms/r1/close").status == 200)
                reason = .roomEnded
            }
            for body in bodies { #expect(try await body.outcome().status == 0, "the body ends as it should") }
            try await eventually("the WebSocket's end") { try socket.closeCode == 1008 }
            let words = try socket.all.first { $0.opcode == 8 }.map { String(decoding: $0.payload.dropFirst(2), as: UTF8.self) }
            #expect(words == reason.rawValue)
            // A body's end is sent before its connection is counted as ended.
            try await eventually("three ends") { server.closed(reason) >= 3 }
            try await eventually("no session") { try await sessions().isEmpty }
            try await eventually("no place") { try await room.talk()["listening"].int == 0 }
            if end == .participant {
                let again = try await HTTPAnswer.get("\(server.http)/talk/r1/mix.mp4?token=\(token)")
                #expect(again.status == 403, "\(again.text)")
            }
            await socket.close()
            try await eventually("a self-check that is right") { try await server.api("selfcheck")["ok"].bool == true }
        }
    }

    // MARK: Helpers

    /// Ann speaks at 440 Hz and Ben at 1,000 Hz while the body runs.
    private static func speaking(in room: TalkRoom<TestServer>, _ body: () async throws -> Void) async throws {
        let (ann, ben) = (try await room.talker("ann"), try await room.talker("ben"))
        try await Microphone(ann).speaking(Tone.sine(440)) {
            try await Microphone(ben).speaking(Tone.sine(1_000)) {
                try await eventually("both voices") {
                    try await room.talk()["members"].list.count { $0["speaking"].bool == true } == 2
                }
                try await body()
            }
        }
        for client in [ann, ben] { await client.close() }
    }

    /// Runs the body while curl gets media from this address.
    private static func listening(_ url: String, _ body: () async throws -> Void) async throws {
        let player = try ClientProcess(["curl", "-sSNf", url])
        defer { player.send(SIGKILL) }
        try await eventually("media from \(url.prefix { $0 != "?" }): \(player.errorsSoFar)") { player.outputSoFar.count > 2_000 }
        try await body()
    }

    /// The sum that ffmpeg's framecrc gives an AAC run (RFC 1950 §8.2, begun at 0). Its FLV header has two bytes.
    private static func sum(_ message: ByteBuffer) throws -> String {
        var (a, b) = (UInt32(0), UInt32(0))
        for byte in message.readableBytesView.dropFirst(2) {
            a = (a + UInt32(byte)) % 65_521
            b = (b + a) % 65_521
        }
        let hex = String(b << 16 | a, radix: 16)
        return "0x\(String(repeating: "0", count: 8 - hex.count))\(hex)"
    }
}
