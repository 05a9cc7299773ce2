import APITestSupport
import Foundation
import HTTPTypes
import NIOCore
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ControlAPI
@testable import EarshotServer
@testable import HTTPServer
@testable import ServerConfiguration

/// Compressed answers, as a client's library and as the bytes of a connection.
@Suite struct APIWireTests {
    private static func raw(_ server: TestServer, _ path: String, _ headers: String = "") async throws -> String {
        try await RawHTTP.send(
            "GET /api/v1/\(path) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(server.token)\r\n\(headers)Connection: close\r\n\r\n",
            to: server)
    }

    @Test func longAnswersAreCompressedForWhoTakesThat() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            for index in 0..<20 { try await api.ok("POST", "rooms", #"{"roomId":"r\#(index)"}"#, status: 201) }
            // Foundation requests gzip and decompresses by itself, so every other API test reads compressed answers.
            let list = try await api("GET", "rooms", headers: ["Accept-Encoding": "gzip"])
            #expect(list.headers["content-encoding"] == "gzip" && list.headers["vary"]?.contains("Accept-Encoding") == true)
            #expect(try list.json()["data"]["list"].count == 20)
            let sent = try list.headers["content-length"].flatMap { Int($0) }.orThrow()
            let whole = try await Self.raw(server, "rooms")
            #expect(!whole.lowercased().contains("content-encoding") && whole.lowercased().contains("vary: accept-encoding"))
            #expect(whole.utf8.count > 5 * sent, "\(whole.utf8.count) \(sent)")
            for refusal in ["identity", "gzip;q=0", "gzip;q=0.0, *", "br, deflate", "", "*;q=0", "gzip;q=x"] {
                let plain = try await Self.raw(server, "rooms", "Accept-Encoding: \(refusal)\r\n")
                #expect(plain.hasPrefix("HTTP/1.1 200") && !plain.lowercased().contains("content-encoding"), "\(refusal)")
            }
            // Short answers are not compressed.
            let short = try await api("GET", "rooms/none")
            #expect(short.status == 404 && short.headers["content-encoding"] == nil)
            // The compressed representation has a strong tag of its own. The server accepts both tags.
            let room = try await api("GET", "rooms/r1", headers: ["Accept-Encoding": "gzip"])
            let tag = try room.headers["etag"].orThrow()
            #expect(room.headers["content-encoding"] == "gzip" && tag.hasSuffix("-gzip\""), "\(tag)")
            #expect(try await api("GET", "rooms/r1", headers: ["If-None-Match": tag]).status == 304)
            try await api.ok("PATCH", "rooms/r1", #"{"title":"x"}"#, headers: ["If-Match": tag])
            let head = try await server.call("HEAD", "rooms", headers: ["Accept-Encoding": "gzip"])
            #expect(head.headers["content-encoding"] == "gzip" && head.body.isEmpty)
            let metrics = try await HTTPAnswer.call("GET", "\(server.http)/metrics", token: server.token)
            #expect(metrics.headers["content-encoding"] == "gzip" && metrics.text.contains("earshot_"))
        }
    }
}
