import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// HEAD of what the HTTP port answers without media: the head of GET's answer, its length included, and no content (RFC 9110 §9.3.2).
@Suite struct HeadTests {
    @Test(arguments: [[:], ["Accept-Encoding": "gzip"]]) func lengthsAreThoseOfGET(_ asked: [String: String]) async throws {
        try await PortlessServer.run({ $0.apps.demo = true }) { server in
            let asked = asked.merging(["Authorization": "Bearer \(server.token)"]) { $1 }
            for path in [
                "/healthz", "/readyz/play", "/", "/demo/class", "/sdk/rong.js", "/api/v1/rooms", "/api/v1/openapi.json",
                "/api/v1/version", "/api/v1/nothing", "/api/v1/rooms/none", "/api/v1/streams/live/none", "/nothing",
                "/live/none.m3u8", "/live/none.flv", "/live/none.mp4", "/live/none.hls/media.m3u8",
            ] {
                let get = try await HTTPAnswer.call("GET", server.http + path, headers: asked)
                let head = try await HTTPAnswer.call("HEAD", server.http + path, headers: asked)
                #expect(head.status == get.status && head.body.isEmpty, "\(path): \(head.status) and \(get.status)")
                #expect(head.headers["content-length"] == get.headers["content-length"], "\(path)")
                #expect(head.headers["content-length"] != "0" && head.contentType == get.contentType, "\(path): \(head.headers)")
                #expect(head.headers["content-encoding"] == get.headers["content-encoding"], "\(path)")
            }
        }
    }

    /// Not a byte follows the head: the next answer on the connection begins there.
    @Test func nothingFollows() async throws {
        try await PortlessServer.run { server in
            let answer = try await RawHTTP.send(
                "HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\nHEAD /api/v1/rooms HTTP/1.1\r\nHost: a\r\n\r\n"
                    + "HEAD /live/none.flv HTTP/1.1\r\nHost: a\r\n\r\n", to: server)
            let heads = answer.components(separatedBy: "\r\n\r\n")
            #expect(heads.count == 4 && heads[3].isEmpty, "\(answer)")
            for head in heads.prefix(3) {
                #expect(head.hasPrefix("HTTP/1.1 ") && head.lowercased().contains("\r\ncontent-length: "), "\(answer)")
            }
        }
    }

    /// What has not changed has no length, for HEAD as for GET.
    @Test func whatIsKnown() async throws {
        try await PortlessServer.run({ $0.apps.demo = true }) { server in
            let tag = try await HTTPAnswer.call("GET", "\(server.http)/demo/class").headers["etag"].orThrow()
            for method in ["GET", "HEAD"] {
                let answer = try await HTTPAnswer.call(method, "\(server.http)/demo/class", headers: ["If-None-Match": tag])
                #expect(answer.status == 304 && answer.headers["content-length"] == nil, "\(method): \(answer.headers)")
            }
        }
    }
}
