internal import COpenSSL
import LibC
import Support

/// One TLS client connection over a connected socket. It uses TLS 1.2 or later, sends the server's name (RFC 6066 §3), and checks the
/// certificate against the system's authorities, the name (RFC 6125) and the date.
///
/// Unchecked: one thread at a time uses it, first the link's, then the pump's once that has started.
final class TLSClient: @unchecked Sendable {
    /// The result of a call on the connection.
    enum Outcome {
        /// The call succeeded with this many bytes.
        case done(Int)
        case needsReadable, needsWritable
        /// The other end sent close_notify, or just closed.
        case ended
        case failed(String)
    }

    private let context: OpaquePointer
    private let ssl: OpaquePointer

    deinit {
        SSL_free(self.ssl)
        SSL_CTX_free(self.context)
    }

    /// Does not own the descriptor. `caFile` is a PEM file of authorities trusted beside the system's.
    init(_ descriptor: Int32, url: LinkURL, caFile: String?) throws(LinkError) {
        ERR_clear_error()
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw .system("no TLS context: \(Self.errors())") }
        // A session copies the context's settings when it is made, so these calls come first.
        let problem: LinkError?
        if earshot_ssl_require_tls12(context) != 1 || SSL_CTX_set_default_verify_paths(context) != 1 {
            problem = .tls(origin: url.origin, why: "the system's certificate authorities cannot be read: \(Self.errors())")
        } else if let caFile, SSL_CTX_load_verify_locations(context, caFile, nil) != 1 {
            problem = .tls(origin: url.origin, why: "the file of certificate authorities cannot be read: \(Self.errors())")
        } else {
            problem = nil
        }
        guard problem == nil, let ssl = Self.session(context, descriptor, url) else {
            let words = Self.errors()
            SSL_CTX_free(context)
            throw problem ?? .system("no TLS session: \(words)")
        }
        self.context = context
        self.ssl = ssl
    }

    private static func session(_ context: OpaquePointer, _ descriptor: Int32, _ url: LinkURL) -> OpaquePointer? {
        guard let ssl = SSL_new(context) else { return nil }
        SSL_set_verify(ssl, SSL_VERIFY_PEER, nil)
        earshot_ssl_allow_partial_writes(ssl)
        earshot_ssl_take_eof_as_end(ssl)
        let rules = SSL_get0_param(ssl)
        let isReady: Bool
        switch url.host {
        case .name(let name):
            X509_VERIFY_PARAM_set_hostflags(rules, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            isReady = X509_VERIFY_PARAM_set1_host(rules, name, name.utf8.count) == 1 && earshot_ssl_set_server_name(ssl, name) == 1
        case .address(let bytes):
            // RFC 6066 §3 allows no server name for addresses.
            isReady = X509_VERIFY_PARAM_set1_ip(rules, bytes, bytes.count) == 1
        }
        guard isReady, SSL_set_fd(ssl, descriptor) == 1 else {
            SSL_free(ssl)
            return nil
        }
        return ssl
    }

    /// Continues the handshake. The socket must be non-blocking.
    func connect() -> Outcome { self.run { SSL_connect(self.ssl) } }

    /// The reason why the certificate was rejected; nil when it was not.
    var verifyProblem: String? {
        let code = SSL_get_verify_result(self.ssl)
        guard code != Int(X509_V_OK) else { return nil }
        let words = String(cString: X509_verify_cert_error_string(code))
        switch Int32(code) {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return "its certificate is for another name (\(words)); use a name that the certificate contains"
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return "its certificate has expired; the server's owner must renew it, or this machine's clock is wrong"
        case X509_V_ERR_CERT_NOT_YET_VALID: return "its certificate is not valid yet; check this machine's clock"
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            return "its certificate is from an authority that this machine does not trust (\(words)); if you trust it, add it to the"
                + " system's authorities"
        default: return "its certificate is refused: \(words)"
        }
    }

    /// "TLSv1.3 TLS_AES_256_GCM_SHA384"
    var version: String {
        let cipher = earshot_ssl_cipher(self.ssl).map { " \(String(cString: $0))" } ?? ""
        return String(cString: SSL_get_version(self.ssl)) + cipher
    }

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        self.run { SSL_read(self.ssl, buffer.baseAddress, Int32(clamping: buffer.count)) }
    }

    func write(_ buffer: UnsafeRawBufferPointer) -> Outcome {
        self.run { SSL_write(self.ssl, buffer.baseAddress, Int32(clamping: buffer.count)) }
    }

    /// Sends close_notify (RFC 8446 §6.1) if that is possible without waiting.
    func shutdown() {
        ERR_clear_error()
        SSL_shutdown(self.ssl)
        ERR_clear_error()
    }

    private func run(_ call: () -> Int32) -> Outcome {
        // Clears the thread's error queue: an earlier call's error would look like this one's.
        ERR_clear_error()
        errno = 0
        let result = call()
        let code = errno
        guard result <= 0 else { return .done(Int(result)) }
        switch SSL_get_error(self.ssl, result) {
        case SSL_ERROR_WANT_READ: return .needsReadable
        case SSL_ERROR_WANT_WRITE: return .needsWritable
        case SSL_ERROR_ZERO_RETURN: return .ended
        case SSL_ERROR_SYSCALL: return code == 0 ? .ended : .failed(errorText(code))
        default: return .failed(Self.errors())
        }
    }

    /// Returns this thread's oldest queued error, which is the cause, and empties the queue.
    private static func errors() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return "unknown" }
        return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
    }
}
