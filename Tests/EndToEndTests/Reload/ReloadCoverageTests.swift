import Foundation
import Testing

@testable import ServerConfiguration

/// Each setting that applies at a reload has a test that a reload changes what a server does.
@Suite struct ReloadCoverageTests {
    /// Tested elsewhere, or not at all, and why.
    private static let others = [
        "rtmps.certificate": "TLSClientsTests.hangUpReloadsTheCertificate, whose file of settings stays the same",
        "rtmps.key": "the same: a certificate and its key change together",
        "rooms.history": "looked at once a minute: RetentionTests.aReloadChangesWhatIsKept, with a clock of its own",
        "api.auditRetention": "the same",
        "api.auditLines": "the same",
        "snapshots.retention": "the same; looked at each twenty seconds",
        "recording.fsync": "whether bytes are on the disk cannot be seen; it comes to a recording's files with recording.fragment",
    ]

    /// The paths of settings, as in "limits.connections", that these tests reload with a value. Those of a server's start do not count.
    private static func named() throws -> Set<String> {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let files = try ["Reload", "Operation"].flatMap {
            try FileManager.default.contentsOfDirectory(at: tests.appendingPathComponent($0), includingPropertiesForKeys: nil)
        }
        return try files.filter { $0.lastPathComponent.hasPrefix("Reload") && $0.path != #filePath }.reduce(into: []) { names, file in
            let text = try String(contentsOf: file, encoding: .utf8).replacing(/ReloadingServer\.run\((?s:.*?)\{ server in/, with: "")
            names.formUnion(text.matches(of: /"([a-z][A-Za-z]*(?:\.[A-Za-z]+)+)":/).map { String($0.1) })
        }
    }

    @Test func everyLiveSettingIsNamed() throws {
        let live = Set(ConfigSetting.all.filter { $0.applies == .reload }.map(\.path))
        let named = try Self.named()
        let untested = live.subtracting(named).subtracting(Self.others.keys)
        #expect(untested.isEmpty, "without a test that a reload changes what the server does: \(untested.sorted())")
        let gone = Set(Self.others.keys).subtracting(live).union(Set(Self.others.keys).intersection(named))
        #expect(gone.isEmpty, "no longer an exception: \(gone.sorted())")
    }
}
