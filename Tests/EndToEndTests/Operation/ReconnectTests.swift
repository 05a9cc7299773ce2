import APITestSupport
import Foundation
import RTMP
import Rooms
import ServerTestSupport
import TestSupport
import Testing

/// Asking clients of Enhanced RTMP to connect again, by call.
@Suite struct ReconnectTests {
    private static let able = [AMF0Property(name: "capsEx", value: 1)]

    @Test func onlyThoseWhoCanAreAsked() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let able = try await TagClient.publish(to: server, "live/cam1", extra: Self.able)
            let plain = try await TagClient.play(from: server, "live/cam1")
            let viewer = try await TagClient.play(from: server, "live/cam1", extra: Self.able)
            func asked(_ client: TagClient) -> Int { client.current.statuses.count { $0.code == StatusCode.connectReconnectRequest } }
            let publisherID = try await api.ok("GET", "sessions?role=publisher")["list"][0]["sessionId"].int.orThrow()
            let outcome = try await api.ok("POST", "sessions/\(publisherID)/reconnect", #"{"tcUrl":"rtmp://other.example/live"}"#)
            #expect(outcome["asked"].int == 1 && outcome["unable"].int == 0)
            try await eventually("the request") { asked(able) == 1 }
            #expect(asked(plain) == 0 && asked(viewer) == 0)
            // All viewers of the stream, not its publisher.
            let all = try await api.ok("POST", "streams/live/cam1/reconnect")
            #expect(all["asked"].int == 1 && all["unable"].int == 1)
            try await eventually("the viewer's request") { asked(viewer) == 1 }
            #expect(asked(able) == 1 && asked(plain) == 0)
            var refusals = 0
            for session in try await api.ok("GET", "sessions?role=player")["list"].list {
                let id = try session["sessionId"].int.orThrow()
                let answer = try await api("POST", "sessions/\(id)/reconnect", "{}")
                if answer.status == 409 {
                    refusals += 1
                    #expect(answer.text.contains("capsEx 1"), "\(answer.text)")
                }
            }
            #expect(refusals == 1)
            try await api.refused(404, "POST", "sessions/999999/reconnect")
            for bad in ["http://a.example", "rtmp://", "rtmp:///x", "rtmp://a b", ""] {
                try await api.refused(400, "POST", "sessions/\(publisherID)/reconnect", #"{"tcUrl":"\#(bad)"}"#)
            }
            try await eventually("a line of each") {
                let lines = try await api.ok("GET", "audit?operation=reconnectSession")["list"].list
                return lines.contains { $0["status"].int == 200 } && lines.contains { $0["status"].int == 409 }
            }
            #expect(!able.current.isClosed && !plain.current.isClosed)
            for client in [able, plain, viewer] { await client.close() }
        }
    }

    @Test func byCommand() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let cli = try await server.cli(.ops, in: directory)
                let able = try await TagClient.publish(to: server, "live/cam1", extra: Self.able)
                let id = try await cli.json("sessions", "list")["list"][0]["sessionId"].int.orThrow()
                let said = try await cli.text("sessions", "reconnect", "\(id)", "--to", "rtmp://other.example/live")
                #expect(said == "the client of session \(id) is asked to connect again to rtmp://other.example/live\n")
                try await eventually("the request") { able.current.statuses.contains { $0.code == StatusCode.connectReconnectRequest } }
                #expect(try await cli("sessions", "reconnect", "999999").status == 3)
                await able.close()
            }
        }
    }
}
