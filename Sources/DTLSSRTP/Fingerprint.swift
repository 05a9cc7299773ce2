internal import COpenSSL

/// The hash of a certificate, as an offer or answer names it (RFC 8122 §5). A value.
package struct Fingerprint: Sendable, Equatable {
    package enum Algorithm: String, Sendable, CaseIterable {
        case sha256 = "sha-256"
        case sha384 = "sha-384"
        case sha512 = "sha-512"

        package var byteCount: Int {
            switch self {
            case .sha256: 32
            case .sha384: 48
            case .sha512: 64
            }
        }

        var digest: OpaquePointer? {
            switch self {
            case .sha256: EVP_sha256()
            case .sha384: EVP_sha384()
            case .sha512: EVP_sha512()
            }
        }
    }

    package let algorithm: Algorithm
    package let bytes: [UInt8]

    /// Reads "sha-256 AB:CD:…". Nil for anything else; shorter hashes than SHA-256 prove nothing.
    package init?(_ text: some StringProtocol) {
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, let algorithm = Algorithm(rawValue: words[0].lowercased()) else { return nil }
        let pairs = words[1].split(separator: ":", omittingEmptySubsequences: false)
        guard pairs.count == algorithm.byteCount else { return nil }
        var bytes: [UInt8] = []
        for pair in pairs {
            guard pair.utf8.count == 2, pair.allSatisfy(\.isHexDigit), let byte = UInt8(pair, radix: 16) else { return nil }
            bytes.append(byte)
        }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// Hashes a certificate. `certificate`: an X509.
    init(of certificate: OpaquePointer, _ algorithm: Algorithm) throws(DTLSError) {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(certificate, algorithm.digest, &bytes, &count) == 1, Int(count) == algorithm.byteCount else {
            throw .library(DTLSError.latest("X509_digest"))
        }
        self.algorithm = algorithm
        self.bytes = Array(bytes.prefix(Int(count)))
    }

    /// "sha-256 AB:CD:…"
    package var text: String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in self.bytes {
            if !text.isEmpty { text.append(UInt8(ascii: ":")) }
            text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return "\(self.algorithm.rawValue) \(String(decoding: text, as: UTF8.self))"
    }
}
