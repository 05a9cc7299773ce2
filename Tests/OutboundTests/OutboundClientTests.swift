import Foundation
import LinkTransport
import NIOCore
import NIOSSL
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Outbound

@Suite struct OutboundClientTests {
    static func client(
        _ allowed: [CIDR] = CIDR.loopback, tls: TLSConfiguration? = nil, _ names: [String: HostResolver.Answer] = [:]
    ) -> OutboundClient {
        var config = ServerConfig().outbound
        config.allowPrivate = allowed
        let resolver = HostResolver { name in names[name] ?? .failure(.init(why: "no such name")) }
        return OutboundClient(config: config, resolver: resolver, tls: tls)
    }

    func post(
        _ client: OutboundClient, _ url: String, _ body: String = "{}", timeout: Duration = .seconds(20), pool: String = ""
    ) async -> Result<OutboundAnswer, OutboundError> {
        await client.post(
            url: url, headers: [("Content-Type", "application/json"), ("X-Test", "1")], body: Array(body.utf8), timeout: timeout, pool: pool
        )
    }

    @Test func bodyAndHeadersArriveAndTheAnswerComesBack() async throws {
        try await ScriptedServer.run { _ in
            .status(202, "thanks")
        } _: { server in
            let client = Self.client()
            let answer = try await self.post(client, "http://127.0.0.1:\(server.port)/a/b?c=d", #"{"x":1}"#).get()
            #expect(answer == OutboundAnswer(status: 202, body: Array("thanks".utf8)))
            let request = try server.requests.first.orThrow()
            #expect(request.line == "POST /a/b?c=d HTTP/1.1")
            #expect(request.text == #"{"x":1}"#)
            #expect(request.headers["host"] == "127.0.0.1:\(server.port)")
            #expect(request.headers["content-type"] == "application/json" && request.headers["x-test"] == "1")
            #expect(request.headers["user-agent"] == "earshot")
            await client.shutdown()
        }
    }

    @Test func connectionsAreUsedAgain() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            let client = Self.client(CIDR.loopback, ["hook.test": .success([[127, 0, 0, 1]])])
            for _ in 0..<10 { _ = try await self.post(client, "http://hook.test:\(server.port)/").get() }
            #expect(server.requests.count == 10)
            #expect(server.connectionCount == 1)
            await client.shutdown()
        }
    }

    /// The other side ends each connection behind its answer, and does not say so. What was not sent is sent on another; nothing comes twice.
    @Test func connectionsThatEndUnannounced() async throws {
        try await ScriptedServer.run { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        } _: { server in
            let client = Self.client()
            var failures: Set<String> = []
            for number in 0..<1_000 {
                let answer = await self.post(client, "http://127.0.0.1:\(server.port)/", "\(number)")
                if case .failure(let error) = answer { failures.insert("\(error)") }
            }
            // It may have closed while a request was on its way, which nobody can know.
            #expect(!failures.contains { $0.contains("closed channel") }, "\(failures)")
            let bodies = server.requests.map(\.text)
            #expect(Set(bodies).count == bodies.count)
            await client.shutdown()
        }
    }

    @Test func aRedirectIsAnAnswer() async throws {
        try await ScriptedServer.run { _ in
            .status(302, "", headers: ["Location": "http://127.0.0.1:1/"])
        } _: { server in
            let client = Self.client()
            let status = try await self.post(client, "http://127.0.0.1:\(server.port)/").get().status
            #expect(status == 302)
            #expect(server.requests.count == 1)
            await client.shutdown()
        }
    }

    @Test func answersAreBounded() async throws {
        let limit = OutboundClient.maxAnswerBytes
        try await ScriptedServer.run { request in
            .status(200, String(repeating: "x", count: request.line.contains("over") ? limit + 1 : limit))
        } _: { server in
            let client = Self.client()
            let origin = "http://127.0.0.1:\(server.port)"
            let full = try await self.post(client, "\(origin)/full").get()
            #expect(full.body.count == limit)
            #expect(await self.post(client, "\(origin)/over") == .failure(.answerTooLarge(origin: origin, limit: limit)))
            await client.shutdown()
        }
    }

    /// The answer announces no length, and does not end.
    @Test func anEndlessAnswerIsCut() async throws {
        let flood = "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 8 << 20)
        try await ScriptedServer.run { _ in
            .raw(flood)
        } _: { server in
            let client = Self.client()
            let answer = await self.post(client, "http://127.0.0.1:\(server.port)/")
            guard case .failure(.answerTooLarge) = answer else {
                Issue.record("\(answer)")
                return
            }
            await client.shutdown()
        }
    }

    @Test func slowAnswersEndInTime() async throws {
        // Nothing at all, a head that does not end, a body that does not.
        let parts = ["", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"]
        for part in parts {
            try await ScriptedServer.run { _ in
                .partial(part)
            } _: { server in
                let client = Self.client()
                let start = StallMeter.pool.start()
                let answer = await self.post(client, "http://127.0.0.1:\(server.port)/", timeout: .milliseconds(300))
                #expect(answer == .failure(.timedOut(origin: "http://127.0.0.1:\(server.port)", milliseconds: 300)))
                #expect(await StallMeter.pool.passed(since: start) < .seconds(5))
                await client.shutdown()
            }
        }
    }

    @Test func answersThatAreNotHTTP() async throws {
        let texts = [
            "", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/9.9 xyz\r\n\r\n", "\u{16}\u{3}\u{1}", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ]
        for text in texts {
            try await ScriptedServer.run { _ in
                .raw(text)
            } _: { server in
                let client = Self.client()
                let answer = await self.post(client, "http://127.0.0.1:\(server.port)/secret?token=hidden")
                guard case .failure(let error) = answer else {
                    Issue.record("\(text): \(answer)")
                    return
                }
                #expect("\(error)".contains("http://127.0.0.1:\(server.port)"), "\(error)")
                #expect(!"\(error)".contains("secret") && !"\(error)".contains("hidden"))
                await client.shutdown()
            }
        }
    }

    @Test func refusedConnectionsAreSaidAtOnce() async throws {
        let port = try await ScriptedServer.run { _ in
            .close
        } _: {
            $0.port
        }
        let client = Self.client()
        let answer = await self.post(client, "http://127.0.0.1:\(port)/")
        #expect(answer == .failure(.connectFailed(origin: "http://127.0.0.1:\(port)", why: "Connection refused")))
        await client.shutdown()
    }

    @Test func unknownNames() async {
        let client = Self.client()
        #expect(await self.post(client, "http://nowhere.test/") == .failure(.unresolved(host: "nowhere.test", why: "no such name")))
        #expect(
            await self.post(client, "ftp://nowhere.test/") == .failure(.badURL("is not http or https; expected \(OutboundURL.expected)")))
        await client.shutdown()
    }

    // MARK: Life

    @Test func afterShutdownNothingIsSent() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            let client = Self.client()
            let status = try await self.post(client, "http://127.0.0.1:\(server.port)/").get().status
            #expect(status == 200)
            await client.shutdown()
            #expect(await self.post(client, "http://127.0.0.1:\(server.port)/") == .failure(.cancelled))
        }
    }

    @Test func shutdownGivesUpWhatIsUnderWay() async throws {
        try await ScriptedServer.run { _ in
            .silence
        } _: { server in
            let client = Self.client()
            async let answer = self.post(client, "http://127.0.0.1:\(server.port)/", timeout: .seconds(60))
            try await eventually("the request") { server.requests.count == 1 }
            await client.shutdown()
            #expect(await answer == .failure(.cancelled))
        }
    }

    @Test func aCancelledCallerDoesNotWait() async throws {
        try await ScriptedServer.run { _ in
            .silence
        } _: { server in
            let client = Self.client()
            let task = Task { await self.post(client, "http://127.0.0.1:\(server.port)/", timeout: .seconds(60)) }
            try await eventually("the request") { server.requests.count == 1 }
            task.cancel()
            #expect(await task.value == .failure(.cancelled))
            await client.shutdown()
        }
    }

    @Test func forgettingAClientIsNoCrime() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            let status = try await self.post(Self.client(), "http://127.0.0.1:\(server.port)/").get().status
            #expect(status == 200)
        }
    }

    @Test func oneDeadTargetHoldsUpNoOther() async throws {
        try await ScriptedServer.run { request in
            request.line.contains("dead") ? .silence : .status(200, "0")
        } _: { server in
            let client = Self.client()
            let origin = "http://127.0.0.1:\(server.port)"
            // More requests than the pool has connections.
            let dead = Task {
                await withTaskGroup(of: Bool.self) { tasks in
                    for _ in 0..<100 {
                        tasks.addTask {
                            if case .failure = await self.post(client, "\(origin)/dead", timeout: .seconds(3_600), pool: "dead") {
                                true
                            } else {
                                false
                            }
                        }
                    }
                    return await tasks.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
            }
            try await eventually("the dead ones") { server.requests.count >= 64 }
            // Answered at all, since the dead ones would wait for an hour.
            let status = try await self.post(client, "\(origin)/alive", timeout: .seconds(120), pool: "alive").get().status
            #expect(status == 200)
            await client.shutdown()
            #expect(await dead.value == 100)
        }
    }
}
