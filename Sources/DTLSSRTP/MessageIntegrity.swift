internal import COpenSSL

/// HMAC-SHA1, as STUN (RFC 8489 §14.5) and SRTP use it, and random bytes by libssl.
package enum MessageIntegrity {
    package static let byteCount = 20

    /// A context that is used again for each message with the same key.
    static func context(key: [UInt8]) throws(DTLSError) -> OpaquePointer {
        guard let algorithm = EVP_MAC_fetch(nil, "HMAC", nil) else { throw .library(DTLSError.latest("EVP_MAC_fetch")) }
        defer { EVP_MAC_free(algorithm) }
        guard let context = EVP_MAC_CTX_new(algorithm) else { throw .library(DTLSError.latest("EVP_MAC_CTX_new")) }
        var name = Array("SHA1".utf8CString)
        let isReady = name.withUnsafeMutableBufferPointer { name in
            var parameters = [OSSL_PARAM_construct_utf8_string("digest", name.baseAddress, 0), OSSL_PARAM_construct_end()]
            return EVP_MAC_init(context, key, key.count, &parameters) == 1
        }
        guard isReady else {
            EVP_MAC_CTX_free(context)
            throw .library(DTLSError.latest("EVP_MAC_init"))
        }
        return context
    }

    /// `suffix`: four bytes that are authenticated behind the message.
    static func code(_ context: OpaquePointer, _ bytes: UnsafeRawBufferPointer, _ suffix: UInt32? = nil) -> [UInt8]? {
        var code = [UInt8](repeating: 0, count: Self.byteCount)
        var count = 0
        // Without a key: the same one again.
        guard EVP_MAC_init(context, nil, 0, nil) == 1,
            EVP_MAC_update(context, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count) == 1
        else { return nil }
        if let suffix {
            let isDone = withUnsafeBytes(of: suffix) { EVP_MAC_update(context, $0.bindMemory(to: UInt8.self).baseAddress, 4) == 1 }
            guard isDone else { return nil }
        }
        guard EVP_MAC_final(context, &code, &count, code.count) == 1, count == Self.byteCount else { return nil }
        return code
    }

    /// HMAC-SHA1 of a message; nil if libssl fails. For rare messages.
    package static func code(key: [UInt8], _ message: [UInt8]) -> [UInt8]? {
        var code = [UInt8](repeating: 0, count: Self.byteCount)
        var count: UInt32 = 0
        guard HMAC(EVP_sha1(), key, CInt(clamping: key.count), message, message.count, &code, &count) != nil,
            count == UInt32(Self.byteCount)
        else { return nil }
        return code
    }

    /// Compares in constant time.
    package static func isEqual(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Bool {
        let (left, right) = (Array(left), Array(right))
        return left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }

    /// Random bytes fit for secrets.
    package static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
