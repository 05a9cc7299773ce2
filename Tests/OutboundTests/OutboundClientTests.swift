import Foundation
import NIOCore
import NIOSSL
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing
import Upstream

@testable import Outbound

@Suite struct OutboundClientTests {
    private static func client(
        _ allowed: [CIDR] = CIDR.loopback, tls: TLSConfiguration? = nil, _ names: [String: HostResolver.Answer] = [:]
    ) -> OutboundClient {
        var config = ServerConfig.Outbound()
        config.allowPrivate = allowed
        let resolver = HostResolver { name in names[name] ?? .failure(.init(why: "no such name")) }
        return OutboundClient(config: config, resolver: resolver, tls: tls)
    }

    private func post(
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

    // MARK: Targets

    @Test func privateTargetsAreRefusedUnlessAllowed() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            let closed = Self.client(
                [],
                [
                    "hook.test": .success([[127, 0, 0, 1]]), "both.test": .success([[10, 0, 0, 1], [127, 0, 0, 1]]),
                    "six.test": .success([[UInt8](repeating: 0, count: 15) + [1]]),
                    "mapped.test": .success([[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1]]),
                ])
            for host in [
                "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "hook.test", "HOOK.test", "both.test", "six.test",
                "mapped.test",
            ] {
                let answer = await self.post(closed, "http://\(host):\(server.port)/")
                guard case .failure(.forbiddenTarget) = answer else {
                    Issue.record("\(host): \(answer)")
                    continue
                }
            }
            let words = await self.post(closed, "http://hook.test:\(server.port)/")
            guard case .failure(let error) = words else {
                Issue.record("\(words)")
                return
            }
            #expect(
                "\(error)" == "hook.test (127.0.0.1) is loopback; the setting outbound.allowPrivate: [127.0.0.1] would allow it")
            #expect(server.connectionCount == 0)
            await closed.shutdown()
            let open = Self.client(
                [try CIDR(parsing: "127.0.0.0/8")],
                [
                    "both.test": .success([[10, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1], [127, 0, 0, 1]])
                ])
            // Connects to allowed addresses only.
            let status = try await self.post(open, "http://both.test:\(server.port)/").get().status
            #expect(status == 200)
            #expect(server.requests.first?.headers["host"] == "both.test:\(server.port)")
            await open.shutdown()
        }
    }

    /// A name whose first lookup gives an allowed address, and later ones another.
    @Test func aNameThatChangesItsMindGainsNothing() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            let asked = LockedList<String>()
            let resolver = HostResolver { name in
                asked.append(name)
                return .success(asked.all.count == 1 ? [[127, 0, 0, 1]] : [[127, 0, 0, 2]])
            }
            var config = ServerConfig.Outbound()
            config.allowPrivate = [try CIDR(parsing: "127.0.0.1/32")]
            let client = OutboundClient(config: config, resolver: resolver)
            let url = "http://rebind.test:\(server.port)/"
            let status = try await self.post(client, url).get().status
            #expect(status == 200)
            resolver.forget("rebind.test")
            #expect(
                await self.post(client, url)
                    == .failure(.forbiddenTarget(host: "rebind.test", address: "127.0.0.2", why: "loopback")))
            #expect(server.requests.count == 1)
            await client.shutdown()
        }
    }

    /// A name with an allowed and a forbidden address, and a server at each.
    @Test func onlyAllowedAddressesOfANameAreConnectedTo() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            try await ScriptedServer.run(host: "127.0.0.2", port: server.port) { _ in
                .status(200, "0")
            } _: { forbidden in
                let client = Self.client([try CIDR(parsing: "127.0.0.1/32")], ["two.test": .success([[127, 0, 0, 2], [127, 0, 0, 1]])])
                for _ in 0..<3 {
                    let status = try await self.post(client, "http://two.test:\(server.port)/").get().status
                    #expect(status == 200)
                }
                #expect(server.requests.count == 3)
                #expect(forbidden.connectionCount == 0)
                await client.shutdown()
            }
        }
    }

    /// The system's resolver knows `localhost` but not this name: had it been asked, nothing would have arrived.
    @Test func theConnectionGoesToTheCheckedAddress() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            let client = Self.client(CIDR.loopback, ["only-here.invalid": .success([[127, 0, 0, 1]])])
            let status = try await self.post(client, "http://only-here.invalid:\(server.port)/").get().status
            #expect(status == 200)
            await client.shutdown()
        }
    }

    @Test func theNextAddressIsTriedWhenOneRefuses() async throws {
        try await ScriptedServer.run { _ in
            .status(200, "0")
        } _: { server in
            // Nothing listens on 127.0.0.9: the server is bound to 127.0.0.1 alone.
            let client = Self.client(CIDR.loopback, ["two.test": .success([[127, 0, 0, 9], [127, 0, 0, 1]])])
            let status = try await self.post(client, "http://two.test:\(server.port)/").get().status
            #expect(status == 200)
            #expect(server.requests.count == 1)
            await client.shutdown()
        }
    }

    @Test func theSystemsResolver() {
        guard case .success(let addresses) = SystemResolver.lookup("localhost") else {
            Issue.record("localhost has no address")
            return
        }
        #expect(addresses.allSatisfy { CIDR.loopback.contains(address: $0) } && !addresses.isEmpty)
        guard case .failure(let failure) = SystemResolver.lookup("no-such-name.invalid") else {
            Issue.record("a name that cannot be")
            return
        }
        #expect(!failure.why.isEmpty)
    }

    // MARK: TLS

    @Test func certificatesAreCheckedAgainstTheName() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let made = try await ClientProcess.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
            "/CN=hook.test", "-addext", "subjectAltName=DNS:hook.test", "-keyout", "\(folder.path)/key.pem", "-out",
            "\(folder.path)/certificate.pem",
        ])
        #expect(made.status == 0)
        let certificates = try NIOSSLCertificate.fromPEMFile("\(folder.path)/certificate.pem")
        let context = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: certificates.map { .certificate($0) },
                privateKey: .privateKey(try NIOSSLPrivateKey(file: "\(folder.path)/key.pem", format: .pem))))
        let trusting = {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.trustRoots = .certificates(certificates)
            return configuration
        }()
        let names: [String: HostResolver.Answer] = ["hook.test": .success([[127, 0, 0, 1]]), "other.test": .success([[127, 0, 0, 1]])]
        try await ScriptedServer.run(tls: context) { _ in
            .status(200, "0")
        } _: { server in
            let client = Self.client(CIDR.loopback, tls: trusting, names)
            // Connects by address; the request and the certificate check use the name.
            let status = try await self.post(client, "https://hook.test:\(server.port)/").get().status
            #expect(status == 200)
            let wrong = await self.post(client, "https://other.test:\(server.port)/")
            #expect(
                wrong == .failure(.connectFailed(origin: "https://other.test:\(server.port)", why: "its certificate is for another name")))
            await client.shutdown()
            // The system's authorities have not signed it.
            let distrusting = Self.client(CIDR.loopback, names)
            guard case .failure(.connectFailed(_, let why)) = await self.post(distrusting, "https://hook.test:\(server.port)/") else {
                Issue.record("an unknown authority was trusted")
                return
            }
            #expect(why.lowercased().contains("certificate"), "\(why)")
            await distrusting.shutdown()
            #expect(server.requests.count == 1)
        }
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

    @Test func oneLookupANameAtATime() async throws {
        let asked = LockedList<String>()
        let gate = DispatchSemaphore(value: 0)
        let resolver = HostResolver { name in
            asked.append(name)
            gate.wait()
            return .success([[127, 0, 0, 1]])
        }
        let answers = Task {
            await withTaskGroup(of: HostResolver.Answer.self) { tasks in
                for _ in 0..<50 { tasks.addTask { await resolver.addresses(of: "slow.test") } }
                return await tasks.reduce(into: []) { $0.append($1) }
            }
        }
        try await eventually("the lookup") { asked.all.count == 1 }
        // The name server does not answer for one name: others are looked up, and callers that wait for it can cancel.
        let leaving = Task { await resolver.addresses(of: "slow.test") }
        leaving.cancel()
        #expect(await leaving.value == .failure(.init(why: "cancelled")))
        gate.signal()
        #expect(await answers.value.allSatisfy { $0 == .success([[127, 0, 0, 1]]) })
        #expect(await resolver.addresses(of: "slow.test") == .success([[127, 0, 0, 1]]))
        #expect(asked.all.count == 1)
        resolver.forget("slow.test")
        gate.signal()
        #expect(await resolver.addresses(of: "slow.test") == .success([[127, 0, 0, 1]]))
        #expect(asked.all.count == 2)
    }

    @Test func tooManyLookupsAreRefused() async throws {
        let gate = DispatchSemaphore(value: 0)
        let asked = LockedList<String>()
        let resolver = HostResolver { name in
            asked.append(name)
            gate.wait()
            return .success([[127, 0, 0, 1]])
        }
        let waiting = Task {
            await withTaskGroup(of: HostResolver.Answer.self) { tasks in
                for index in 0..<HostResolver.maxLookups { tasks.addTask { await resolver.addresses(of: "slow\(index).test") } }
                return await tasks.reduce(into: []) { $0.append($1) }
            }
        }
        try await eventually("the lookups") { asked.all.count == HostResolver.maxLookups }
        #expect(await resolver.addresses(of: "more.test") == .failure(.init(why: "16 other names are being looked up")))
        for _ in 0..<HostResolver.maxLookups { gate.signal() }
        #expect(await waiting.value.count == HostResolver.maxLookups)
    }
}
