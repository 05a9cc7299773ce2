import APITestSupport
import Foundation
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import Support

/// URLs from the API. Real clients use them unchanged in `EndToEndTests`.
@Suite struct APIURLTests {
    @Test func urlsAreWhatWasAskedFor() async throws {
        try await UnboundServer.run({
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
            let life = Double(push["expiresAt"].ms) / 1_000 - Date().timeIntervalSince1970
            #expect((3_590...3_601).contains(life), "\(life)")
            let short = try await api.ok("POST", "rooms/r1/push-url", #"{"lifetime":60}"#)
            #expect((50...61).contains(Double(short["expiresAt"].ms) / 1_000 - Date().timeIntervalSince1970))
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
