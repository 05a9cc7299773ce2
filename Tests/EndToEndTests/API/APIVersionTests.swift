import APITestSupport
import ServerTestSupport
import Testing

/// Condition headers that no client's library sends.
@Suite struct APIVersionTests {
    /// A condition header without a value is rejected, and nothing changes.
    @Test(arguments: ["If-Match", "If-None-Match"]) func anEmptyConditionIsRefused(_ name: String) async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"r1"}"#, status: 201)
            for value in ["", " "] {
                for (call, body) in [("PATCH /api/v1/rooms/r1", #"{"title":"x"}"#), ("POST /api/v1/rooms/r1/close", "{}")] {
                    let answer = try await RawHTTP.send(
                        """
                        \(call) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(server.token)\r\nConnection: close\r\n\(name):\(value)\r\n\
                        Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)
                        """, to: server)
                    #expect(answer.hasPrefix("HTTP/1.1 400") && answer.contains("\"field\":\"\(name)\""), "\(answer)")
                }
            }
            let room = try await api.ok("GET", "rooms/r1")
            #expect(room["title"].string == "" && room["state"].string == "created")
        }
    }
}
