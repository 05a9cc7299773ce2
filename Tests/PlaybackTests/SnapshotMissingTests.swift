import PortlessTestSupport
import ServerTestSupport
import TestSupport
import Testing

/// Answers where there is no picture of a room.
@Suite struct SnapshotMissingTests {
    /// The 404 of a picture says what is missing: the room, the stream, or the picture of a stream without one.
    @Test func whichIsMissing() async throws {
        let tags = try await FLVTag.media(of: Fixture.flv(video: nil, audio: Fixture.aac, seconds: 2))
        try await PortlessServer.run { server in
            func missing() async throws -> JSON {
                let answer = try await server.call("GET", "rooms/cam1/snapshot.jpg")
                #expect(answer.status == 404, "\(answer.text)")
                return try answer.json()["error"]
            }
            #expect(try await missing()["field"].string == "roomId")
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            #expect(try await missing()["rule"].string == "no stream")
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send(tags)
            try await server.wait("rooms/cam1") { $0["state"].string == "live" }
            #expect(try await missing()["rule"].string == "no picture")
            await publisher.close()
            _ = try await server.call("POST", "rooms/cam1/close")
            #expect(try await missing()["rule"].string == "no room")
        }
    }
}
