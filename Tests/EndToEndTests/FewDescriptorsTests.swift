import Foundation
import NIOCore
import NIOPosix
import RTMP
import ServerTestSupport
import TestSupport
import Testing

/// A server with few file descriptors, and many idle clients.
///
/// `EARSHOT_ROUNDS=20` makes it long.
@Suite struct FewDescriptorsTests {
    private static let rounds = ProcessInfo.processInfo.environment["EARSHOT_ROUNDS"].flatMap(Int.init) ?? 3
    private static let limit = 256

    @Test(.timeLimit(.minutes(10))) func idleClientsTakeNobodysPlace() async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            // Silent clients stay for the whole test.
            try "{limits: {handshake: 5m, httpHead: 5m}}".write(to: config, atomically: true, encoding: .utf8)
            let under = ["prlimit", "--nofile=\(Self.limit):\(Self.limit)"]
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: under) { server in
                let rtmp = try Self.port(server.rtmp)
                let http = try Self.port(server.http)
                let publisher = try await RawClient.publishing(rtmp, "cam1")
                publisher.send(.video, SyntheticTag.videoHeader)
                let viewer = try await RawClient.playing(rtmp, "cam1")
                var sent = 0
                for _ in 0..<Self.rounds {
                    let idle = try await Self.connect(200, rtmp) + Self.connect(200, http)
                    for _ in 0..<25 {
                        publisher.send(
                            .video, SyntheticTag.video(sent, isKeyframe: sent % 25 == 0, bytes: 2_000), timestamp: UInt32(sent * 40))
                        sent += 1
                    }
                    try await eventually("all frames, among those who do nothing") { Self.numbers(viewer) == Array(0..<sent) }
                    try await eventually("the others to be refused") { idle.count { $0.isClosed } >= 400 - Self.limit + 64 }
                    try await eventually("a health check") {
                        (try? await HTTPAnswer.get("\(server.http)/healthz"))?.status == 200
                    }
                    #expect(server.process.isRunning, "\(server.process.errorsSoFar.suffix(2_000))")
                    #expect(try server.process.openDescriptors() < Self.limit - 8)
                    for client in idle { await client.close() }
                    // Their places are free again.
                    try await eventually("a new viewer") {
                        guard let late = try? await RawClient.playing(rtmp, "cam1") else { return false }
                        await late.close()
                        return true
                    }
                    try await eventually("a call") {
                        (try? await HTTPAnswer.get("\(server.http)/api/v1/counters", token: server.token))?.status == 200
                    }
                }
                let counters = try await HTTPAnswer.get("\(server.http)/api/v1/counters", token: server.token).json()["data"]
                let refused =
                    (counters["connectionsTurnedAway"].int ?? 0) + (counters["httpConnectionsRefused"].int ?? 0)
                    + (counters["closed"]["too_many_connections"].int ?? 0)
                    + (counters["closed"]["too_many_from_address"].int ?? 0)
                    // Idle connections that a slow machine shed to admit others.
                    + (counters["httpConnectionsShed"].int ?? 0)
                #expect(refused >= Self.rounds * (400 - Self.limit + 64), "\(counters)")
                let log = server.process.errorsSoFar
                #expect(log.contains("limits.connections=\"96 instead of 20000\"") && log.contains("LimitNOFILE="), "\(log.prefix(1_000))")
                #expect(server.process.isRunning)
            }
        }
    }

    /// Links use the descriptors left over, and report when there are none; connections keep their places.
    @Test(.timeLimit(.minutes(10))) func linksFailByThemselves() async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try "{outbound: {allowPrivate: [127.0.0.0/8]}, limits: {handshake: 5m, httpHead: 5m}}"
                .write(to: config, atomically: true, encoding: .utf8)
            // Accepts connections and sends nothing.
            let silent = try await ServerBootstrap(group: RawClient.group).bind(host: "127.0.0.1", port: 0).get()
            let target = try (silent.localAddress?.port).orThrow()
            let under = ["prlimit", "--nofile=\(Self.limit):\(Self.limit)"]
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: under) { server in
                for number in 0..<40 {
                    let task = #"{"direction":"pull","app":"live","name":"p\#(number)","url":"rtmp://127.0.0.1:\#(target)/live/x"}"#
                    let made = try await HTTPAnswer.call(
                        "POST", "\(server.http)/api/v1/links", body: Data(task.utf8), token: server.token)
                    #expect(made.status == 201, "\(made.text)")
                }
                try await eventually("some links to have no socket") {
                    let list = try await HTTPAnswer.get("\(server.http)/api/v1/links", token: server.token).json()["data"]["list"]
                        .list
                    return list.contains { $0["lastError"].string?.contains("limit of open files") == true }
                }
                let rtmp = try Self.port(server.rtmp)
                let idle = try await Self.connect(200, rtmp) + Self.connect(200, try Self.port(server.http))
                try await eventually("the others to be refused") { idle.count { $0.isClosed } >= 400 - Self.limit + 64 }
                #expect(try server.process.openDescriptors() < Self.limit)
                for client in idle { await client.close() }
                try await eventually("a viewer") {
                    guard let viewer = try? await RawClient.playing(rtmp, "cam1") else { return false }
                    await viewer.close()
                    return true
                }
                #expect(server.process.isRunning, "\(server.process.errorsSoFar.suffix(2_000))")
            }
            try await silent.close()
        }
    }

    @Test func tooFewAreAStartError() async throws {
        try await Fixture.withDirectory { directory in
            let binary = try EarshotProcess.binary()
            let outcome = try await ClientProcess.run([
                "prlimit", "--nofile=100:100", binary, "serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", directory.path,
            ])
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains("the limit of open files is 100") && outcome.errors.contains("ulimit -n"), "\(outcome.errors)")
        }
    }

    private static func port(_ url: String) throws -> Int { try Int(url.split(separator: ":").last.map(String.init) ?? "").orThrow() }

    private static func connect(_ count: Int, _ port: Int) async throws -> [SocketClient] {
        var clients: [SocketClient] = []
        for _ in 0..<count { clients.append(try await SocketClient.open(port)) }
        return clients
    }

    private static func numbers(_ viewer: RawClient) -> [Int] { viewer.media().compactMap { SyntheticTag.number($0.message) } }
}
