import Foundation
import LibC
import NIOCore
import RTMP
import Relay
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Listening
@testable import Streaming
@testable import Support

/// An overloaded server refuses viewers with the reason, and still admits publishers.
@Suite(.timeLimit(.minutes(15))) struct OverloadTests {
    /// A server whose loops report this lag, whatever the real one is.
    private struct LateServer: Sendable {
        let server: TestServer
        var port: Int { self.server.addresses.rtmp.port }
        private var loops: [LoopContext] { self.server.server.parts.streams.allLoops }

        func late(by lagMs: Int64) {
            let load = LoopLoad.late(byMs: lagMs)
            for loop in self.loops { loop.relay.pressure.publish(load) }
        }

        static func run(_ body: @Sendable (LateServer) async throws -> Void) async throws {
            try await TestServer.run { server in
                let late = LateServer(server: server)
                var tasks: [RepeatedTask] = []
                for loop in late.loops {
                    // Replaces the loop's own sweep, which would publish the measured lag.
                    loop.relay.stop()
                    tasks.append(
                        loop.relay.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(100)) { _ in
                            loop.relay.whenSwept?()
                        })
                }
                defer { for task in tasks { task.cancel() } }
                // Only now does no loop publish its own lag any more, over the one that is set here.
                for loop in late.loops { try await loop.relay.eventLoop.submit {}.get() }
                try await body(late)
            }
        }
    }

    /// Repeats the body until it is done within the two seconds for which viewers wait:
    /// on a machine that stalls for longer they are refused, and rightly.
    private static func inTime<Result>(_ body: (_ isInTime: inout Bool) async throws -> Result) async throws -> Result {
        for _ in 0..<20 {
            var isInTime = false
            let result = try await body(&isInTime)
            if isInTime { return result }
        }
        throw TimedOut(description: "twenty times it took longer than a second to say two things")
    }

    private static func refusal(of client: RawClient) -> Status? {
        client.outputs.lazy.compactMap { if case .refused(_, let status) = $0 { status } else { nil } }.first
    }

    @Test func viewersAreRefusedAtConnect() async throws {
        try await LateServer.run { late in
            let client = try await RawClient.shaken(late.port)
            late.late(by: 900)
            let start = ContinuousClock.now
            try await client.run { $0.connect(app: "live", tcUrl: "rtmp://127.0.0.1/live") }
            try await client.waitUntilClosed()
            let took = ContinuousClock.now - start
            #expect(took > .milliseconds(1_800) && took < .seconds(40), "\(took)")
            let status = Self.refusal(of: client)
            #expect(status?.code == "NetConnection.Connect.Rejected" && status?.level == .error)
            #expect(status?.description.hasPrefix("[overloaded] ") == true)
            #expect(late.server.server.parts.connections.counters.current.closed[.overloaded] == 1)
        }
    }

    @Test func viewersAreRefusedAtPlay() async throws {
        try await LateServer.run { late in
            let client = try await RawClient.connected(late.port)
            let stream = try await client.createStream()
            late.late(by: 900)
            try await client.run { $0.play("cam", on: stream) }
            try await client.waitUntilClosed()
            #expect(client.statusCodes.suffix(2) == ["NetConnection.Connect.Rejected", "NetStream.Play.Failed"])
            #expect(client.statuses.last?.description.hasPrefix("[overloaded] ") == true)
        }
    }

    /// A waiting viewer is admitted when the load falls, with all that it sent meanwhile.
    @Test func viewersWait() async throws {
        try await LateServer.run { late in
            let (early, client) = try await Self.inTime { isInTime in
                let early = try await RawClient.connected(late.port)
                let stream = try await early.createStream()
                let client = try await RawClient.shaken(late.port)
                late.late(by: 900)
                let begin = ContinuousClock.now
                try await client.run { $0.connect(app: "live", tcUrl: "rtmp://127.0.0.1/live") }
                try await early.run { $0.play("cam", on: stream) }
                // Newcomers now stay behind the gate, so the two are decided first.
                let isWaiting = !client.isClosed && Self.refusal(of: client) == nil
                late.late(by: 0)
                let tookMoment = ContinuousClock.now - begin < .seconds(1)
                #expect(isWaiting || !tookMoment)
                isInTime = tookMoment
                return (early, client)
            }
            let stream: UInt32 = 1
            try await eventually("both to be let in") {
                client.outputs.contains { if case .connected = $0 { true } else { false } }
                    && early.outputs.contains(.playStarted(streamID: stream))
            }
            try await client.play("cam", on: client.createStream())
            await client.close()
            await early.close()
        }
    }

    @Test func publishersComeFirst() async throws {
        try await LateServer.run { late in
            try await Self.inTime { isInTime in
                late.late(by: 0)
                let client = try await RawClient.shaken(late.port)
                let viewer = try await RawClient.shaken(late.port)
                late.late(by: 900)
                let begin = ContinuousClock.now
                try await viewer.run { $0.connect(app: "live", tcUrl: "rtmp://127.0.0.1/live") }
                try await client.connect(app: "live", extra: [AMF0Property(name: "type", value: .string("nonprivate"))])
                try await client.publish("cam", on: client.createStream())
                let isWaiting = Self.refusal(of: viewer) == nil
                let tookMoment = ContinuousClock.now - begin < .seconds(1)
                #expect(isWaiting || !tookMoment, "the viewer still waits")
                isInTime = tookMoment
                await client.close()
                await viewer.close()
            }
        }
    }

    @Test func viewersOverHTTPAreTold() async throws {
        try await LateServer.run { late in
            let publisher = try await RawClient.publishing(late.port, "cam")
            publisher.send(.video, SyntheticTag.videoHeader)
            late.late(by: 900)
            for name in ["cam.flv", "cam.mp4"] {
                let answer = try await HTTPAnswer.get("\(late.server.http)/live/\(name)")
                #expect(answer.status == 503 && answer.headers["retry-after"] == "2", "\(answer.status) \(answer.headers)")
                #expect(answer.text.contains("overloaded"))
            }
            #expect(try await HTTPAnswer.get("\(late.server.http)/healthz").status == 200)
            await publisher.close()
        }
    }

    /// A few waiting viewers get the reason. The others are closed after two seconds, and later ones admitted again.
    @Test func theBacklogEmpties() async throws {
        try await LateServer.run { late in
            late.late(by: 900)
            let counters = late.server.server.parts.connections.counters
            // Far more at once than are let in within two seconds, however slow the machine is.
            let clients = (0..<2_000).compactMap { _ in PlainSocket.open(late.port) }
            defer { for client in clients { close(client) } }
            try await eventually("some to be closed") { counters.current.connectionsTurnedAway > 20 }
            try await eventually("these to notice") { clients.count(where: PlainSocket.isClosed) > 20 }
            late.late(by: 0)
            let viewer = try await RawClient.playing(late.port, "cam")
            await viewer.close()
        }
    }

    /// Deadlines exclude the time in which the server stood still.
    @Test func deadlinesLeaveOutTheServersPauses() async throws {
        // The clients may be late as well: by less than the limits, which are shorter than the pause.
        try await Self.serve("limits: {handshake: 4s, connect: 4s}") { server, port in
            let mute = try await RawClient.open(port)
            let shaken = try await RawClient.shaken(port)
            try await Self.pause(server, for: .seconds(9))
            try await mute.handshake()
            try await shaken.connect(app: "live")
            await mute.close()
            await shaken.close()
        }
    }

    /// A server that gets little time still serves newcomers and cuts nobody. Pauses are longer than its limits.
    ///
    /// Viewers compete for the machine with other processes: the limits allow for that delay.
    @Test func aThrottledServerCutsNobody() async throws {
        try await Self.serve("relay: {skipBehind: 1500ms, maxBehind: 2500ms}") { server, port in
            let publisher = try await RawClient.publishing(port, "cam")
            Hostile.SlowViewers.publish(publisher)
            var viewers: [RawClient] = []
            // A third of the time, in pauses too short for the server to refuse viewers; but the machine may be late by itself.
            try await Self.throttled(server, pause: .milliseconds(240), run: .milliseconds(120)) {
                try await eventually("six viewers", within: 400) {
                    if let viewer = try? await RawClient.playing(port, "cam") { viewers.append(viewer) }
                    return viewers.count == 6
                }
            }
            let counts = viewers.map { $0.media().count }
            try await Self.throttled(server, pause: .seconds(3), run: .milliseconds(500)) {
                try await eventually("four pauses' frames more for each", within: 400) {
                    zip(viewers, counts).allSatisfy { $0.isClosed || $0.media().count > $1 + 700 }
                }
            }
            for viewer in viewers {
                #expect(!viewer.isClosed)
                let numbers = viewer.media().compactMap { SyntheticTag.number($0.message) }
                #expect(numbers == Array((numbers.first ?? 0)..<(numbers.first ?? 0) + numbers.count), "nothing is left out")
                await viewer.close()
            }
            await publisher.close()
        }
    }

    /// Lets the process run only in short periods during the body.
    private static func throttled(
        _ server: EarshotProcess, pause: Duration, run: Duration, _ body: () async throws -> Void
    ) async throws {
        let throttle = Task {
            while !Task.isCancelled {
                try await Self.pause(server, for: pause)
                try await Task.sleep(for: run)
            }
        }
        let outcome: Swift.Result<Void, any Error>
        do {
            outcome = .success(try await body())
        } catch {
            outcome = .failure(error)
        }
        throttle.cancel()
        _ = await throttle.result
        try outcome.get()
    }

    private static func serve(_ settings: String, _ body: (EarshotProcess, Int) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try settings.write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path]) { server in
                try await body(server, Int(server.rtmp.split(separator: ":").last.map(String.init) ?? "").orThrow())
            }
        }
    }

    /// Stops the process for this time.
    private static func pause(_ server: EarshotProcess, for time: Duration) async throws {
        #expect(kill(server.process.id, SIGSTOP) == 0)
        defer { #expect(kill(server.process.id, SIGCONT) == 0) }
        try await Task.sleep(for: time)
    }
}
