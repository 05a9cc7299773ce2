import Rooms
import EarshotServer
import Foundation
import Testing

/// RTMP over TLS with foreign clients, and certificates that change.
@Suite struct TLSClientsTests {
    /// Pushed over RTMP and over RTMPS, played over RTMPS by one who waited and one who joined late.
    @Test(arguments: ["rtmp", "rtmps"]) func packetsAreTheSameOverTLS(_ scheme: String) async throws {
        let source = try await Fixture.flv(video: Fixture.withBFrames, audio: Fixture.aac, seconds: 4)
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
                let pushed = try await push.outcome(within: 20)
                #expect(pushed.status == 0, "\(pushed.errors)")
                #expect(PacketList(csv: try await early.outcome(within: 8).text).difference(from: expected) == nil)
                #expect(PacketList(csv: try await late.outcome(within: 8).text).tailDifference(of: expected) == nil)
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
            let store = try CertificateStore(certificatePath: files.certificate, keyPath: files.key)
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

    /// With the real process: new connections get the new certificate, running ones go on.
    @Test func hangUpReloadsTheCertificate() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
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
                    try await eventually("the reload") { earshot.process.errorsSoFar.contains("certificate reloaded") }
                    #expect(try await Certificate.presented(on: port).contains("CN = second"))
                    let https = try await ClientProcess.run(
                        ["curl", "-ksv", "--http2", "https://127.0.0.1:\(try earshot.https.orThrow())/healthz", "-w", "%{http_version}"])
                    #expect(https.text == "ok\n2" && https.errors.contains("CN=second"), "\(https.errors)")
                    try "broken".write(toFile: files.certificate, atomically: true, encoding: .utf8)
                    earshot.process.send(SIGHUP)
                    try await eventually("the refusal") { earshot.process.errorsSoFar.contains("the old one stays") }
                    #expect(try await Certificate.presented(on: port).contains("CN = second"))
                    #expect(try await push.outcome(within: 10).status == 0)
                    let expected = try await PacketList.of(file: source)
                    let played = PacketList(csv: try await player.outcome(within: 8).text)
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
