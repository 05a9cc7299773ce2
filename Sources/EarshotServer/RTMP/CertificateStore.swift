package import NIOSSL
import Synchronization

/// The certificate that new TLS connections get; replaced as a whole on reload, while running connections keep theirs. Any thread.
package final class CertificateStore: Sendable {
    private let certificatePath: String
    private let keyPath: String
    private let context: Mutex<NIOSSLContext>

    /// Throws when the files cannot be read or do not fit together.
    package init(certificatePath: String, keyPath: String) throws {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.context = Mutex(try Self.load(certificatePath, keyPath))
    }

    package var current: NIOSSLContext { self.context.withLock { $0 } }

    /// Reads the files again. On an error the old certificate stays in force.
    package func reload() throws {
        let new = try Self.load(self.certificatePath, self.keyPath)
        self.context.withLock { $0 = new }
    }

    private static func load(_ certificatePath: String, _ keyPath: String) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
        let key = try NIOSSLPrivateKey(file: keyPath, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        return try NIOSSLContext(configuration: configuration)
    }
}
