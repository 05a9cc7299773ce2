import Access
import Foundation
import Rooms
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import Delivery
@testable import EarshotServer
@testable import RoomStore

/// Addresses of relay tasks are unreadable in the store.
@Suite struct StoredAddressTests {
    private static let path = StreamPath(app: "live", name: "cam1")
    private static let url = "rtmp://localhost:9/live/hush-hush-key?token=hush-hush-token"

    /// All files of the store.
    private static func stored(_ data: String) throws -> Data {
        try FileManager.default.contentsOfDirectory(atPath: data).filter { $0.hasPrefix("earshot.db") }.reduce(into: Data()) {
            $0.append(try Data(contentsOf: URL(fileURLWithPath: "\(data)/\($1)")))
        }
    }

    /// An address survives a restart and is readable in no file; rows of an earlier version are sealed.
    @Test func theStoreHoldsNoAddress() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let plain = try await TestServer.run(data: data) { server in
                _ = try await RelayTaskTests.create(server, "push", "cam1", Self.url)
                // As an earlier version stored it.
                return try await server.server.parts.rooms.createRelayTask(
                    .push, StreamPath(app: "live", name: "cam2"), url: Self.url, onDemand: false
                ).id
            }
            try await TestServer.run(data: data) { server in
                try await server.wait("relay-tasks") { $0["list"].count == 2 }
                #expect(try await server.api("relay-tasks/\(plain)")["target"].string?.hasPrefix("rtmp://localhost:9/live/hush***") == true)
                #expect(try await server.server.parts.rooms.relayTasks().allSatisfy { URLVault.isSealed($0.url) })
            }
            #expect(try Self.stored(data).range(of: Data("hush-hush".utf8)) == nil)
            // With another key, the server logs that and runs.
            try FileManager.default.removeItem(atPath: "\(data)/relay.key")
            try await TestServer.run(data: data) { server in
                try await eventually("words for it") { server.lines.all.count { $0.contains("another key") } == 2 }
                #expect(try await server.api("relay-tasks")["list"].count == 0)
                #expect(!server.lines.all.contains { $0.contains("hush") })
                #expect(try await server.call("DELETE", "relay-tasks/\(plain)").status == 200)
            }
        }
    }

    /// A server that joins a cluster brings its addresses; they are sealed anew under the cluster's key, and under its next one.
    @Test func addressesFollowTheClustersKey() async throws {
        let (one, two) = ("a-key-of-a-cluster-0123456789abcdef", "another-key-of-a-cluster-0123456789")
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            func run(_ key: String?, previous: String? = nil, _ body: @Sendable (TestServer) async throws -> Void) async throws {
                try await TestServer.run(data: data, { ($0.cluster.key, $0.cluster.previousKey) = (key, previous) }, body)
            }
            try await run(nil) { server in _ = try await RelayTaskTests.create(server, "push", "cam1", Self.url) }
            try await run(one) { server in try await server.wait("relay-tasks") { $0["list"].count == 1 } }
            try FileManager.default.removeItem(atPath: "\(data)/relay.key")
            try await run(two, previous: one) { server in try await server.wait("relay-tasks") { $0["list"].count == 1 } }
            try await run(two) { server in try await server.wait("relay-tasks") { $0["list"].count == 1 } }
            try await run(one) { server in
                try await eventually("words for it") {
                    server.lines.all.contains { $0.contains("another key than those of cluster.key") && $0.contains("create it again") }
                }
                #expect(!server.lines.all.contains { $0.contains("hush") })
            }
            #expect(!FileManager.default.fileExists(atPath: "\(data)/relay.key"))
        }
    }
}
