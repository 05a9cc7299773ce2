import Foundation
@testable import Outbound
import RTMP
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Access

@Suite struct HookTests {
    private static func door(
        _ port: Int, timeoutMs: Int64 = 20_000, lines: LogLines = LogLines(), _ configure: (inout ServerConfig) -> Void = { _ in }
    ) -> Doorkeeper {
        Doorkeeper(lines: lines) { config in
            config.hooks.onPublish = "http://127.0.0.1:\(port)/publish"
            config.hooks.onPlay = "http://127.0.0.1:\(port)/play"
            config.hooks.onUnpublish = "http://127.0.0.1:\(port)/unpublish"
            config.hooks.onStop = "http://127.0.0.1:\(port)/stop"
            config.hooks.timeoutMs = timeoutMs
            configure(&config)
        }
    }

    private static let pass = AdmissionPass(identity: "address 127.0.0.1", rank: 7, user: nil, isVerified: false, parameters: "")

    /// Asks the hook about a request without a credential.
    private func ask(
        _ door: Doorkeeper, _ query: String = "", action: AdmissionRequest.Action = .publish, pass: AdmissionPass = Self.pass
    ) async throws -> Result<AdmissionPass, AdmissionRefusal> {
        await door.rules.ask(try Doorkeeper.request(query, action: action, from: "127.0.0.1"), pass: pass)
    }

