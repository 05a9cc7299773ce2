import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// What the HTTP port answers without a token, to other addresses, and at paths that do not exist.
@Suite struct APIRouterTests {
    @Test func healthAnswersEverybody() async throws {
        try await PortlessServer.run({ $0.access.apiFrom = Self.elsewhere }) { server in
            let health = try await HTTPAnswer.get("\(server.http)/healthz")
            #expect(health.status == 200)
            #expect(health.text == "ok\n")
            // The store of a busy machine may take its time.
            try await eventually("readiness") {
                let ready = try await HTTPAnswer.get("\(server.http)/readyz")
                return ready.status == 200 && ready.text == "ready\n"
            }
        }
    }

    @Test func otherAddressesAreRefused() async throws {
        try await PortlessServer.run({ $0.access.apiFrom = Self.elsewhere }) { server in
            for path in ["streams", "sessions", "counters", "nothing"] {
                let answer = try await server.call("GET", path)
                #expect(answer.status == 403, "\(path)")
                #expect(try answer.json()["code"].int == 403)
                #expect(try answer.json()["message"].string?.contains("access.apiFrom") == true)
            }
        }
    }

    @Test(arguments: ["/api/v1/nothing", "/api/v1/streams/x", "/api/v1/rooms//close", "/api/v1/streams/live/", "/api/v1", "/nothing"])
    func unknownPathsAreNamed(_ path: String) async throws {
        try await PortlessServer.run { server in
            let answer = try await HTTPAnswer.get("\(server.http)\(path)")
            #expect(answer.status == 404)
            #expect(answer.contentType?.hasPrefix("application/json") == true, "\(answer.text)")
            let body = try answer.json()
            #expect(body["code"].int == 404)
            #expect(body["message"].string?.contains(path) == true, "\(answer.text)")
            #expect(body["requestId"].string?.isEmpty == false)
        }
    }

    /// A player that waits for a stream is listed too.
    @Test func aWaitingPlayerIsListed() async throws {
        try await PortlessServer.run { server in
            let player = try await TagClient.play(from: server, "live/later")
            let stream = try await server.api("streams")["list"][0]
            #expect(stream["state"].string == "waiting")
            #expect(stream["viewers"].int == 1)
            #expect(stream["publisher"]["address"].string == nil)
            await player.close()
            try await server.wait("streams") { $0["total"].int == 0 }
        }
    }

    private static let elsewhere: [CIDR] = {
        do { return [try CIDR(parsing: "10.0.0.0/8")] } catch { return [] }
    }()

}
