import Foundation
import Logging
import NIOCore
import Outbound
import RTMP
import ServerConfiguration
import ServerTestSupport
import Support

@testable import Access

/// Admission rules with known keys, and shorthand for requests to them.
struct Doorkeeper: Sendable {
    static let remote = "203.0.113.9"
    static let now: Int64 = 1_795_255_200

    let rules: AdmissionRules
    let settings: Live<ServerConfig>

    /// `freeFailures`: wrong credentials from one address before it is throttled. Most tests send more than the real limit.
    init(
        _ keys: KeyRing = TestCredential.keys, lines: LogLines = LogLines(), freeFailures: Double = 1_000_000,
        _ configure: (inout ServerConfig) -> Void = { _ in }
    ) {
        var config = ServerConfig()
        config.outbound.allowPrivate = CIDR.loopback
        configure(&config)
        let log = Logger(label: "earshot", factory: { _ in CollectingLogHandler(lines: lines) })
        self.settings = Live(config)
        self.rules = AdmissionRules(
            self.settings, Live(keys), outbound: OutboundClient(self.settings),
            throttle: CredentialThrottle(FailureBuckets(burst: freeFailures)), log: log)
    }

    /// Checks a request from an address that needs a credential, unless `remote` says otherwise.
    func ask(
        _ query: String, app: String = "live", name: String = "test", action: AdmissionRequest.Action = .publish,
        from remote: String? = Self.remote, at seconds: Int64 = Self.now
    ) throws -> Result<AdmissionPass, AdmissionRefusal> {
        self.rules.check(try Self.request(query, app: app, name: name, action: action, from: remote), nowSeconds: seconds)
    }

    static func request(
        _ query: String, app: String = "live", name: String = "test", action: AdmissionRequest.Action = .publish,
        from remote: String? = Self.remote
    ) throws -> AdmissionRequest {
        var limits = RTMP.Limits()
        limits.queryBytes = 100_000
        return AdmissionRequest(
            action == .publish ? .rtmpPublish : .rtmpPlay, action: action,
            address: try StreamAddress(app: app, name: query.isEmpty ? name : "\(name)?\(query)", limits: limits),
            remote: try remote.map { try SocketAddress(ipAddress: $0, port: 40_000) }, session: 42)
    }
}

extension CredentialParameters {
    /// As without settings.
    static let standard = CredentialParameters(ServerConfig().credentials)
}

extension Result where Success == AdmissionPass, Failure == AdmissionRefusal {
    var refusal: CloseReason? {
        guard case .failure(let refusal) = self else { return nil }
        return refusal.reason
    }

    var message: String {
        guard case .failure(let refusal) = self else { return "" }
        return refusal.message
    }

    var pass: AdmissionPass? {
        guard case .success(let pass) = self else { return nil }
        return pass
    }
}

/// Creates a folder for the body and removes it afterwards.
func withTemporaryFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder.path)
}