    @Test func whatAHookIsTold() async throws {
        try await ScriptedServer.run { _ in
            .status(200, #"{"code":0}"#)
        } _: { server in
            let door = Self.door(server.port)
            let query = "\(TestCredential.signed())&own=secret&key=theirs"
            let request = try Doorkeeper.request(query, from: "198.51.100.7")
            let pass = try door.rules.check(request, nowSeconds: Doorkeeper.now).get()
            var expected = pass
            expected.isVerified = true
            #expect(try await door.rules.ask(request, pass: pass).get() == expected)
            let seen = try server.requests.first.orThrow()
            #expect(seen.line == "POST /publish HTTP/1.1")
            #expect(seen.headers["content-type"] == "application/json")
            #expect(seen.json["action"].string == "on_publish")
            #expect(seen.json["app"].string == "live" && seen.json["stream"].string == "test")
            #expect(seen.json["ip"].string == "198.51.100.7" && seen.json["session"].string == "42")
            // The hook gets the application's parameters, but not this server's credentials.
            #expect(seen.json["param"].string == "?txSecret=***&txTime=7FFFFFFF&own=secret&key=theirs")
            #expect(seen.json["verified"].value as? Bool == true)
            #expect(seen.json["reason"].value == nil)
        }
    }

    /// Taken out of the settings while a request that it was to decide is under way, it has not allowed it.
    @Test(arguments: [AdmissionRequest.Action.publish, .play]) func aHookThatIsTakenOut(_ action: AdmissionRequest.Action) async throws {
        let door = Self.door(9)
        let request = try Doorkeeper.request("", action: action)
        let pass = try door.rules.check(request, nowSeconds: Doorkeeper.now).get()
        #expect(door.rules.mustAsk(action, pass))
        door.settings.update { ($0.hooks.onPublish, $0.hooks.onPlay) = (nil, nil) }
        #expect(door.rules.mustAsk(action, pass))
        #expect(await door.rules.ask(request, pass: pass).refusal == .hookUnavailable)
        #expect(door.rules.check(request, nowSeconds: Doorkeeper.now).refusal == .credentialMissing)
        // A client that is admitted by its address needs no hook.
        door.settings.update { ($0.access.publishFrom, $0.access.playFrom) = (CIDR.any, CIDR.any) }
        let open = try door.rules.check(request, nowSeconds: Doorkeeper.now).get()
        #expect(!door.rules.mustAsk(action, open))
        #expect(try await door.rules.ask(request, pass: open).get() == open)
    }

    @Test func questionsAreSigned() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            _ = try await self.ask(Self.door(server.port), action: .play).get()
            let seen = try server.requests.first.orThrow()
            #expect(seen.line == "POST /play HTTP/1.1" && seen.json["action"].string == "on_play")
            let stamp = try Int64(seen.headers["x-earshot-timestamp"] ?? "").orThrow()
            #expect(abs(stamp - Int64(Date().timeIntervalSince1970)) < 60)
            let expected = OutboundSignature.headers(key: TestCredential.keys.webhookKey, body: seen.body, atSeconds: stamp)
            #expect(seen.headers["x-earshot-signature"] == expected.last?.value)
            // By Python: hmac.new(b"hook-key", b'1795255200.{"a":1}', "sha256").hexdigest()
            let vector = OutboundSignature.headers(key: "hook-key", body: Array(#"{"a":1}"#.utf8), atSeconds: 1_795_255_200)
            #expect(vector.map(\.value) == ["1795255200", "sha256=aae9f867aed04eb532d910a80177f528781f9ffff9d79d1d10f766ace01766a9"])
        }
    }

    /// Status, body, and the client's refusal.
    @Test(arguments: [
        (200, #"{"code":0}"#, nil as CloseReason?), (200, "0", nil), (200, " 0\r\n", nil), (200, #"{"code":0,"data":{"x":[1]}}"#, nil),
        (200, #"{"code":1}"#, .hookDenied), (200, "1", .hookDenied), (200, #"{"code":-5,"message":"no"}"#, .hookDenied),
        (403, "", .hookDenied), (401, #"{"code":0}"#, .hookDenied), (404, "0", .hookDenied), (429, "slow down", .hookDenied),
        (201, #"{"code":0}"#, .hookUnavailable), (204, "", .hookUnavailable), (302, #"{"code":0}"#, .hookUnavailable),
        (500, #"{"code":0}"#, .hookUnavailable), (503, "0", .hookUnavailable), (200, "", .hookUnavailable), (200, "OK", .hookUnavailable),
        (200, "true", .hookUnavailable), (200, "null", .hookUnavailable), (200, "{}", .hookUnavailable), (200, "[0]", .hookUnavailable),
        (200, #"{"code":"0"}"#, .hookUnavailable), (200, #"{"code":null}"#, .hookUnavailable), (200, #"{"code":false}"#, .hookUnavailable),
        (200, #"{"Code":0}"#, .hookUnavailable), (200, #"{"code":0"#, .hookUnavailable), (200, "<html>0</html>", .hookUnavailable),
        (200, #"{"code":99999999999999999999}"#, .hookUnavailable), (200, #"{"code":0,"user":"a b"}"#, .hookUnavailable),
        (200, #"{"code":0,"id":""}"#, .hookUnavailable), (200, #"{"code":0,"id":5}"#, .hookUnavailable),
        (200, "\u{FEFF}x", .hookUnavailable), (200, "\u{FEFF}{\"code\":0}", nil), (200, #"{"code":0.0,"id":null,"user":null}"#, nil),
        (200, #"{"code":0.5}"#, .hookUnavailable), (200, #"{"code":0,"code":1}"#, .hookUnavailable),
    ])
    func answers(_ status: Int, _ body: String, _ reason: CloseReason?) async throws {
        try await ScriptedServer.run { _ in
            .status(status, body)
        } _: { server in
            let door = Self.door(server.port)
            for action in [AdmissionRequest.Action.publish, .play] {
                let answer = try await self.ask(door, action: action)
                #expect(answer.refusal == reason)
            }
            #expect(server.requests.count == 2)
        }
    }

    /// The log line about an answer that could not be read.
    @Test(arguments: [
        (200, "OK", "its answer has 2 bytes and is neither {\"code\":…} nor a number: line 1, column 1: no JSON value begins like this"),
        (200, "{}", "its answer has 2 bytes and is neither {\"code\":…} nor a number: it has no code"),
        (200, #"{"code":"0"}"#, "its answer has 12 bytes and is neither {\"code\":…} nor a number: its code is not a whole number"),
        (
            200, #"{"code":0,"id":5}"#,
            "its answer has 17 bytes and is neither {\"code\":…} nor a number: its id is a number, expected a string"
        ),
        (
            200, #"{"code":0,}"#,
            "its answer has 11 bytes and is neither {\"code\":…} nor a number: line 1, column 11: a comma with nothing after it"
        ),
        (500, #"{"code":0}"#, "it answered HTTP 500; expected 200"),
    ])
    func whatIsWrongWithAnAnswer(_ status: Int, _ body: String, _ problem: String) {
        #expect(throws: HookAnswer.Problem(description: problem)) {
            try HookAnswer(OutboundAnswer(status: status, body: Array(body.utf8)))
        }
    }

    @Test func theQuestionIsOneLineOfJSON() throws {
        var pass = Self.pass
        pass.user = "al\"ice"
        let request = try Doorkeeper.request("own=1/2", from: "198.51.100.7")
        let asked = HookQuestion("on_publish", request, pass, hiding: .standard, atMs: 1_795_255_200_999)
        #expect(
            String(decoding: asked.body, as: UTF8.self)
                == #"{"action":"on_publish","app":"live","client_id":"42","ip":"198.51.100.7","name":"test","param":"?own=1/2","session":"42","#
                + #""stream":"test","time":"2026-11-21T10:00:00Z","user":"al\"ice","verified":false}"#)
        let ended = HookQuestion("on_stop", request, pass, hiding: .standard, reason: .tooSlow, atMs: 0)
        #expect(String(decoding: ended.body, as: UTF8.self).contains(#""param":"?own=1/2","reason":"too_slow","session""#))
    }

    /// `verified` is what this server found, in the notice of a push's end as in its question: the hook's own yes does not count.
    @Test(arguments: [false, true]) func verifiedIsTheSameAtTheEnd(_ isSigned: Bool) async throws {
        try await ScriptedServer.run { _ in
            .status(200, #"{"code":0}"#)
        } _: { server in
            let door = Self.door(server.port)
            var pass = Self.pass
            pass.isVerified = isSigned
            let admitted = try await self.ask(door, pass: pass).get()
            #expect(admitted.isVerified && admitted.isVerifiedByHook == !isSigned)
            let request = try Doorkeeper.request("", from: "127.0.0.1")
            for (action, pass) in [("on_publish", pass), ("on_unpublish", admitted)] {
                let told = String(decoding: HookQuestion(action, request, pass, hiding: .standard).body, as: UTF8.self)
                #expect(told.contains("\"verified\":\(isSigned)"), "\(told)")
            }
        }
    }

    @Test func aHookMaySayWhoItIs() async throws {
        func pass(_ body: String) async throws -> AdmissionPass {
            try await ScriptedServer.run { _ in
                .status(200, body)
            } _: { server in
                try await self.ask(Self.door(server.port)).get()
            }
        }
        #expect(
            try await pass(#"{"code":0,"id":"device 7"}"#)
                == AdmissionPass(identity: "hook device 7", rank: 0, user: nil, isVerified: true, parameters: "", isVerifiedByHook: true))
        #expect(
            try await pass(#"{"code":0,"user":"alice"}"#)
                == AdmissionPass(identity: "user alice", rank: 0, user: "alice", isVerified: true, parameters: "", isVerifiedByHook: true))
        #expect(try await pass(#"{"code":0,"user":"alice","id":"x"}"#).identity == "hook x")
        #expect(
            try await pass(#"{"code":0}"#)
                == AdmissionPass(
                    identity: "address 127.0.0.1", rank: 7, user: nil, isVerified: true, parameters: "", isVerifiedByHook: true))
    }

    @Test func itsMessageIsShownPlain() async throws {
        func message(_ body: String) async throws -> String {
            try await ScriptedServer.run { _ in
                .status(403, body)
            } _: { server in
                try await self.ask(Self.door(server.port)).message
            }
        }
        #expect(try await message(#"{"code":1,"message":"unknown device"}"#) == "The authorisation hook said no: unknown device")
        #expect(
            try await message(#"{"code":1,"message":"a\r\nb\u0000\u202ec\u001b[31m  d"}"#) == "The authorisation hook said no: a b c [31m d"
        )
        #expect(try await message("nonsense") == "The authorisation hook said no.")
        let long = try await message(#"{"code":1,"message":""# + String(repeating: "x", count: 5_000) + "\"}")
        #expect(long.count == "The authorisation hook said no: ".count + 200)
    }

    @Test func withoutAnAnswerNobodyComesIn() async throws {
        let lines = LogLines()
        let answers: [ScriptedServer.Answer] = [
            .silence, .close, .raw("garbage"), .raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"co"),
            .status(200, #"{"code":0,"x":""# + String(repeating: "x", count: 70_000) + "\"}"),
            .status(307, "", headers: ["Location": "/publish2"]),
        ]
        for answer in answers {
            try await ScriptedServer.run { _ in
                answer
            } _: { server in
                let door = Self.door(server.port, timeoutMs: 500, lines: lines)
                for action in [AdmissionRequest.Action.publish, .play] {
                    let start = StallMeter.pool.start()
                    let refused = try await self.ask(door, "key=theirs", action: action)
                    #expect(refused.refusal == .hookUnavailable, "\(answer)")
                    #expect(!refused.message.contains("127.0.0.1"), "the client learns nothing of the hook's address")
                    #expect(await StallMeter.pool.passed(since: start) < .seconds(5))
                }
            }
        }
        let port = try await ScriptedServer.run { _ in
            .close
        } _: {
            $0.port
        }
        #expect(try await self.ask(Self.door(port, lines: lines)).refusal == .hookUnavailable)
        #expect(await lines.comes("hook=on_publish", "Connection refused"))
        #expect(await lines.comes("hook=on_play", "no answer from http://127.0.0.1:", "within 500 ms"))
        #expect(!lines.contains("theirs"))
    }

    @Test func hooksAreHeldToTheTargetRules() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            let lines = LogLines()
            let door = Self.door(server.port, lines: lines) { $0.outbound.allowPrivate = [] }
            let answer = try await self.ask(door)
            #expect(answer.refusal == .hookUnavailable)
            #expect(server.connectionCount == 0)
            #expect(await lines.comes("outbound.allowPrivate"))
        }
    }

    @Test func whereNoHookIsSetNobodyIsAsked() async throws {
        let door = Doorkeeper { $0.hooks.onPlay = "http://127.0.0.1:1/" }
        #expect(!door.rules.hasHook(.publish) && door.rules.hasHook(.play))
        #expect(try await self.ask(door, action: .publish).get() == Self.pass)
        #expect(try await self.ask(door, action: .play).refusal == .hookUnavailable)
        door.rules.notifyEnded(try Doorkeeper.request(""), pass: Self.pass, reason: .clientClosed)
    }

    /// on_publish hangs with more requests than connections; on_play of the same host still answers.
    @Test func aDeadHookHoldsUpNoOther() async throws {
        try await ScriptedServer.run { request in
            request.line.contains("/publish") ? .silence : .status(200, "0")
        } _: { server in
            let door = Self.door(server.port, timeoutMs: 3_600_000)
            let dead = Task {
                await withTaskGroup(of: CloseReason?.self) { tasks in
                    for _ in 0..<100 { tasks.addTask { try? await self.ask(door).refusal } }
                    return await tasks.reduce(into: []) { $0.append($1) }
                }
            }
            try await eventually("the dead hook's questions") { server.requests.count >= 60 }
            // Answered at all, since the hanging requests would wait for an hour.
            for _ in 0..<20 { #expect(try await self.ask(door, action: .play).pass != nil) }
            dead.cancel()
            #expect(await dead.value == Array(repeating: .hookUnavailable, count: 100))
        }
    }

    @Test func endsAreToldWithoutWaiting() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            let door = Self.door(server.port)
            var pass = Self.pass
            pass.user = "alice"
            door.rules.notifyEnded(try Doorkeeper.request(TestCredential.signed(), from: "198.51.100.7"), pass: pass, reason: .mediaIdle)
            door.rules.notifyEnded(try Doorkeeper.request("", action: .play), pass: pass, reason: .tooSlow)
            try await eventually("both notices") { server.requests.count == 2 }
            let unpublish = try server.requests.first { $0.line == "POST /unpublish HTTP/1.1" }.orThrow()
            #expect(unpublish.json["action"].string == "on_unpublish" && unpublish.json["reason"].string == "media_idle")
            #expect(unpublish.json["user"].string == "alice" && unpublish.json["ip"].string == "198.51.100.7")
            #expect(unpublish.json["param"].string == "?txSecret=***&txTime=7FFFFFFF")
            let stop = try server.requests.first { $0.line == "POST /stop HTTP/1.1" }.orThrow()
            #expect(stop.json["action"].string == "on_stop" && stop.json["reason"].string == "too_slow")
            #expect(stop.headers["x-earshot-signature"]?.hasPrefix("sha256=") == true)
        }
    }

    @Test func noticesThatCannotWaitAreCounted() async throws {
        try await ScriptedServer.run { _ in
            .silence
        } _: { server in
            let lines = LogLines()
            let door = Self.door(server.port, timeoutMs: 60_000, lines: lines)
            let request = try Doorkeeper.request("")
            let start = StallMeter.pool.start()
            for _ in 0..<1_500 { door.rules.notifyEnded(request, pass: Self.pass, reason: .clientClosed) }
            // No call waited: that would have taken a minute per eight notices.
            #expect(await StallMeter.pool.passed(since: start) < .seconds(60))
            // 8 in flight, 1,000 queued.
            #expect(door.rules.lostReports.dropped == 1_500 - 8 - AuthorizationHooks.maxReports)
            #expect(await lines.comes("A hook's report was dropped", "hook=on_unpublish"))
            try await eventually("those on their way") { server.requests.count == 8 }
        }
    }

    @Test func noticesThatFailAreCountedAndTheNextGoOut() async throws {
        try await ScriptedServer.run { request in
            request.line.contains("/stop") ? .status(500, "") : .status(200, "0")
        } _: { server in
            let lines = LogLines()
            let door = Self.door(server.port, lines: lines)
            for _ in 0..<20 { door.rules.notifyEnded(try Doorkeeper.request("", action: .play), pass: Self.pass, reason: .clientClosed) }
            for _ in 0..<20 { door.rules.notifyEnded(try Doorkeeper.request(""), pass: Self.pass, reason: .clientClosed) }
            try await eventually("all notices") { server.requests.count == 40 && door.rules.lostReports.failed == 20 }
            #expect(door.rules.lostReports.dropped == 0)
            #expect(await lines.comes("A hook could not be notified", "HTTP 500", "hook=on_stop"))
        }
    }

    @Test func atTheEndNoticesAreWaitedFor() async throws {
        try await ScriptedServer.run { request in
            if request.line.contains("/stop") { return .silence }
            try? await Task.sleep(for: .milliseconds(100))
            return .status(200, "0")
        } _: { server in
            // Neither limit is met here, however long the tests beside this one keep the pool's threads.
            let door = Self.door(server.port, timeoutMs: 600_000)
            for _ in 0..<20 { door.rules.notifyEnded(try Doorkeeper.request(""), pass: Self.pass, reason: .serverShutdown) }
            await door.rules.finishReports(within: .seconds(600))
            #expect(server.requests.count == 20)
            // But it does not wait forever.
            door.rules.notifyEnded(try Doorkeeper.request("", action: .play), pass: Self.pass, reason: .serverShutdown)
            let start = StallMeter.pool.start()
            await door.rules.finishReports(within: .milliseconds(100))
            #expect(ContinuousClock.now - start >= .milliseconds(100))
            #expect(await StallMeter.pool.passed(since: start) < .seconds(5))
        }
    }
}
