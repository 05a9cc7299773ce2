import Access
import Foundation
import NIOCore
import RTMP
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Streaming

/// Devices and viewers that were refused, as operators see them; `RecentRefusals` itself has its tests in `StreamingTests`.
@Suite struct RecentRefusalsTests {
    private static func close(_ config: inout ServerConfig) {
        config.access.publishFrom = []
        config.access.playFrom = []
        config.credentials.key = TestCredential.keys.key
        config.credentials.jwtKey = TestCredential.keys.jwtKey
    }

    /// RTMP and HTTP, in the API and on the command line. No credential is shown.
    @Test func areListed() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run(Self.close) { server in
                let wrong = "cam1?txSecret=0123456789abcdef0123456789abcdef&txTime=7FFFFFFF"
                for _ in 1...2 {
                    let push = try await TagClient.connect(to: server, .publish, "live/\(wrong)")
                    try await eventually("the refusal of the push") { push.current.isClosed }
                }
                let play = try await TagClient.connect(to: server, .play, "live/cam1")
                try await eventually("the refusal of the play") { play.current.isClosed }
                #expect(try await HTTPAnswer.get("\(server.http)/live/other.flv?token=nonsense").status == 403)
                #expect(try await HTTPAnswer.get("\(server.http)/live/other.m3u8").status == 403)
                #expect(await server.lines.comes("Play refused", "reason=credential_wrong", "play live/other: ", "remote=127.0.0.1"))
                #expect(!server.lines.contains("nonsense"))
                let all = try await server.api("streams/refused")["list"].list
                #expect(
                    all.map { "\($0["action"].string ?? "") \($0["name"].string ?? "") \($0["reason"].string ?? "")" } == [
                        "play other credential_missing", "play other credential_wrong", "play cam1 credential_missing",
                        "publish cam1 credential_wrong",
                    ])
                #expect(all.map(\.["count"].int) == [1, 1, 1, 2])
                #expect(all.allSatisfy { $0["clientAddress"].string == "127.0.0.1" && ($0["message"].string ?? "").count > 20 })
                #expect(try await server.api("streams/refused?app=live&name=cam1&action=publish")["list"].count == 1)
                #expect(try await server.call("GET", "streams/refused?app=live").status == 400)
                #expect(try await !server.call("GET", "streams/refused").text.contains("0123456789abcdef"))

                let cli = try await server.cli(.ops, in: directory)
                let table = try await cli.text("streams", "refused", "--stream", "live/cam1")
                #expect(table.contains("credential_wrong") && table.contains("publish") && table.contains("127.0.0.1"), "\(table)")
                let why = try await cli("streams", "why", "live/cam1")
                #expect(why.status == 3 && why.errors.contains("a push from 127.0.0.1 was refused"), "\(why.errors)")
                #expect(why.errors.contains("2 times in all") && why.errors.contains("credential_wrong"), "\(why.errors)")
            }
        }
    }
}
