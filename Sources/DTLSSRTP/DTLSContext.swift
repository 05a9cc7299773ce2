internal import COpenSSL

/// What all DTLS associations of a server, or of a client, share: a certificate made for this run, and what is spoken.
///
/// The certificate is its own authority. Peers know it by its fingerprint, which they got over HTTP; so it needs no name and no file, and a new one
/// for each start is best (RFC 8827 §6.5).
///
/// `@unchecked Sendable`: never changed once made; libssl locks the counts of its references.
package final class DTLSContext: @unchecked Sendable {
    let context: OpaquePointer
    package let fingerprint: Fingerprint

    /// A browser's chain is one certificate of some 300 bytes.
    private static let longestChain = 8 << 10
    private static let validSeconds = 366 * 24 * 3_600

    package init() throws(DTLSError) {
        ERR_clear_error()
        guard let context = SSL_CTX_new(DTLS_method()) else { throw .library(DTLSError.latest("SSL_CTX_new")) }
        do throws(DTLSError) {
            self.fingerprint = try Self.set(up: context)
        } catch {
            SSL_CTX_free(context)
            throw error
        }
        self.context = context
    }

    deinit { SSL_CTX_free(self.context) }

    private static func set(up context: OpaquePointer) throws(DTLSError) -> Fingerprint {
        guard let key = earshot_new_p256_key() else { throw .library(DTLSError.latest("EVP_EC_gen")) }
        defer { EVP_PKEY_free(key) }
        let certificate = try Self.certificate(for: key)
        defer { X509_free(certificate) }
        // SSL_CTX_set_tlsext_use_srtp returns 0 if it succeeds. The server's order of profiles wins: GCM takes half the time.
        guard earshot_dtls_restrict(context, Self.longestChain) == 1, SSL_CTX_use_certificate(context, certificate) == 1,
            SSL_CTX_use_PrivateKey(context, key) == 1,
            SSL_CTX_set_cipher_list(
                context,
                "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-SHA") == 1,
            SSL_CTX_set_tlsext_use_srtp(context, "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80") == 0
        else { throw .library(DTLSError.latest("DTLS context")) }
        // Anybody's certificate will do here: that it is the one of the offer is checked after the handshake.
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT) { _, _ in 1 }
        return try Fingerprint(of: certificate, .sha256)
    }

    private static func certificate(for key: OpaquePointer) throws(DTLSError) -> OpaquePointer {
        guard let certificate = X509_new() else { throw .library(DTLSError.latest("X509_new")) }
        var serial: UInt64 = 0
        withUnsafeMutableBytes(of: &serial) { bytes in
            for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255) }
        }
        let name = X509_get_subject_name(certificate)
        // Some peers read issuer and subject, and fail without them.
        let isMade =
            X509_set_version(certificate, 2) == 1 && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1
            && X509_gmtime_adj(X509_getm_notBefore(certificate), -24 * 3_600) != nil
            && X509_gmtime_adj(X509_getm_notAfter(certificate), Self.validSeconds) != nil
            && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, "earshot", -1, -1, 0) == 1
            && X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1
            && X509_sign(certificate, key, EVP_sha256()) > 0
        guard isMade else {
            X509_free(certificate)
            throw .library(DTLSError.latest("certificate"))
        }
        return certificate
    }

    /// `MBSTRING_UTF8`: MBSTRING_FLAG, a macro that Swift does not see.
    private static let MBSTRING_UTF8: CInt = 0x1000
}
