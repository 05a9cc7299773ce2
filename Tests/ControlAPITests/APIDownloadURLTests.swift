import APITestSupport
import Foundation
import Rooms
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer
@testable import RoomRegistry

/// Signed links to files, on a server without a port.
@Suite struct APIDownloadURLTests {
    private static let id = "0123456789abcdef"
    private static let other = "1123456789abcdef"
    private static let bytes = Data("a picture of ten kilobytes, or so".utf8)

    /// A picture in its folder and in the registry.
    private static func addPicture(_ id: String, _ server: UnboundServer) async throws {
        let file = "live/cam1/20261121T100000-\(id).jpg"
        let url = URL(fileURLWithPath: "\(server.dataDirectory)/snapshots/\(file)")
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Self.bytes.write(to: url)
        let picture = SnapshotRecord(
            id: id, path: StreamPath(app: "live", name: "cam1"), roomID: RoomID(stored: "cam1"), slot: 1, file: file,
            takenAt: server.rooms.now, bytes: Int64(Self.bytes.count), width: 16, height: 16)
        _ = try await server.rooms.snapshotTaken(picture, SnapshotBounds(perStream: 10, bytes: 0))
    }

    private static func run(_ body: @Sendable (UnboundServer, CheckedAPI) async throws -> Void) async throws {
        try await UnboundServer.run { server in
            let api = try await CheckedAPI(server)
            try await api.ok("POST", "rooms", #"{"roomId":"cam1"}"#, status: 201)
            try await Self.addPicture(Self.id, server)
            try await body(server, api)
        }
    }

    /// A link's path and query.
    private static func target(_ url: String?, _ server: UnboundServer) throws -> String {
        let url = try url.orThrow()
        #expect(url.hasPrefix("\(server.http)/api/v1/"))
        return String(url.dropFirst(server.http.count))
    }

    @Test func aLinkOpensItsFileWithoutAToken() async throws {
        try await Self.run { server, api in
            let made = try await api.ok("POST", "snapshots/\(Self.id)/download-url", #"{"expiresIn":60}"#)
            #expect(made["expiresAt"].string?.hasSuffix("Z") == true)
            let target = try Self.target(made["url"].string, server)
            let whole = try await server.request("GET", target)
            #expect(whole.status == 200 && whole.body == Self.bytes && whole.contentType == "image/jpeg")
            #expect(whole.headers["accept-ranges"] == "bytes")
            #expect(whole.headers["content-disposition"] == "inline; filename=\"cam1-20261121T100000-\(Self.id).jpg\"")
            let part = try await server.request("GET", target, headers: ["Range": "bytes=2-8"])
            #expect(part.status == 206 && part.text == "picture" && part.headers["content-range"] == "bytes 2-8/\(Self.bytes.count)")
            #expect(!server.lines.all.contains { $0.contains("signature=") })
        }
    }

    @Test func whatIsWrongOrExpiredIsForbidden() async throws {
        try await Self.run { server, api in
            try await Self.addPicture(Self.other, server)
            let target = try Self.target(try await api.ok("POST", "snapshots/\(Self.id)/download-url")["url"].string, server)
            let expired = FileLinks(server.server.parts.keys).signed("/api/v1/snapshots/\(Self.id)/file", expiresAt: WallClock.seconds - 1)
            for (bad, word) in [
                (target.replacing(Self.id, with: Self.other), "signature is wrong"), (target + "x", "signature is wrong"),
                (String(target.prefix { $0 != "&" }), "signature is wrong"), (expired, "expired at"),
            ] {
                let answer = try await server.request("GET", bad)
                #expect(answer.status == 403, "\(bad): \(answer.text)")
                #expect(try answer.json()["message"].string?.contains(word) == true, "\(answer.text)")
            }
            // Without a link the token counts, and one that is shown is checked although the link is right.
            #expect(try await server.request("GET", String(target.prefix { $0 != "?" })).status == 401)
            #expect(try await server.request("GET", target, token: "earshot_wrong").status == 401)
            #expect(try await server.request("GET", target, token: server.token).status == 200)
            #expect(try await server.request("GET", target.replacing("/file?", with: "/download-url?")).status == 405)
        }
    }

    @Test func linksLiveAMinuteToAWeek() async throws {
        try await Self.run { _, api in
            for seconds in [59, 604_801, 0, -1] {
                let error = try await api.refused(400, "POST", "snapshots/\(Self.id)/download-url", #"{"expiresIn":\#(seconds)}"#)
                #expect(error["field"].string == "expiresIn")
            }
            for seconds in [60, 604_800] {
                try await api.ok("POST", "snapshots/\(Self.id)/download-url", #"{"expiresIn":\#(seconds)}"#)
            }
            try await api.refused(404, "POST", "recordings/\(Self.id)/download-url")
        }
    }
}
