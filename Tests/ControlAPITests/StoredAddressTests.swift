import APITestSupport
import Access
import Foundation
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import RoomRegistry
@testable import Streaming

/// Addresses of links are unreadable in the store.
@Suite struct StoredAddressTests {
    private static let path = StreamPath(app: "live", name: "cam1")
    private static let url = "rtmp://localhost:9/live/hush-hush-key?token=hush-hush-token"

    /// All files of the store.
    private static func stored(_ data: String) throws -> Data {
        try FileManager.default.contentsOfDirectory(atPath: data).filter { $0.hasPrefix("earshot.db") }.reduce(into: Data()) {
            $0.append(try Data(contentsOf: URL(fileURLWithPath: "\(data)/\($1)")))
        }
    }

    private static func create(_ server: UnboundServer) async throws {
        let made = try await server.call("POST", "links", #"{"direction":"push","app":"live","name":"cam1","url":"\#(Self.url)"}"#)
        #expect(made.status == 201, "\(made.text)")
    }

    /// Waits for the link, which is listed just before the store has its address under another seal. Returns that address.
    private static func resealed(_ server: UnboundServer, _ former: String) async throws -> String {
        try await server.wait("links") { $0["list"].count == 1 }
        var stored = former
        try await eventually("another seal") {
            stored = try await server.rooms.links().first.orThrow().url
            return stored != former
        }
        return stored
    }

    /// An address survives a restart and is readable in no file; rows of an earlier version are sealed.
    @Test func theStoreHoldsNoAddress() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let plain = try await UnboundServer.run(data: data) { server in
                try await Self.create(server)
                // As an earlier version stored it.
                return try await server.server.parts.rooms.createLink(
                    .push, StreamPath(app: "live", name: "cam2"), url: Self.url, onDemand: false
                ).id
            }
            try await UnboundServer.run(data: data) { server in
                try await server.wait("links") { $0["list"].count == 2 }
                #expect(try await server.api("links/\(plain)")["target"].string?.hasPrefix("rtmp://localhost:9/live/hush***") == true)
                // A link is listed just before the store has its sealed address.
                try await eventually("the seals") {
                    try await server.server.parts.rooms.links().allSatisfy { URLVault.isSealed($0.url) }
                }
            }
            #expect(try Self.stored(data).range(of: Data("hush-hush".utf8)) == nil)
            // With another key, the server logs that and runs.
            try FileManager.default.removeItem(atPath: "\(data)/links.key")
            try await UnboundServer.run(data: data) { server in
                try await eventually("words for it") { server.lines.all.count { $0.contains("another key") } == 2 }
                #expect(try await server.api("links")["list"].count == 0)
                #expect(!server.lines.all.contains { $0.contains("hush") })
                #expect(try await server.call("DELETE", "links/\(plain)").status == 200)
            }
        }
    }

    /// A server that joins a cluster brings its addresses; they are sealed anew under the cluster's key, and under its next one.
    @Test func addressesFollowTheClustersKey() async throws {
        let (one, two) = ("a-key-of-a-cluster-0123456789abcdef", "another-key-of-a-cluster-0123456789")
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            func run<Result: Sendable>(
                _ key: String?, previous: String? = nil, _ body: @Sendable (UnboundServer) async throws -> Result
            ) async throws -> Result {
                try await UnboundServer.run(data: data, { ($0.cluster.key, $0.cluster.previousKey) = (key, previous) }, body)
            }
            let local = try await run(nil) { server in
                try await Self.create(server)
                return try await server.rooms.links().first.orThrow().url
            }
            let first = try await run(one) { server in try await Self.resealed(server, local) }
            try FileManager.default.removeItem(atPath: "\(data)/links.key")
            _ = try await run(two, previous: one) { server in try await Self.resealed(server, first) }
            try await run(two) { server in try await server.wait("links") { $0["list"].count == 1 } }
            try await run(one) { server in
                try await eventually("words for it") {
                    server.lines.all.contains { $0.contains("another key than those of cluster.key") && $0.contains("create it again") }
                }
                #expect(!server.lines.all.contains { $0.contains("hush") })
            }
            #expect(!FileManager.default.fileExists(atPath: "\(data)/links.key"))
        }
    }
}
