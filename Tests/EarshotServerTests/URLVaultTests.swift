import Access
import Foundation
import Rooms
import Testing

@testable import Delivery
@testable import EarshotServer
@testable import RoomStore

/// Addresses of relay tasks are unreadable in the store.
@Suite struct URLVaultTests {
    private static let path = StreamPath(app: "live", name: "cam1")
    private static let url = "rtmp://localhost:9/live/hush-hush-key?token=hush-hush-token"

    /// All files of the store.
    private static func stored(_ data: String) throws -> Data {
        try FileManager.default.contentsOfDirectory(atPath: data).filter { $0.hasPrefix("earshot.db") }.reduce(into: Data()) {
            $0.append(try Data(contentsOf: URL(fileURLWithPath: "\(data)/\($1)")))
        }
    }

    @Test func whatIsSealedOpensWithItsKeyAndPlaceOnly() throws {
        let directories = (0..<2).map { _ in NSTemporaryDirectory() + "vault-\(UUID().uuidString)" }
        defer { for directory in directories { try? FileManager.default.removeItem(atPath: directory) } }
        let vault = try URLVault(directory: directories[0])
        let sealed = try vault.seal(Self.url, .push, Self.path)
        #expect(URLVault.isSealed(sealed) && !URLVault.isSealed(Self.url) && !sealed.contains("hush"))
        #expect(try vault.seal(Self.url, .push, Self.path) != sealed)
        // The same key after a restart.
        #expect(try URLVault(directory: directories[0]).open(sealed, .push, Self.path) == Self.url)
        #expect(try URLVault(directory: directories[1]).open(sealed, .push, Self.path) == nil)
        #expect(vault.open(sealed, .pull, Self.path) == nil)
        #expect(vault.open(sealed, .push, StreamPath(app: "live", name: "cam2")) == nil)
        for broken in ["", "sealed1:", "sealed1:%", "sealed1:AAAA", String(sealed.dropLast(4)), Self.url] {
            #expect(vault.open(broken, .push, Self.path) == nil)
        }
        let file = "\(directories[0])/relay.key"
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600 && !"\(vault)".contains("key:"))
        try Data(count: 31).write(to: URL(fileURLWithPath: file))
        #expect(throws: KeyFileError.self) { try URLVault(directory: directories[0]) }
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
}
