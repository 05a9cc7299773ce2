import Foundation
import Rooms
import Testing

@testable import Access

/// Sealed addresses of links.
@Suite struct URLVaultTests {
    private static let path = StreamPath(app: "live", name: "cam1")
    private static let url = "rtmp://localhost:9/live/hush-hush-key?token=hush-hush-token"

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
        let file = "\(directories[0])/links.key"
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600 && !"\(vault)".contains("key:"))
        try Data(count: 31).write(to: URL(fileURLWithPath: file))
        #expect(throws: KeyFileError.self) { try URLVault(directory: directories[0]) }
    }
}
