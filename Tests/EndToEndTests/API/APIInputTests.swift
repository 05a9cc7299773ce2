import ServerTestSupport
import Testing

@testable import EarshotServer

/// Bad requests that no client's library sends, as bytes on a connection.
@Suite struct APIInputTests {
    @Test func otherMethodsAndPathsAreRefused() async throws {
        try await TestServer.run { server in
            let trace = try await RawHTTP.send("TRACE /api/v1/rooms HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", to: server)
            #expect(trace.hasPrefix("HTTP/1.1 405") && trace.contains("Allow: POST, GET"), "\(trace)")
            // Sent raw, because HTTP clients remove dots from paths.
            let head = "Host: x\r\nAuthorization: Bearer \(server.token)\r\nConnection: close\r\n\r\n"
            for path in ["streams/live/..", "streams/live/.", "rooms/..", "rooms/../tokens/x"] {
                let dots = try await RawHTTP.send("GET /api/v1/\(path) HTTP/1.1\r\n\(head)", to: server)
                #expect(dots.hasPrefix("HTTP/1.1 40"), "\(path): \(dots)")
            }
        }
    }

    /// A Content-Length over the limit is rejected at once. Chunks are rejected as soon as they exceed it. Neither waits for the rest.
    @Test(arguments: [true, false]) func bodiesThatAreTooLargeAreRefusedUnread(_ isAnnounced: Bool) async throws {
        try await TestServer.run { server in
            let head =
                "POST /api/v1/rooms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(server.token)\r\nContent-Type: application/json\r\n"
            let piece = String(repeating: "x", count: 16 << 10)
            let body =
                isAnnounced
                ? "Content-Length: 1000000000\r\n\r\n"
                : "Transfer-Encoding: chunked\r\n\r\n" + String(repeating: "4000\r\n\(piece)\r\n", count: 5)
            let began = ContinuousClock.now
            let answer = try await RawHTTP.send(head + body, to: server, within: 60)
            #expect(answer.hasPrefix("HTTP/1.1 413"), "\(answer.prefix(200))")
            #expect(answer.lowercased().contains("connection: close"))
            #expect(answer.contains("too_large"))
            // The server closed the connection: it does not wait for the announced gigabyte.
            #expect(ContinuousClock.now - began < .seconds(40))
        }
    }
}
