package import Foundation

/// A self-signed certificate, made with openssl.
package struct Certificate: Sendable {
    package let certificate: String
    package let key: String

    /// `name` becomes the common name and the DNS name. Existing files are replaced.
    package static func make(_ name: String, in directory: URL) async throws -> Certificate {
        let made = Certificate(
            certificate: directory.appendingPathComponent("certificate.pem").path, key: directory.appendingPathComponent("key.pem").path)
        let openssl = try await ClientProcess.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=\(name)", "-addext", "subjectAltName=DNS:\(name)", "-keyout", made.key, "-out", made.certificate,
        ])
        guard openssl.status == 0 else { throw TimedOut(description: "openssl could not make a certificate: \(openssl.errors)") }
        return made
    }

    /// openssl's report on the TLS server at that port. Its subject line has "CN = name".
    package static func presented(on port: Int) async throws -> String {
        try await ClientProcess.run(["openssl", "s_client", "-connect", "127.0.0.1:\(port)"]).text
    }
}
