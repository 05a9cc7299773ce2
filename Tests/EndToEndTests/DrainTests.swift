import APITestSupport
import ControlAPI
import Foundation
import RTMP
import ServerConfiguration
import ServerTestSupport
import Streaming
import TestSupport
import Testing

@testable import EarshotServer

/// The time between SIGTERM and the end.
@Suite struct DrainTests {
    /// Clients that can are asked to connect again; pushes go on, nobody new is admitted, and the drain ends with the last push.
    @Test func untilTheLastPushHasEnded() async throws {
        try await TestServer.run({
            $0.drain.timeoutMs = 300_000
            $0.drain.reconnectTo = "rtmp://other.example/live"
        }) { server in
            let able = try await TagClient.publish(to: server, "live/able", extra: [AMF0Property(name: "capsEx", value: 1)])
            let plain = try await TagClient.publish(to: server, "live/plain")
            let viewer = try await TagClient.play(from: server, "live/able")
            let parts = server.server.parts
            let (api, operations) = (try await CheckedAPI(server), server.server.operations)
            let over = LockedList<Bool>()
            operations.follow(begun: { _, _ in }, over: { over.append(true) })
            let begun = try await api.ok("POST", "server/drain", status: 202)
            #expect(begun["pushes"].int == 2 && begun["asked"].int == 1 && (begun["secondsLeft"].double ?? 0) > 290, "\(begun)")
            try await eventually("the request") { able.current.statuses.contains { $0.code == StatusCode.connectReconnectRequest } }
            let ready = try await HTTPAnswer.get("\(server.http)/readyz")
            #expect(ready.status == 503 && ready.text.contains("draining"), "\(ready.text)")
            let again = try await api("POST", "server/drain", #"{"timeout":1}"#)
            #expect(again.status == 409 && again.text.contains("2 pushes") && again.text.contains("s left"), "\(again.text)")
            #expect(able.current.statuses.count { $0.code == StatusCode.connectReconnectRequest } == 1, "nothing is begun twice")
            #expect(try await api.ok("GET", "server")["drain"]["pushes"].int == 2)
            #expect(!plain.current.statuses.contains { $0.code == StatusCode.connectReconnectRequest })
            if let late = try? await RawClient.open(server.port) { try await eventually("the late one's end") { late.isClosed } }
            // The stream is there, for those who watch it.
            for form in ["live/able.flv", "live/able.mp4", "live/able.m3u8"] {
                let answer = try await HTTPAnswer.get("\(server.http)/\(form)")
                #expect(answer.status == 503 && answer.text.contains("about to end"), "\(form): \(answer.status) \(answer.text)")
            }
            #expect(!able.current.isClosed && !plain.current.isClosed && !viewer.current.isClosed)
            await able.close()
            try await eventually("one push") { parts.pushes.count == 1 }
            #expect(!viewer.current.isClosed)
            await plain.close()
            try await eventually("the end") { over.all == [true] }
            #expect(parts.pushes.count == 0)
            #expect(await server.lines.comes("Draining: nobody new", "asked=1", "pushes=2"))
            #expect(await server.lines.comes("Drained", "all pushes have ended"))
            await viewer.close()
        }
    }

    /// Clients that can connect again elsewhere are asked to before the end, also without a time for pushes.
    @Test func withoutATime() async throws {
        try await TestServer.run({ $0.drain.reconnectTo = "rtmp://other.example/live" }) { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1", extra: [AMF0Property(name: "capsEx", value: 1)])
            let viewer = try await TagClient.play(from: server, "live/cam1", extra: [AMF0Property(name: "capsEx", value: 1)])
            let asked = LockedList<Int>()
            server.server.operations.follow(
                begun: { _, _ in }, over: { [operations = server.server.operations] in asked.append(operations.drainState?.asked ?? 0) })
            await server.server.operations.signalled()
            try await eventually("the end") { asked.all == [2] }
            for client in [publisher, viewer] {
                try await eventually("the request") {
                    client.current.statuses.contains { $0.code == StatusCode.connectReconnectRequest }
                }
                await client.close()
            }
        }
    }

    /// A device that asks for something new on its connection is refused and keeps its push. Listeners over HTTP are refused in words.
    @Test func aRefusalCutsNoPush() async throws {
        try await TestServer.run({ $0.drain.timeoutMs = 300_000 }) { server in
            let device = try await RawClient.publishing(server.port, "dev")
            let watched = try await TagClient.publish(to: server, "live/cam1")
            let stream = try await device.createStream()
            server.server.operations.follow(begun: { _, _ in }, over: {})
            _ = try await CheckedAPI(server).ok("POST", "server/drain", status: 202)
            // It waits for an answer that does not come: the refusal is a status.
            let asking = Task { try? await device.play("cam1", on: stream) }
            try await eventually("the refusal") { device.statuses.last?.description.contains("[server_shutdown]") == true }
            #expect(await server.lines.comes("Refused while draining", "reason=server_shutdown"))
            let listener = try await HTTPAnswer.get("\(server.http)/talk/dev/mix.flv")
            #expect(listener.status == 503 && listener.headers["retry-after"] != nil, "\(listener.status) \(listener.text)")
            #expect(!device.isClosed && server.server.parts.pushes.count == 2)
            await device.close()
            await watched.close()
            await asking.value
        }
    }

    /// A process: SIGTERM lets the push go on, a second one does not.
    @Test func aSecondSignal() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("drain.yaml").path
            try "drain: {timeout: 10m}\n".write(toFile: file, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", file]) { earshot in
                let url = "\(earshot.rtmp)/live/cam1"
                let push = try ClientProcess(FFmpeg.pushForEver(source, to: url))
                defer { push.send(SIGKILL) }
                func bytes() async throws -> Int {
                    try await HTTPAnswer.get("\(earshot.http)/api/v1/streams", token: earshot.token).json()["data"]["list"][0]["bytesIn"]
                        .int ?? 0
                }
                try await eventually("the push") { try await bytes() > 0 }
                earshot.process.send(SIGTERM)
                try await eventually("the drain") { earshot.process.errorsSoFar.contains("Draining: nobody new") }
                let before = try await bytes()
                try await eventually("more of the push") { try await bytes() > before + 50_000 }
                let refused = try await ClientProcess.run(FFmpeg.push(source, to: "\(earshot.rtmp)/live/cam2"))
                #expect(refused.status != 0)
                #expect(earshot.process.isRunning && push.isRunning)
                earshot.process.send(SIGTERM)
                let ended = try await earshot.process.outcome()
                #expect(ended.status == 0, "\(ended.errors)")
                #expect(ended.errors.contains("a second signal") && ended.errors.contains("reason=server_shutdown"), "\(ended.errors)")
            }
        }
    }

    /// Without a push there is nothing to wait for.
    @Test func nobodyPushes() async throws {
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("drain.yaml").path
            try "drain: {timeout: 10m}\n".write(toFile: file, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", file]) { earshot in
                earshot.process.send(SIGTERM)
                let ended = try await earshot.process.outcome()
                #expect(ended.status == 0, "\(ended.errors)")
            }
        }
    }
}
