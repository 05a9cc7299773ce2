package import NIOSSL
import Synchronization

/// The certificate that new TLS connections get; replaced as a whole on reload, while running connections keep theirs. Any thread.
package final class CertificateStore: Sendable {
    private let certificatePath: String
    private let keyPath: String
    private let contexts: Mutex<Contexts>

    private struct Contexts {
        let plain: NIOSSLContext
        let http: NIOSSLContext
    }

    /// Throws when the files cannot be read or do not fit together.
    package init(certificatePath: String, keyPath: String) throws {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.contexts = Mutex(try Self.load(certificatePath, keyPath))
    }

    /// Without an offer of protocols (RFC 7301).
    package var current: NIOSSLContext { self.contexts.withLock { $0.plain } }

    /// The same certificate; the client may choose HTTP/2.
    package var currentForHTTP: NIOSSLContext { self.contexts.withLock { $0.http } }

    /// As they are named in ALPN (RFC 9113 §3.2), in the order of our liking.
    static let http2 = "h2"
    private static let httpProtocols = [CertificateStore.http2, "http/1.1"]

    /// Reads the files again. On an error the old certificate stays in force.
    package func reload() throws {
        let new = try Self.load(self.certificatePath, self.keyPath)
        self.contexts.withLock { $0 = new }
    }

    private static func load(_ certificatePath: String, _ keyPath: String) throws -> Contexts {
        let chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
        let key = try NIOSSLPrivateKey(file: keyPath, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        let plain = try NIOSSLContext(configuration: configuration)
        configuration.applicationProtocols = Self.httpProtocols
        return Contexts(plain: plain, http: try NIOSSLContext(configuration: configuration))
    }
}
