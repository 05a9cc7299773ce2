import Foundation
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Support

/// URLs from the API, used unchanged by real clients.
@Suite struct APIURLTests {
    /// Nobody gets in by address; only a signature does.
    static let closed: @Sendable (inout ServerConfig) -> Void = {
        $0.access.publishFrom = HTTPAPIClientsTests.elsewhere
        $0.access.playFrom = HTTPAPIClientsTests.elsewhere
    }

    /// The QR code's URL pushes the room's first stream. The play URL plays that stream; the URL of another one does not.
    @Test(arguments: ["txSecret", "jwt"]) func whatTheCodeSaysIsPushed(_ scheme: String) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        try await TestServer.run(Self.closed) { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            let url = try await Fixture.withDirectory { directory in
                let picture = directory.appendingPathComponent("code.png")
                let answer = try await api("GET", "rooms/r1/push-url.png?scheme=\(scheme)&lifetime=600")
                #expect(answer.contentType == "image/png")
                try answer.body.write(to: picture)
                return try await QRReader.read(picture)
            }
            #expect(url.hasPrefix("\(server.rtmp)/live/r1?"), "\(url)")
            let bare = try await ClientProcess.run(FFmpeg.push(source, to: "\(server.rtmp)/live/r1"))
            #expect(bare.status != 0)
            let push = try ClientProcess(FFmpeg.pushForEver(source, to: url))
            defer { push.send(SIGKILL) }
            try await server.wait("rooms/r1") { $0["state"].string == "live" }
            let play = try await api.ok("GET", "rooms/r1/play-urls?scheme=\(scheme)")["streams"][0]
            let played = try await ClientProcess.run(
                Probe.packets(try play["rtmp"].string.orThrow()) + ["-read_intervals", "%+1"])
            #expect(PacketList(csv: played.text).count > 10, "\(played.errors)")
            let refused = try await ClientProcess.run(Probe.packets("\(server.rtmp)/live/r1"))
            #expect(refused.status != 0)
            // A URL made for playing does not push.
            let refusals = server.closed(.credentialWrong)
            let wrong = try await ClientProcess.run(FFmpeg.push(source, to: try play["rtmp"].string.orThrow()))
            #expect(wrong.status != 0)
            try await eventually("the counter") { server.closed(.credentialWrong) == refusals + 1 }
            let secret = try url.split(separator: "?").last.map(String.init).orThrow()
            #expect(!server.lines.all.contains { $0.contains(secret) }, "a credential is logged")
            for path in ["rooms", "rooms/r1", "streams", "sessions", "streams/published", "rooms/r1/events", "events", "callbacks"] {
                #expect(try await !api("GET", path).text.contains(secret), "a credential is listed by \(path)")
            }
        }
    }

    /// A device's own URL pushes to the room that it currently belongs to.
    @Test(arguments: ["txSecret", "jwt"]) func aDevicesOwnURL(_ scheme: String) async throws {
        try await TestServer.run(Self.closed) { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1","slots":2,"deviceUid":"EAR-7"}"#, status: 201)
            try await api.ok("POST", "rooms", #"{"roomId":"r2"}"#, status: 201)
            try await api.ok("POST", "rooms", #"{"roomId":"r3","deviceUid":"r2"}"#, status: 201)
            let url = try await api.ok("POST", "rooms/r1/push-url", #"{"by":"device","scheme":"\#(scheme)"}"#)
            #expect(url["name"].string == "EAR-7" && url["app"].string == "live" && url["slot"].int == 1)
            let key = try url["streamKey"].string.orThrow()
            let device = try await TagClient.publish(to: server, "live/\(key)")
            #expect(try await api.ok("GET", "rooms/r1")["streams"][0]["sequence"].int != nil)
            await device.close()
            #expect(try await api.refused(400, "POST", "rooms/r1/push-url", #"{"by":"device","slot":2}"#)["field"].string == "slot")
            #expect(try await api.refused(400, "POST", "rooms/r2/push-url", #"{"by":"device"}"#)["field"].string == "by")
            #expect(try await api.refused(400, "POST", "rooms/r3/push-url", #"{"by":"device"}"#)["field"].string == "by", "r2's stream")
            #expect(try await api("GET", "rooms/r1/push-url.svg?by=device&scheme=\(scheme)").status == 200)
        }
    }

    @Test func urlsAreWhatWasAskedFor() async throws {
        try await TestServer.run({
            $0.urls.rtmp = "rtmp://live.example.com"; $0.urls.rtmps = "rtmps://live.example.com/"
        }) { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1","slots":3,"policy":{"urlLifetime":3600}}"#, status: 201)
            let push = try await api.ok("POST", "rooms/r1/push-url", #"{"slot":3}"#)
            #expect(push["rtmp"].string?.hasPrefix("rtmp://live.example.com/live/r1-3?txSecret=") == true)
            #expect(push["rtmps"].string?.hasPrefix("rtmps://live.example.com/live/r1-3?txSecret=") == true)
            #expect(push["server"].string == "rtmp://live.example.com/live")
            #expect(push["streamKey"].string?.hasPrefix("r1-3?txSecret=") == true)
            #expect(push["slot"].int == 3 && push["app"].string == "live" && push["name"].string == "r1-3")
            let life = Double(APIRoomTests.ms(push["expiresAt"])) / 1_000 - Date().timeIntervalSince1970
            #expect((3_590...3_601).contains(life), "\(life)")
            let short = try await api.ok("POST", "rooms/r1/push-url", #"{"lifetime":60}"#)
            #expect((50...61).contains(Double(APIRoomTests.ms(short["expiresAt"])) / 1_000 - Date().timeIntervalSince1970))
            #expect(try await api.ok("POST", "rooms/r1/push-url", #"{"userId":"u1"}"#)["rtmp"].string?.contains("?token=ey") == true)
            let play = try await api.ok("GET", "rooms/r1/play-urls?userId=u1")
            #expect(play["streams"].list.map(\.["name"].string) == ["r1", "r1-2", "r1-3"])
            #expect(play["talk"]["rtmp"].string?.hasPrefix("rtmp://live.example.com/talk/r1/mix?token=ey") == true)
            #expect(play["talk"]["mp4"].string?.contains("/talk/r1/mix.mp4?token=ey") == true && play["talk"]["hls"].string == nil)
            let code = try await api("GET", "rooms/r1/push-url.svg?slot=2&size=4")
            #expect(code.contentType == "image/svg+xml")
            #expect(code.text.hasPrefix("<svg "))
            // The list of rooms has no secret.
            #expect(try await !api("GET", "rooms").text.contains("txSecret"))
        }
    }
}
