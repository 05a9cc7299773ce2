import Foundation
import Listening
import PortlessTestSupport
import RTMPTestSupport
import ServerConfiguration
import ServerTestSupport
import Streaming
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Playback

/// WHIP's answers, without a client's media: real clients are in Tests/Players.
@Suite struct WHIPTests {
    private static let offer = WHEPTests.offer.replacing("a=recvonly", with: "a=sendonly")

    private static func ask(
        _ server: PortlessServer, _ method: String, _ path: String, _ body: String = WHIPTests.offer, type: String? = "application/sdp",
        _ headers: [String: String] = [:]
    ) async throws -> HTTPAnswer {
        var headers = headers
        if let type { headers["Content-Type"] = type }
        return try await HTTPAnswer.call(method, "\(server.http)\(path)", body: Data(body.utf8), headers: headers)
    }

    /// A server whose UDP port is open; the rest is in memory.
    private static func run(
        _ configure: (inout ServerConfig) -> Void = { _ in }, _ body: @Sendable (PortlessServer) async throws -> Void
    ) async throws {
        try await PortlessServer.run(configure) { server in
            let address = HostPort(host: "127.0.0.1", port: 0)
            _ = try await server.parts.webrtc.port.bind(to: address, server.server.sockets)
            try await body(server)
        }
    }

    @Test func `an offer is answered, and its push has an address`() async throws {
        try await Self.run { server in
            let answer = try await Self.ask(server, "POST", "/whip/live/cam1")
            #expect(answer.status == 201, "\(answer.text)")
            let place = try answer.headers["location"].orThrow()
            #expect(place.hasPrefix("\(server.http)/whip/resource/") && !place.contains("?") && answer.headers["etag"]?.count == 18)
            #expect(answer.headers["content-type"] == "application/sdp" && answer.text.hasPrefix("v=0\r\n"))
            let port = try server.parts.webrtc.port.port.orThrow()
            #expect(answer.text.contains("127.0.0.1 \(port) typ host") && answer.text.contains("a=ice-lite"))
            #expect(answer.text.components(separatedBy: "a=recvonly").count == 3)
            try await server.wait("sessions?role=publisher") {
                $0["list"][0]["transport"].string == "webrtc" && $0["list"][0]["publishing"].list.map(\.string) == ["live/cam1"]
            }
            let path = String(place.dropFirst(server.http.count))
            let fragment = "application/trickle-ice-sdpfrag"
            #expect(try await Self.ask(server, "PATCH", path, "a=ice-ufrag:abcd\r\na=candidate:1\r\n", type: fragment).status == 204)
            // OBS takes any other code for a failure.
            #expect(try await HTTPAnswer.call("DELETE", place).status == 200)
            try await server.wait("sessions?role=publisher") { $0["list"].list.isEmpty }
            #expect(try await HTTPAnswer.call("DELETE", place).status == 404)
            #expect(server.parts.connections.admission.current.publishers == 0)
        }
    }

    @Test func `refusals say why`() async throws {
        try await Self.run({ $0.limits.publishersTotal = 1 }) { server in
            #expect(try await Self.ask(server, "POST", "/whip/live/cam1", type: "text/plain").status == 415)
            #expect(try await Self.ask(server, "POST", "/whip/live/cam1", "hello").status == 400)
            #expect(try await Self.ask(server, "POST", "/whip/talk/cam1/ann").status == 404)
            #expect(try await Self.ask(server, "POST", "/whip/live").status == 400)
            let watches = try await Self.ask(server, "POST", "/whip/live/cam1", WHEPTests.offer)
            #expect(watches.status == 406 && watches.text.contains("a=sendonly"), "\(watches.text)")
            let unknown = try await Self.ask(
                server, "POST", "/whip/live/cam1", Self.offer.replacing("H264", with: "VP8").replacing("opus", with: "G722"))
            #expect(unknown.status == 406 && unknown.text.contains("vp8, g722"), "\(unknown.text)")
            #expect(try await Self.ask(server, "POST", "/whip/live/cam1", ["Authorization": "Bearer nonsense"]).status == 403)
            let page = try await Self.ask(server, "POST", "/whip/live/cam1", ["Origin": "https://evil.example"])
            #expect(page.status == 403, "\(page.text)")
            #expect(try await Self.ask(server, "POST", "/whip/live/cam1").status == 201)
            let full = try await Self.ask(server, "POST", "/whip/live/cam2")
            #expect(full.status == 503 && full.text.contains("limits.publishersTotal"), "\(full.text)")
            #expect(server.parts.connections.admission.current.publishers == 1)
        }
    }

    /// The same rules as for RTMP: another device gets the name refused, the same one takes it over; what ends a push ends this one.
    @Test func `a push like any other`() async throws {
        try await Self.run { server in
            let device = try await TagClient.publish(to: server, "live/cam1?id=phone")
            let refused = try await Self.ask(server, "POST", "/whip/live/cam1?id=other")
            #expect(refused.status == 409 && refused.text.contains("name_taken"), "\(refused.text)")
            #expect(server.parts.connections.admission.current.publishers == 1)
            await device.close()
            try await server.wait("sessions?role=publisher") { $0["list"].list.isEmpty }
            for call in ["streams/live/cam2/drop", "streams/live/cam2/forbid"] {
                #expect(try await Self.ask(server, "POST", "/whip/live/cam2").status == 201)
                try await server.wait("sessions?role=publisher") { $0["list"].count == 1 }
                #expect(try await server.call("POST", call, "{}").status == 200)
                try await server.wait("sessions?role=publisher") { $0["list"].list.isEmpty }
            }
            #expect(try await Self.ask(server, "POST", "/whip/live/cam2").status == 403)
            #expect(server.parts.connections.admission.current.publishers == 0)
        }
    }

    private static func ask(
        _ server: PortlessServer, _ method: String, _ path: String, _ headers: [String: String]
    ) async throws -> HTTPAnswer { try await self.ask(server, method, path, Self.offer, type: "application/sdp", headers) }
}
