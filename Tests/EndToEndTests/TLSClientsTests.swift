import Foundation
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Listening
@testable import ServerConfiguration

/// RTMP over TLS with foreign clients, and certificates that change.
@Suite struct TLSClientsTests {
    /// Pushed over RTMP and RTMPS, played over RTMPS by an early and a late viewer.
    @Test(arguments: ["rtmp", "rtmps"]) func packetsAreTheSameOverTLS(_ scheme: String) async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 8)
        let expected = try await PacketList.of(file: source)
        try await Self.run { server, _ in
            let url = "\(server.rtmps)/live/cam1"
            try await ClientProcess.during(Probe.packets(url)) { early in
                try await server.wait("streams") { $0["list"][0]["viewers"].int == 1 }
                let push = try ClientProcess(FFmpeg.push(source, to: scheme == "rtmp" ? "\(server.rtmp)/live/cam1" : url))
                defer { push.send(SIGKILL) }
                try await server.wait("streams") { $0["list"][0]["video"]["keyframeIntervalMs"].int != nil }
                let late = try ClientProcess(Probe.packets(url))
                defer { late.send(SIGKILL) }
                try await push.halted { try await server.wait("streams") { $0["list"][0]["viewers"].int == 2 } }
                let pushed = try await push.outcome()
                #expect(pushed.status == 0, "\(pushed.errors)")
                #expect(PacketList(csv: try await early.outcome().text).difference(from: expected) == nil)
                #expect(PacketList(csv: try await late.outcome().text).tailDifference(of: expected) == nil)
            }
        }
    }

    @Test func theWrongProtocolOnEitherPortIsClosed() async throws {
        try await Self.run { server, _ in
            let plain = try await ClientProcess.run([
                "ffprobe", "-v", "error", "rtmp://127.0.0.1:\(server.addresses.rtmps.orThrow().port)/live/x",
            ])
            #expect(plain.status != 0)
            try await eventually("the line") { server.lines.all.count { $0.contains("reason=not_rtmp") } == 1 }
            let secure = try await Certificate.presented(on: server.addresses.rtmp.port)
            #expect(secure.contains("no peer certificate available"))
            try await eventually("the line") { server.lines.all.count { $0.contains("reason=not_rtmp") } == 2 }
        }
    }

    @Test func aBrokenFileKeepsTheOldCertificate() async throws {
        try await Fixture.withDirectory { directory in
            let files = try await Certificate.make("first", in: directory)
            let store = CertificateStore(try CertificateStore.read(certificatePath: files.certificate, keyPath: files.key))
            let first = store.current
            try "no certificate".write(toFile: files.certificate, atomically: true, encoding: .utf8)
            #expect(throws: (any Error).self) { try store.reload() }
            #expect(store.current === first)
            // A new certificate whose key has not been written yet.
            let other = directory.appendingPathComponent("other")
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
            let second = try await Certificate.make("second", in: other)
            try Self.replace(files.certificate, with: second.certificate)
            #expect(throws: (any Error).self) { try store.reload() }
            #expect(store.current === first)
            try Self.replace(files.key, with: second.key)
            try store.reload()
            #expect(store.current !== first)
        }
    }

    /// TLS 1.2 only with forward secrecy and authenticated encryption, on both ports; TLS 1.3 as it is; nothing older.
    @Test func onlyGoodCiphersAreSpoken() async throws {
        try await Self.run { server, _ in
            for port in [try server.addresses.rtmps.orThrow().port, try server.addresses.https.orThrow().port] {
                func handshake(_ options: String...) async throws -> String {
                    // "Cipher is (NONE)" without an agreement.
                    let result = try await ClientProcess.run(
                        ["openssl", "s_client", "-connect", "127.0.0.1:\(port)"] + options)
                    return result.text.split(separator: "\n").first { $0.contains("Cipher is ") }.map(String.init) ?? ""
                }
                for cipher in ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"] {
                    #expect(try await handshake("-tls1_2", "-cipher", cipher).hasSuffix("Cipher is \(cipher)"), "\(cipher)")
                }
                for cipher in [
                    "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384", "kRSA",
                    "DHE",
                ] {
                    let agreed = try await handshake("-tls1_2", "-cipher", "\(cipher):@SECLEVEL=0")
                    #expect(agreed.contains("(NONE)"), "\(cipher): \(agreed)")
                }
                #expect(try await handshake("-tls1_3").contains("TLSv1.3"))
                #expect(try await handshake("-tls1_1", "-cipher", "ALL:@SECLEVEL=0").contains("(NONE)"))
            }
        }
    }

    /// Like ``onlyGoodCiphersAreSpoken()``, with a key that static RSA could use.
    @Test func noStaticRSA() async throws {
        try await Fixture.withDirectory { directory in
            let (certificate, key) = (directory.appendingPathComponent("c.pem").path, directory.appendingPathComponent("k.pem").path)
            let made = try await ClientProcess.run([
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90", "-subj", "/CN=rsa", "-keyout", key, "-out",
                certificate,
            ])
            #expect(made.status == 0)
            try await TestServer.run({ config in
                config.rtmps.listen = HostPort(host: "127.0.0.1", port: 0)
                (config.rtmps.certificate, config.rtmps.key) = (certificate, key)
            }) { server in
                #expect(!server.lines.contains("TLS certificate"), "90 days are enough: \(server.lines.all)")
                let port = try server.addresses.rtmps.orThrow().port
                for (cipher, isSpoken) in [
                    ("ECDHE-RSA-AES128-GCM-SHA256", true), ("ECDHE-RSA-AES256-GCM-SHA384", true), ("ECDHE-RSA-CHACHA20-POLY1305", true),
                    ("AES128-GCM-SHA256", false), ("AES256-GCM-SHA384", false), ("AES128-SHA", false), ("AES256-SHA", false),
                    ("ECDHE-RSA-AES128-SHA", false), ("ECDHE-RSA-AES256-SHA", false), ("ECDHE-RSA-AES128-SHA256", false),
                ] {
                    let result = try await ClientProcess.run(
                        ["openssl", "s_client", "-connect", "127.0.0.1:\(port)", "-tls1_2", "-cipher", "\(cipher):@SECLEVEL=0"])
                    #expect(result.text.contains("Cipher is \(isSpoken ? cipher : "(NONE)")"), "\(cipher): \(result.text)")
                }
            }
        }
    }

    @Test(
        arguments: [
            (-86_400, "expired at 2026-11-21T00:00:00.000Z"), (-1, "expired at"), (0, "expires today or tomorrow"),
            (3_600, "expires today or tomorrow, at 2026-11-22T01"),
            (86_400, "expires in 1 day, at 2026-11-23"), (29 * 86_400, "expires in 29 days, at 2026-12-21"),
            (30 * 86_400 - 1, "expires in 29 days"),
            (30 * 86_400, nil), (90 * 86_400, nil),
        ] as [(Int64, String?)]) func endsAreToldOf(_ secondsLeft: Int64, _ words: String?)
    {
        let now: Int64 = 1_795_305_600
        let warnings = CertificateStore.warnings(
            [.init(begins: now - 10_000_000, ends: now + secondsLeft, isLeaf: true)], path: "/c.pem", nowMs: now * 1_000)
        #expect(warnings.count == (words == nil ? 0 : 1))
        if let words { #expect(warnings.first?.contains(words) == true && warnings.first?.contains("/c.pem") == true, "\(warnings)") }
        let chain = CertificateStore.warnings(
            [
                .init(begins: 0, ends: now + 10_000_000, isLeaf: true), .init(begins: 0, ends: now - 1, isLeaf: false),
                .init(begins: now + 60, ends: now + 10_000_000, isLeaf: false),
            ], path: "/c.pem", nowMs: now * 1_000)
        #expect(chain.count == 2 && chain[0].contains("of the chain") && chain[1].contains("valid only from"), "\(chain)")
    }

    /// With the real process: new connections get the new certificate, running ones continue.
    @Test func hangUpReloadsTheCertificate() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 12)
        try await Fixture.withDirectory { directory in
            let files = try await Certificate.make("first", in: directory)
            let config = directory.appendingPathComponent("earshot.yaml")
            try """
            rtmps:
              listen: 127.0.0.1:0
              certificate: \(files.certificate)
              key: \(files.key)
            https:
              listen: 127.0.0.1:0
            rooms:
              policy:
                cleanStop: 500ms
            """.write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path]) { earshot in
                let rtmps = try earshot.rtmps.orThrow()
                let port = try Int(rtmps.split(separator: ":").last.orThrow()).orThrow()
                #expect(try await Certificate.presented(on: port).contains("CN = first"))
                try await ClientProcess.during(Probe.packets("\(rtmps)/live/cam1")) { player in
                    let push = try ClientProcess(FFmpeg.push(source, to: "\(rtmps)/live/cam1"))
                    defer { push.send(SIGKILL) }
                    try await eventually("publish and play") {
                        let streams = try await HTTPAnswer.get("\(earshot.http)/api/v1/streams", token: earshot.token).json()["data"][
                            "list"]
                        return streams[0]["viewers"].int == 1 && streams[0]["state"].string == "live"
                    }
                    _ = try await Certificate.make("second", in: directory)
                    earshot.process.send(SIGHUP)
                    try await eventually("the reload") { earshot.process.errorsSoFar.contains("certificate=\"read again\"") }
                    // Both certificates expire in two days; each load warns.
                    try await eventually("both warnings") {
                        earshot.process.errorsSoFar.components(separatedBy: "certificate.pem expires in ").count == 3
                    }
                    #expect(try await Certificate.presented(on: port).contains("CN = second"))
                    let https = try await ClientProcess.run(
                        ["curl", "-ksv", "--http2", "https://127.0.0.1:\(try earshot.https.orThrow())/healthz", "-w", "%{http_version}"])
                    #expect(https.text == "ok\n2" && https.errors.contains("CN=second"), "\(https.errors)")
                    try "broken".write(toFile: files.certificate, atomically: true, encoding: .utf8)
                    earshot.process.send(SIGHUP)
                    try await eventually("the refusal") { earshot.process.errorsSoFar.contains("the running ones stay") }
                    #expect(try await Certificate.presented(on: port).contains("CN = second"))
                    #expect(try await push.outcome().status == 0)
                    let expected = try await PacketList.of(file: source)
                    let played = PacketList(csv: try await player.outcome().text)
                    #expect(played.only("video").packets.last == expected.only("video").packets.last)
                    #expect(played.difference(from: expected) == nil || played.tailDifference(of: expected) == nil)
                }
            }
        }
    }

    private static func replace(_ path: String, with other: String) throws {
        try Data(contentsOf: URL(fileURLWithPath: other)).write(to: URL(fileURLWithPath: path))
    }

    private static func run(_ body: @Sendable @escaping (TestServer, Certificate) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let files = try await Certificate.make("earshot.test", in: directory)
            try await TestServer.run { config in
                config.rtmps.listen = HostPort(host: "127.0.0.1", port: 0)
                config.rtmps.certificate = files.certificate
                config.rtmps.key = files.key
                config.rooms.policy.cleanStopMs = 500
            } _: { server in
                try await body(server, files)
            }
        }
    }
}
