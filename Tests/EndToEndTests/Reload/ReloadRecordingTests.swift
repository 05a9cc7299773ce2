import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// Recordings that begin after a reload. The former lengths are so long that no test would wait for them.
@Suite struct ReloadRecordingTests {
    private static func source() async throws -> String {
        try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 10)
    }

    private static func recordings(_ server: ReloadingServer, _ stream: String) async throws -> [JSON] {
        try await server.api("recordings?limit=100")["list"].list.filter {
            "\($0["app"].string ?? "")/\($0["name"].string ?? "")" == stream
        }
    }

    private static func push(_ server: ReloadingServer, _ source: String, _ name: String) throws -> ClientProcess {
        try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/\(name)"))
    }

    @Test func files() async throws {
        let source = try await Self.source()
        try await ReloadingServer.run([
            "recording.apps": "[live]", "recording.fragment": "10s", "recording.splitDuration": "24h", "recording.minFree": "0",
        ]) { server in
            func splits(_ name: String) async throws {
                let push = try Self.push(server, source, name)
                defer { push.send(SIGKILL) }
                try await eventually("a second file of \(name)") { try await Self.recordings(server, "live/\(name)").count >= 2 }
            }
            try await server.apply(["recording.apps": "[live]", "recording.splitDuration": "1s", "recording.minFree": "0"])
            try await splits("time")
            try await server.apply(["recording.apps": "[live]", "recording.splitSize": "10KiB", "recording.minFree": "0"])
            try await splits("size")
        }
    }

    /// A file grows by whole fragments.
    @Test func fragments() async throws {
        let source = try await Self.source()
        try await ReloadingServer.run(["recording.apps": "[live]", "recording.fragment": "10s", "recording.minFree": "0"]) { server in
            try await server.apply(["recording.apps": "[live]", "recording.fragment": "100ms", "recording.minFree": "0"])
            let push = try Self.push(server, source, "cam1")
            defer { push.send(SIGKILL) }
            var sizes: Set<Int> = []
            func poll() async throws -> Int {
                sizes.formUnion(try await Self.recordings(server, "live/cam1").compactMap { $0["bytes"].int }.filter { $0 > 0 })
                return sizes.count
            }
            try await eventually("the first fragment") { try await poll() > 0 }
            // Fragments of ten seconds would take a hundred.
            try await eventually("ten more", within: 60) { try await poll() >= 11 }
        }
    }

    @Test func room() async throws {
        let source = try await Self.source()
        try await ReloadingServer.run(["recording.minFree": "0"]) { server in
            let push = try Self.push(server, source, "cam1")
            defer { push.send(SIGKILL) }
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            func record(_ action: String) async throws -> HTTPAnswer {
                try await server.call("POST", "rooms/cam1/record", "{\"action\":\"\(action)\"}")
            }
            try await server.apply(["recording.minFree": "1000000GiB"])
            #expect(try await record("start").text.contains("recording.minFree"))
            try await server.apply(["recording.minFree": "0", "recording.quota": "20KiB"])
            #expect(try await record("start").status / 100 == 2)
            try await server.logs("Recording failed", "recording.quota")
            // The file that failed is closed behind that line.
            try await eventually("the quota to be full") { try await record("start").text.contains("recording.quota") }
        }
    }

    @Test func talk() async throws {
        let source = try await Self.source()
        try await ReloadingServer.run(["recording.minFree": "0"]) { server in
            try await server.apply(["recording.minFree": "0", "recording.apps": "[live]", "recording.talk": "true"])
            let push = try Self.push(server, source, "cam1")
            defer { push.send(SIGKILL) }
            try await eventually("the talk's recording") { try await !Self.recordings(server, "talk/cam1/mix").isEmpty }
        }
    }
}
