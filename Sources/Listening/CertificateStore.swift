package import NIOSSL
import Support
import Synchronization

/// Holds the certificate for new TLS connections. A reload replaces it as a whole; running connections keep theirs. Any thread.
package final class CertificateStore: Sendable {
    private let contexts: Mutex<Contexts>

    /// A certificate that has been read and fits its key.
    package struct Contexts: Sendable {
        fileprivate let certificatePath: String
        fileprivate let keyPath: String
        fileprivate let plain: NIOSSLContext
        fileprivate let http: NIOSSLContext
        fileprivate let lifetimes: [Lifetime]
    }

    /// Validity of a certificate of the chain, in seconds since 1970.
    struct Lifetime: Sendable, Equatable {
        let begins: Int64
        let ends: Int64
        /// Whether this is the server's own certificate, not an issuer's.
        let isLeaf: Bool
    }

    /// Days before a certificate's expiry from which the log warns of it.
    static let warningDays: Int64 = 30

    package init(_ pair: Contexts) { self.contexts = Mutex(pair) }

    /// The context without ALPN (RFC 7301).
    package var current: NIOSSLContext { self.contexts.withLock { $0.plain } }

    /// The context of the same certificate that lets the client choose HTTP/2.
    package var currentForHTTP: NIOSSLContext { self.contexts.withLock { $0.http } }

    /// ALPN names (RFC 9113 §3.2), in order of preference.
    package static let http2 = "h2"
    private static let httpProtocols = [CertificateStore.http2, "http/1.1"]

    /// Reads the files again. On an error the old certificate stays in force.
    package func reload() throws {
        let paths = self.contexts.withLock { ($0.certificatePath, $0.keyPath) }
        self.use(try Self.read(certificatePath: paths.0, keyPath: paths.1))
    }

    /// Uses this certificate for new connections.
    package func use(_ new: Contexts) { self.contexts.withLock { $0 = new } }

    /// A certificate and a key that cannot be used together. The words name the settings and the files.
    package struct Mismatch: Error, CustomStringConvertible {
        package let description: String
    }

    /// Reads the pair of the settings' files without using it yet; nil without TLS. Blocks.
    package static func pair(_ files: (certificate: String, key: String)?) throws(Mismatch) -> Contexts? {
        guard let (certificate, key) = files else { return nil }
        do {
            return try self.read(certificatePath: certificate, keyPath: key)
        } catch {
            throw Mismatch(
                description: "rtmps.certificate, rtmps.key: \(certificate) and \(key) cannot be used together: the key is not this"
                    + " certificate's, it has a passphrase, or one of them is no PEM file (\(error))")
        }
    }

    /// Reads another certificate without using it yet. Throws if the files cannot be read or do not match. Blocks.
    package static func read(certificatePath: String, keyPath: String) throws -> Contexts {
        let chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
        let key = try NIOSSLPrivateKey(file: keyPath, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.cipherSuiteValues = Self.ciphers
        let plain = try NIOSSLContext(configuration: configuration)
        configuration.applicationProtocols = Self.httpProtocols
        let lifetimes = chain.enumerated().map { index, certificate in
            Lifetime(begins: Int64(certificate.notValidBefore), ends: Int64(certificate.notValidAfter), isLeaf: index == 0)
        }
        return Contexts(
            certificatePath: certificatePath, keyPath: keyPath, plain: plain, http: try NIOSSLContext(configuration: configuration),
            lifetimes: lifetimes)
    }

    /// TLS 1.2 suites with forward secrecy (ECDHE) and authenticated encryption (RFC 9325 §4.2). TLS 1.3 has no weaker ones.
    private static let ciphers: [NIOTLSCipher] = [
        .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ]

    /// When the first certificate of the chain expires, in seconds since 1970.
    package var ends: Int64? { self.contexts.withLock { $0.lifetimes.map(\.ends).min() } }

    // MARK: Warnings

    /// Warnings about certificates that are not valid at `nowMs` (since 1970), or expire soon. For the log, at each load.
    package func warnings(nowMs: Int64) -> [String] {
        let (lifetimes, path) = self.contexts.withLock { ($0.lifetimes, $0.certificatePath) }
        return Self.warnings(lifetimes, path: path, nowMs: nowMs)
    }

    static func warnings(_ lifetimes: [Lifetime], path: String, nowMs: Int64) -> [String] {
        let now = nowMs / 1_000
        return lifetimes.compactMap { lifetime in
            let what = lifetime.isLeaf ? "The TLS certificate in \(path)" : "A certificate of the chain in \(path)"
            let (begin, end) = (Instant.text(lifetime.begins * 1_000), Instant.text(lifetime.ends * 1_000))
            if now > lifetime.ends { return "\(what) expired at \(end): clients that check it refuse to connect. Renew it and send SIGHUP" }
            if now < lifetime.begins { return "\(what) is valid only from \(begin): clients that check it refuse to connect until then" }
            let days = (lifetime.ends - now) / 86_400
            guard days < self.warningDays else { return nil }
            let left = days == 0 ? "today or tomorrow" : "in \(days) \(days == 1 ? "day" : "days")"
            return "\(what) expires \(left), at \(end). Renew it and send SIGHUP"
        }
    }
}
