import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// More of the settings that a reload applies, seen from outside.
@Suite struct ReloadMoreTests {
    /// Rooms: who may make one, how long new ones wait, and the disk that must stay free.
    @Test func rooms() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 2)
        try await ReloadingServer.run { server in
            try await server.apply(["rooms.autoCreate": "never", "rooms.policy.grace": "77s"])
            let push = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.earshot.rtmp)/live/cam1"))
            #expect(push.status != 0)
            try await server.logs("no_room")
            let room = try await server.call("POST", "rooms", #"{"roomId":"r1"}"#)
            #expect(try room.json()["data"]["policy"]["grace"].double == 77, "\(room.text)")
            try await server.apply(["data.minFree": "1000000GiB"])
            #expect(try await server.call("POST", "rooms", #"{"roomId":"r2"}"#).status == 507)
            try await server.apply(["log.level": "info"])
            #expect(try await server.call("POST", "rooms", #"{"roomId":"r2"}"#).status == 201)
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: "\(server.earshot.rtmp)/live/cam1")).status == 0)
            // A pushed room has the policy of its time as well.
            try await server.apply(["rooms.policy.grace": "55s"])
            #expect(try await ClientProcess.run(FFmpeg.push(source, to: "\(server.earshot.rtmp)/live/cam2")).status == 0)
            #expect(try await server.call("GET", "rooms/cam2").json()["data"]["policy"]["grace"].double == 55)
        }
    }

    /// Proxies whose word about clients counts, and pages that may call the API.
    @Test func headersOfHTTP() async throws {
        try await ReloadingServer.run { server in
            func status(_ headers: [String: String]) async throws -> Int {
                try await HTTPAnswer.call("GET", "\(server.earshot.http)/api/v1/rooms", token: server.earshot.token, headers: headers)
                    .status
            }
            let forwarded = ["X-Forwarded-For": "192.0.2.9"]
            #expect(try await status(forwarded) == 403)
            try await server.apply(["access.trustedProxies": "[127.0.0.0/8]", "access.apiFrom": "[127.0.0.0/8, 192.0.2.9/32]"])
            #expect(try await status(forwarded) == 200)
            #expect(try await status(["X-Forwarded-For": "192.0.2.1"]) == 403)
            func origin() async throws -> String? {
                try await HTTPAnswer.call(
                    "GET", "\(server.earshot.http)/api/v1/rooms", token: server.earshot.token, headers: ["Origin": "https://a.example"]
                ).headers["access-control-allow-origin"]
            }
            #expect(try await origin() == nil)
            try await server.apply(["api.allowOrigins": "[\"https://a.example\"]"])
            #expect(try await origin() == "https://a.example")
            #expect(try await status(forwarded) == 403, "no longer trusted")
            func page() async throws -> String? {
                try await HTTPAnswer.call(
                    "HEAD", "\(server.earshot.http)/live/none.m3u8", headers: ["Origin": "https://b.example"]
                ).headers["access-control-allow-origin"]
            }
            #expect(try await page() == "*")
            try await server.apply(["http.allowOrigin": "[\"https://a.example\", \"https://b.example\"]"])
            #expect(try await page() == "https://b.example")
        }
    }

    /// Rates, deadlines and memory.
    @Test func moreLimits() async throws {
        try await ReloadingServer.run(["limits.handshake": "1h"]) { server in
            let port = try server.rtmpPort
            try await server.apply(["limits.handshake": "300ms"])
            let silent = try await RawClient.open(port)
            try await eventually("the handshake's end") { silent.isClosed }
            try await server.apply(["limits.memory": "16MiB"])
            #expect(try await server.call("GET", "counters").json()["data"]["memoryLimitBytes"].int == 16 << 20)
            try await server.apply(["limits.publishesPerAddress": "1"])
            // Ten at once are the burst of one a second, and one more comes with each second that this takes.
            var (admitted, refusal) = (0, String?.none)
            for number in 0..<300 where refusal == nil {
                refusal = try await server.refusal(.publish, "cam\(number)")
                if refusal == nil { admitted += 1 }
            }
            #expect(admitted >= 10 && refusal?.contains("limits.publishesPerAddress") == true, "\(admitted), then \(refusal ?? "none")")
        }
    }

    /// Pictures are taken from now on.
    @Test func pictures() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
        try await ReloadingServer.run { server in
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            func pictures() async throws -> Int {
                try await server.call("GET", "rooms/cam1/snapshots").json()["data"]["list"].list.count
            }
            #expect(try await pictures() == 0)
            try await server.apply(["snapshots.interval": "1s", "snapshots.keep": "2"])
            try await eventually("two pictures") { try await pictures() == 2 }
        }
    }

    /// HLS of streams that begin after the reload.
    @Test func hls() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 4)
        try await ReloadingServer.run { server in
            try await server.apply(["hls.container": "ts", "hls.lowLatency": "off"])
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: "\(server.earshot.rtmp)/live/cam1"))
            defer { push.send(SIGKILL) }
            try await server.waitForPush()
            let probe = try await ClientProcess.run(
                [
                    "ffprobe", "-v", "error", "-show_entries", "format=format_name", "-of", "csv=p=0",
                    "\(server.earshot.http)/live/cam1.m3u8",
                ])
            #expect(probe.text.contains("hls"), "\(probe.errors)")
            let media = try await HTTPAnswer.get("\(server.earshot.http)/live/cam1.m3u8").text
            let name = try media.split(separator: "\n").first { !$0.hasPrefix("#") }.orThrow()
            let playlist = try await HTTPAnswer.get("\(server.earshot.http)/live/\(name)").text
            #expect(playlist.contains(".ts") && !playlist.contains("EXT-X-PART"), "\(playlist)")
        }
    }
}
