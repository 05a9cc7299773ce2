internal import COpenSSL

/// Encrypts and authenticates packets of one direction and kind: RFC 3711 with AES-CM and HMAC-SHA1-80, RFC 7714 with AES-128-GCM. Keeps libssl's
/// contexts with their keys, so that a packet costs no key schedule. Used by one thread at a time.
final class SRTPCipher {
    let profile: SRTPProfile
    /// Padded with zeros to a counter's 16 bytes.
    private let salt: (UInt64, UInt64)
    private let cipher: OpaquePointer
    private let mac: OpaquePointer?

    private static let gcmTag = 16
    private static let counterBytes = 16
    static let shortTag = 10

    init(_ profile: SRTPProfile, _ keys: SessionKeys, encrypts: Bool) throws(DTLSError) {
        guard let cipher = EVP_CIPHER_CTX_new() else { throw .library(DTLSError.latest("EVP_CIPHER_CTX_new")) }
        let kind = profile == .aeadAES128GCM ? EVP_aes_128_gcm() : EVP_aes_128_ctr()
        guard EVP_CipherInit_ex(cipher, kind, nil, keys.encryption, nil, encrypts ? 1 : 0) == 1 else {
            EVP_CIPHER_CTX_free(cipher)
            throw .library(DTLSError.latest("EVP_CipherInit_ex"))
        }
        var mac: OpaquePointer?
        if profile == .aes128CMSHA1_80 {
            do throws(DTLSError) {
                mac = try MessageIntegrity.context(key: keys.authentication)
            } catch {
                EVP_CIPHER_CTX_free(cipher)
                throw error
            }
        }
        self.profile = profile
        let salt = keys.salt.prefix(Self.counterBytes) + [UInt8](repeating: 0, count: max(0, Self.counterBytes - keys.salt.count))
        self.salt = salt.withUnsafeBytes { ($0.loadUnaligned(as: UInt64.self), $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)) }
        self.cipher = cipher
        self.mac = mac
    }

    deinit {
        EVP_CIPHER_CTX_free(self.cipher)
        if let mac { EVP_MAC_CTX_free(mac) }
    }

    /// RFC 3711 §4.1.1 and RFC 7714 §8.1: the 48-bit index of an RTP packet; that of RTCP has 31 bits.
    private func counter(ssrc: UInt32, index: UInt64, isControl: Bool) -> (UInt64, UInt64) {
        var bytes: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &bytes) { bytes in
            if self.profile == .aeadAES128GCM {
                // 00 00 | SSRC | ROC | SEQ, of RTCP 00 00 | SSRC | 00 00 | index.
                bytes.storeBytes(of: ssrc.bigEndian, toByteOffset: 2, as: UInt32.self)
                if isControl {
                    bytes.storeBytes(of: UInt32(truncatingIfNeeded: index).bigEndian, toByteOffset: 8, as: UInt32.self)
                } else {
                    bytes.storeBytes(of: UInt32(truncatingIfNeeded: index >> 16).bigEndian, toByteOffset: 6, as: UInt32.self)
                    bytes.storeBytes(of: UInt16(truncatingIfNeeded: index).bigEndian, toByteOffset: 10, as: UInt16.self)
                }
            } else {
                // (salt << 16) ^ (SSRC << 64) ^ (index << 16)
                bytes.storeBytes(of: ssrc.bigEndian, toByteOffset: 4, as: UInt32.self)
                bytes.storeBytes(of: (index << 16).bigEndian, toByteOffset: 8, as: UInt64.self)
            }
        }
        return (bytes.0 ^ self.salt.0, bytes.1 ^ self.salt.1)
    }

    /// Encrypts `payload` behind the clear `header`, which is already in `output`, and appends the tag. Returns the packet's length; 0 if libssl fails
    /// or `output` is too short. `trailer`: RTCP's word of index and E flag.
    func seal(
        header: Int, payload: UnsafeRawBufferPointer, ssrc: UInt32, index: UInt64, trailer: UInt32? = nil,
        into output: UnsafeMutableRawBufferPointer
    ) -> Int {
        let end = header + payload.count
        let tag = self.profile == .aeadAES128GCM ? Self.gcmTag : Self.shortTag
        guard let base = output.baseAddress, end + tag + (trailer == nil ? 0 : 4) <= output.count else { return 0 }
        var counter = self.counter(ssrc: ssrc, index: index, isControl: trailer != nil)
        let isReady = withUnsafeBytes(of: &counter) {
            EVP_CipherInit_ex(self.cipher, nil, nil, nil, $0.bindMemory(to: UInt8.self).baseAddress, -1) == 1
        }
        guard isReady else { return 0 }
        let out = base.assumingMemoryBound(to: UInt8.self)
        var count: CInt = 0
        if self.profile == .aeadAES128GCM {
            guard self.authenticate(UnsafeRawBufferPointer(start: base, count: header), trailer) else { return 0 }
            guard self.crypt(payload, to: out + header), EVP_CipherFinal_ex(self.cipher, out + end, &count) == 1,
                EVP_CIPHER_CTX_ctrl(self.cipher, EVP_CTRL_AEAD_GET_TAG, CInt(Self.gcmTag), out + end) == 1
            else { return 0 }
            guard let trailer else { return end + Self.gcmTag }
            output.storeBytes(of: trailer.bigEndian, toByteOffset: end + Self.gcmTag, as: UInt32.self)
            return end + Self.gcmTag + 4
        }
        guard self.crypt(payload, to: out + header) else { return 0 }
        var authenticated = end
        if let trailer {
            output.storeBytes(of: trailer.bigEndian, toByteOffset: end, as: UInt32.self)
            authenticated += 4
        }
        // RFC 3711 §4.2: RTP's packets are authenticated with the roll-over counter behind them.
        let rollOver = trailer == nil ? UInt32(truncatingIfNeeded: index >> 16) : nil
        guard let code = self.code(of: UnsafeRawBufferPointer(start: base, count: authenticated), rollOver) else { return 0 }
        for offset in 0..<Self.shortTag { out[authenticated + offset] = code[offset] }
        return authenticated + Self.shortTag
    }

    /// Checks the tag and decrypts in place. `trailer`: RTCP's word, which the packet has behind (GCM) or before (HMAC) the tag. Returns the length of
    /// header and payload; nil if the packet is not the peer's.
    func open(
        _ packet: UnsafeMutableRawBufferPointer, header: Int, ssrc: UInt32, index: UInt64, trailer: UInt32? = nil
    ) -> Int? {
        let overhead = (self.profile == .aeadAES128GCM ? Self.gcmTag : Self.shortTag) + (trailer == nil ? 0 : 4)
        let end = packet.count - overhead
        guard let base = packet.baseAddress, end >= header else { return nil }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        if self.profile == .aes128CMSHA1_80 {
            let authenticated = end + (trailer == nil ? 0 : 4)
            let rollOver = trailer == nil ? UInt32(truncatingIfNeeded: index >> 16) : nil
            guard let code = self.code(of: UnsafeRawBufferPointer(start: base, count: authenticated), rollOver),
                CRYPTO_memcmp(code, bytes + authenticated, Self.shortTag) == 0
            else { return nil }
        }
        var counter = self.counter(ssrc: ssrc, index: index, isControl: trailer != nil)
        let isReady = withUnsafeBytes(of: &counter) {
            EVP_CipherInit_ex(self.cipher, nil, nil, nil, $0.bindMemory(to: UInt8.self).baseAddress, -1) == 1
        }
        guard isReady else { return nil }
        let payload = UnsafeRawBufferPointer(start: base + header, count: end - header)
        guard self.profile == .aeadAES128GCM else { return self.crypt(payload, to: bytes + header) ? end : nil }
        var count: CInt = 0
        guard self.authenticate(UnsafeRawBufferPointer(start: base, count: header), trailer), self.crypt(payload, to: bytes + header),
            EVP_CIPHER_CTX_ctrl(self.cipher, EVP_CTRL_AEAD_SET_TAG, CInt(Self.gcmTag), bytes + end) == 1,
            EVP_CipherFinal_ex(self.cipher, bytes + end, &count) == 1
        else { return nil }
        return end
    }

    /// GCM's associated data: the header, with RTCP the word of its index too (RFC 7714 §9.2).
    private func authenticate(_ header: UnsafeRawBufferPointer, _ trailer: UInt32?) -> Bool {
        var count: CInt = 0
        guard
            EVP_CipherUpdate(
                self.cipher, nil, &count, header.bindMemory(to: UInt8.self).baseAddress, CInt(truncatingIfNeeded: header.count)) == 1
        else { return false }
        guard let trailer else { return true }
        return withUnsafeBytes(of: trailer.bigEndian) {
            EVP_CipherUpdate(self.cipher, nil, &count, $0.bindMemory(to: UInt8.self).baseAddress, 4) == 1
        }
    }

    private func crypt(_ payload: UnsafeRawBufferPointer, to out: UnsafeMutablePointer<UInt8>) -> Bool {
        guard payload.count > 0 else { return true }
        var count: CInt = 0
        return EVP_CipherUpdate(
            self.cipher, out, &count, payload.bindMemory(to: UInt8.self).baseAddress, CInt(truncatingIfNeeded: payload.count)) == 1
    }

    /// HMAC-SHA1, of which ten bytes count.
    private func code(of bytes: UnsafeRawBufferPointer, _ rollOver: UInt32?) -> [UInt8]? {
        guard let mac = self.mac else { return nil }
        return MessageIntegrity.code(mac, bytes, rollOver.map { $0.bigEndian })
    }
}
