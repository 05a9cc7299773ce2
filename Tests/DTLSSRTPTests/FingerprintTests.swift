import Testing

@testable import DTLSSRTP

@Suite struct FingerprintTests {
    @Test func textsAreReadAndWritten() throws {
        let text = "sha-256 " + Array(repeating: "0A", count: 31).joined(separator: ":") + ":FF"
        #expect(try #require(Fingerprint(text)).text == text)
        #expect(Fingerprint(text.lowercased())?.text == text)
        let pairs = Array(repeating: "AB", count: 64)
        #expect(Fingerprint("SHA-512 " + pairs.joined(separator: ":"))?.bytes.count == 64)
        for wrong in [
            "", "sha-256", "sha-1 " + Array(repeating: "00", count: 20).joined(separator: ":"), "md5 00",
            "sha-256 " + Array(repeating: "00", count: 31).joined(separator: ":"), text + ":00", text.replacing("FF", with: "G0"),
            text.replacing("FF", with: "F"), text.replacing(" ", with: "  x "), text.replacing("0A:", with: "+A:"),
        ] { #expect(Fingerprint(wrong) == nil, "\(wrong)") }
    }

    /// Each run has a certificate of its own.
    @Test func certificatesDiffer() throws {
        let (one, other) = (try DTLSContext(), try DTLSContext())
        #expect(one.fingerprint != other.fingerprint && one.fingerprint.algorithm == .sha256)
    }

    /// RFC 2202 §3, cases 1 and 2.
    @Test func integrity() {
        #expect(
            MessageIntegrity.code(key: Array(repeating: 0x0B, count: 20), Array("Hi There".utf8))
                == SRTPVectorTests.bytes("b617318655057264e28bc0b6fb378c8ef146be00"))
        #expect(
            MessageIntegrity.code(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
                == SRTPVectorTests.bytes("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"))
    }
}
