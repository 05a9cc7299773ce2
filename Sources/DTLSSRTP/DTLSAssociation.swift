internal import COpenSSL

/// One DTLS association, over datagrams that its owner sends and receives: no socket. Used by one thread at a time.
///
/// ```
/// handshaking --finished, fingerprint right--> connected(keys) --close_notify--> closed
///      \------------- anything wrong ------------> failed(why)
/// ```
/// Its timer for lost flights is libssl's, which reads the system's clock: ``retryMs`` says when to call ``timeout()``.
package final class DTLSAssociation {
    package enum State: Equatable {
        case handshaking
        case connected(SRTPKeys)
        /// The peer has said goodbye.
        case closed
        case failed(DTLSError)
    }

    package enum Role: Sendable {
        /// Waits for the peer's handshake, as the server does.
        case passive
        /// Begins it, as a browser does.
        case active
    }

    package private(set) var state = State.handshaking
    private let role: Role
    private let context: DTLSContext
    private let ssl: OpaquePointer
    /// Owned by `ssl`.
    private let input: OpaquePointer
    private let output: OpaquePointer
    private let expected: [Fingerprint]
    private var outgoing: [[UInt8]] = []

    /// Bytes of a datagram that any path carries (RFC 9000 §14 says so of UDP's payload).
    package static let mtu = 1_200
    /// First wait for an answer to a flight; libssl's own is a second. Microseconds.
    private static let firstTimeoutUs: UInt32 = 50_000
    private static let longestTimeoutUs: UInt32 = 2_000_000
    /// RFC 6347 §4.1: type, version, epoch, sequence number, length.
    private static let recordHeader = 13

    /// `expected`: the fingerprints that the peer has named, of which its certificate must have one.
    package init(
        _ context: DTLSContext, _ role: Role = .passive, expected: [Fingerprint]
    ) throws(DTLSError) {
        ERR_clear_error()
        guard let ssl = SSL_new(context.context) else { throw .library(DTLSError.latest("SSL_new")) }
        guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
            SSL_free(ssl)
            throw .library(DTLSError.latest("BIO_new"))
        }
        earshot_bio_is_never_at_end(input)
        earshot_bio_is_never_at_end(output)
        SSL_set_bio(ssl, input, output)
        switch role {
        case .passive: SSL_set_accept_state(ssl)
        case .active: SSL_set_connect_state(ssl)
        }
        earshot_dtls_set_mtu(ssl, Self.mtu)
        DTLS_set_timer_cb(ssl) { _, lastUs in
            lastUs == 0 ? DTLSAssociation.firstTimeoutUs : min(lastUs &* 2, DTLSAssociation.longestTimeoutUs)
        }
        self.context = context
        self.role = role
        self.ssl = ssl
        self.input = input
        self.output = output
        self.expected = expected
    }

    deinit { SSL_free(self.ssl) }

    /// Whether a datagram is DTLS's, by its first byte (RFC 7983 §7).
    package static func isRecord(_ firstByte: UInt8) -> Bool { (20...63).contains(firstByte) }

    /// Takes in one datagram from the peer. What is to be sent is in ``popDatagrams()`` then.
    package func receive(_ datagram: UnsafeRawBufferPointer) {
        switch self.state {
        case .closed, .failed: return
        case .handshaking, .connected: break
        }
        guard let base = datagram.baseAddress, datagram.count <= 16 << 10 else { return }
        ERR_clear_error()
        // One datagram at a time: a memory BIO knows no edges between them.
        guard BIO_write(self.input, base, CInt(datagram.count)) == CInt(datagram.count) else { return }
        self.proceed()
    }

    /// Sends the first flight, in the active role.
    package func begin() {
        guard self.role == .active, self.state == .handshaking else { return }
        ERR_clear_error()
        self.proceed()
    }

    private func proceed() {
        if self.state == .handshaking {
            let result = SSL_do_handshake(self.ssl)
            if result == 1 {
                self.finished()
            } else {
                self.judge(SSL_get_error(self.ssl, result), "handshake")
            }
        }
        if case .connected = self.state {
            self.readRest()
            // 33 KiB, which the next record gets again; there are none but a goodbye, and a lost flight sent once more.
            SSL_free_buffers(self.ssl)
        }
        self.collect()
    }

    /// Application data has no place here; what counts is the peer's goodbye.
    private func readRest() {
        var scratch = [UInt8](repeating: 0, count: 2_048)
        for _ in 0..<64 {
            let count = SSL_read(self.ssl, &scratch, CInt(scratch.count))
            guard count <= 0 else { continue }
            self.judge(SSL_get_error(self.ssl, count), "connection")
            return
        }
    }

    private func judge(_ code: CInt, _ what: String) {
        switch code {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
        case SSL_ERROR_ZERO_RETURN: self.state = .closed
        default:
            // An alert says why to the peer; a stray datagram after the handshake is nobody's fault.
            let why = DTLSError.latest("\(what) failed")
            if self.state == .handshaking { self.state = .failed(.handshake(why)) } else { self.state = .closed }
        }
    }

    private func finished() {
        do throws(DTLSError) {
            try self.checkPeer()
            self.state = .connected(try self.keys())
        } catch {
            self.state = .failed(error)
        }
    }

    private func checkPeer() throws(DTLSError) {
        guard let certificate = SSL_get1_peer_certificate(self.ssl) else { throw .wrongFingerprint }
        defer { X509_free(certificate) }
        for fingerprint in self.expected where try Fingerprint(of: certificate, fingerprint.algorithm) == fingerprint { return }
        throw .wrongFingerprint
    }

    /// RFC 5764 §4.2: client's key, server's key, client's salt, server's salt.
    private func keys() throws(DTLSError) -> SRTPKeys {
        guard let chosen = SSL_get_selected_srtp_profile(self.ssl), let profile = SRTPProfile(rawValue: UInt(chosen.pointee.id)) else {
            throw .noProfile
        }
        let label = "EXTRACTOR-dtls_srtp"
        var bytes = [UInt8](repeating: 0, count: 2 * (SRTPProfile.keyBytes + profile.saltBytes))
        guard SSL_export_keying_material(self.ssl, &bytes, bytes.count, label, label.utf8.count, nil, 0, 0) == 1 else {
            throw .library(DTLSError.latest("SSL_export_keying_material"))
        }
        let key = SRTPProfile.keyBytes
        let salts = bytes[(2 * key)...]
        let client = SRTPKeys.Master(key: Array(bytes[..<key]), salt: Array(salts.prefix(profile.saltBytes)))
        let server = SRTPKeys.Master(key: Array(bytes[key..<(2 * key)]), salt: Array(salts.suffix(profile.saltBytes)))
        return self.role == .passive
            ? SRTPKeys(profile: profile, peer: client, own: server) : SRTPKeys(profile: profile, peer: server, own: client)
    }

    // MARK: Time

    /// Milliseconds until ``timeout()`` is due; nil: nothing waits for an answer.
    package var retryMs: Int64? {
        guard self.state == .handshaking else { return nil }
        let us = earshot_dtls_timeout_us(self.ssl)
        return us < 0 ? nil : (Int64(us) + 999) / 1_000
    }

    /// Sends the last flight again if its answer is overdue.
    package func timeout() {
        guard self.state == .handshaking else { return }
        ERR_clear_error()
        if earshot_dtls_handle_timeout(self.ssl) < 0 { self.state = .failed(.handshake("the peer does not answer")) }
        self.collect()
    }

    /// Says goodbye to the peer.
    package func close() {
        guard case .connected = self.state else { return }
        ERR_clear_error()
        // Writing a record does not look whether there are buffers.
        if SSL_alloc_buffers(self.ssl) == 1 { _ = SSL_shutdown(self.ssl) }
        self.state = .closed
        self.collect()
    }

    // MARK: Out

    /// The datagrams to send now, each at most ``mtu`` bytes long.
    package func popDatagrams() -> [[UInt8]] {
        defer { self.outgoing = [] }
        return self.outgoing
    }

    /// Cuts what libssl has written at its records, and packs as many into a datagram as go in.
    private func collect() {
        let count = BIO_ctrl_pending(self.output)
        guard count > 0 else { return }
        var bytes = [UInt8](repeating: 0, count: count)
        guard BIO_read(self.output, &bytes, CInt(clamping: count)) == CInt(clamping: count) else { return }
        var start = 0
        var end = 0
        while end + Self.recordHeader <= bytes.count {
            let record = Self.recordHeader + Int(bytes[end + 11]) << 8 + Int(bytes[end + 12])
            guard end + record <= bytes.count else { break }
            if end > start, end + record - start > Self.mtu {
                self.outgoing.append(Array(bytes[start..<end]))
                start = end
            }
            end += record
        }
        if end > start { self.outgoing.append(Array(bytes[start..<end])) }
    }
}
