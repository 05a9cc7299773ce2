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

/// Targets: their addresses and certificates.
extension OutboundClientTests {
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
            var config = ServerConfig().outbound
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

    // MARK: Lookups

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
