import APITestSupport
import Foundation
import RTMPTestSupport
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
            for path in [
                "rooms", "rooms/r1", "streams", "sessions", "streams/published", "rooms/r1/events", "events", "webhooks/deliveries",
            ] {
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
            let url = try await api.ok("POST", "rooms/r1/push-url", #"{"by":"device","scheme":"\#(scheme)"}"#)
            #expect(url["name"].string == "EAR-7" && url["app"].string == "live" && url["slot"].int == 1)
            let key = try url["streamKey"].string.orThrow()
            let device = try await TagClient.publish(to: server, "live/\(key)")
            #expect(try await api.ok("GET", "rooms/r1")["streams"][0]["sequence"].int != nil)
            await device.close()
            #expect(try await api.refused(400, "POST", "rooms/r1/push-url", #"{"by":"device","slot":2}"#)["field"].string == "slot")
            #expect(try await api.refused(400, "POST", "rooms/r2/push-url", #"{"by":"device"}"#)["field"].string == "by")
            #expect(try await api("GET", "rooms/r1/push-url.svg?by=device&scheme=\(scheme)").status == 200)
        }
    }

    /// Without a parameter for tokens there are none to hand out.
    @Test func tokensThatAreSwitchedOff() async throws {
        try await TestServer.run({ $0.credentials.tokenParameters = [] }) { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            #expect(try await api.refused(400, "POST", "rooms/r1/push-url", #"{"scheme":"jwt"}"#)["field"].string == "scheme")
            try await api.ok("POST", "rooms/r1/push-url", #"{"scheme":"txSecret"}"#)
        }
    }
}
