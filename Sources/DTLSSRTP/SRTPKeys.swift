internal import COpenSSL

/// A way to protect RTP. Raw values: the numbers of RFC 5764 §4.1.2 and RFC 7714 §14.2.
package enum SRTPProfile: UInt, Sendable, CaseIterable {
    case aes128CMSHA1_80 = 0x0001
    case aeadAES128GCM = 0x0007

    static let keyBytes = 16
    /// Bytes of the master salt: 112 bits, with GCM 96.
    package var saltBytes: Int { self == .aeadAES128GCM ? 12 : 14 }
    /// Bytes that protection adds to an RTP packet.
    package var overhead: Int { self == .aeadAES128GCM ? 16 : 10 }
    /// Bytes that it adds to an RTCP packet: the index too.
    package var controlOverhead: Int { self.overhead + 4 }
}

/// The master keys of both directions, as a DTLS handshake yields them.
package struct SRTPKeys: Sendable, Equatable {
    package struct Master: Sendable, Equatable {
        package let key: [UInt8]
        package let salt: [UInt8]

        package init(key: [UInt8], salt: [UInt8]) {
            self.key = key
            self.salt = salt
        }
    }

    package let profile: SRTPProfile
    /// For what the peer sends.
    package let peer: Master
    /// For what goes to the peer.
    package let own: Master

    package init(profile: SRTPProfile, peer: Master, own: Master) {
        self.profile = profile
        self.peer = peer
        self.own = own
    }
}

/// What a direction's packets are protected with (RFC 3711 §4.3; RFC 7714 §11 for GCM).
struct SessionKeys: Equatable {
    enum Label: UInt8 {
        case encryption = 0, authentication, salt
        case controlEncryption, controlAuthentication, controlSalt
    }

    var encryption: [UInt8]
    /// Not with GCM.
    var authentication: [UInt8]
    var salt: [UInt8]

    /// `isControl`: those of RTCP.
    init(_ profile: SRTPProfile, _ master: SRTPKeys.Master, isControl: Bool) throws(DTLSError) {
        self.encryption = try Self.derive(master, isControl ? .controlEncryption : .encryption, count: SRTPProfile.keyBytes)
        self.authentication =
            profile == .aeadAES128GCM
            ? [] : try Self.derive(master, isControl ? .controlAuthentication : .authentication, count: 20)
        self.salt = try Self.derive(master, isControl ? .controlSalt : .salt, count: profile.saltBytes)
    }

    /// The key stream of AES in counter mode from the salt with the label in it. RFC 3711 §4.3.1 and §4.3.3, with a key derivation rate of 0.
    static func derive(_ master: SRTPKeys.Master, _ label: Label, count: Int) throws(DTLSError) -> [UInt8] {
        var counter = [UInt8](repeating: 0, count: 16)
        for (index, byte) in master.salt.prefix(14).enumerated() { counter[index] = byte }
        counter[7] ^= label.rawValue
        guard let context = EVP_CIPHER_CTX_new() else { throw .library(DTLSError.latest("EVP_CIPHER_CTX_new")) }
        defer { EVP_CIPHER_CTX_free(context) }
        let zeros = [UInt8](repeating: 0, count: count)
        var stream = [UInt8](repeating: 0, count: count)
        var written: CInt = 0
        guard EVP_EncryptInit_ex(context, EVP_aes_128_ctr(), nil, master.key, counter) == 1,
            EVP_EncryptUpdate(context, &stream, &written, zeros, CInt(count)) == 1, Int(written) == count
        else { throw .library(DTLSError.latest("AES-CTR")) }
        return stream
    }
}
