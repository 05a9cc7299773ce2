import APITestSupport
import Foundation
import HTTPTypes
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import EarshotServer
@testable import ServerConfiguration

/// Former names beside present ones, and the names in error messages, on a live server.
@Suite struct APIFormerNameTests {
    /// Former names hold the same values.
    @Test func formerNamesHoldTheSame() async throws {
        try await TestServer.run({ $0.talk.always = true }) { server in
            let api = try await CheckedAPI(server)
            let publisher = try await RawClient.publishing(server.port, "cam1")
            let session = try await api.ok("GET", "sessions?role=publisher")["list"][0]
            let id = try session["sessionId"].int.orThrow()
            #expect(session["id"].int == id)
            #expect(try await api.ok("GET", "sessions/\(id)")["sessionId"].int == id)
            let stream = try await api.ok("GET", "streams/live/cam1")["stream"]["publisher"]
            #expect(stream["sessionId"].int == id && stream["session"].int == id)
            try await api.ok("POST", "rooms/cam1/join", #"{"userId":"ann"}"#)
            let joined = try await api.ok("GET", "rooms/cam1/events")["list"].list.last { $0["kind"].string == "member.join" }
            #expect(joined?["data"]["userId"].string == "ann" && joined?["data"]["user"].string == "ann")
            let ban = try await api.ok("POST", "rooms/cam1/talk/members/bob/kick", #"{"seconds":60}"#)["banned"][0]
            #expect(ban["userId"].string == "bob" && ban["forbiddenUntil"].string != nil)
            #expect(ban["until"].string == ban["forbiddenUntil"].string)
            await publisher.close()
        }
    }
}
