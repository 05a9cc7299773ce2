import Support
import Testing

@testable import Access

/// Signed links to files.
@Suite struct FileLinksTests {
    private static let ring = KeyRing(key: "key-one-1", backupKey: nil, jwtKey: "jwt", webhookKey: "webhook")
    private static let path = "/api/v1/recordings/0123456789abcdef/file"

    private static func refusal(
        _ keys: KeyRing = ring, path: String = path, expires: String = "1000", signature: String? = nil, now: Int64 = 999
    ) -> FileLinks.Refusal? {
        let signed = FileLinks(Self.ring).signed(Self.path, expiresAt: 1_000)
        let own = signed.split(separator: "=").last.map(String.init) ?? ""
        do throws(FileLinks.Refusal) {
            try FileLinks(keys).check(path, expires: expires, signature: signature ?? own, nowSeconds: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func aLinkHoldsUntilItExpires() {
        let signed = FileLinks(Self.ring).signed(Self.path, expiresAt: 1_000)
        #expect(signed.hasPrefix("\(Self.path)?expires=1000&signature="))
        #expect(Self.refusal() == nil)
        #expect(Self.refusal(now: 1_000) == .expired(1_000))
    }

    @Test func aLinkIsForOneFileAndOneTime() {
        #expect(Self.refusal(path: "/api/v1/recordings/1123456789abcdef/file") == .wrong)
        #expect(Self.refusal(path: "/api/v1/snapshots/0123456789abcdef/file") == .wrong)
        for expires in ["1001", "01000", "+1000", " 1000", "", "9999999999999999999999"] {
            #expect(Self.refusal(expires: expires) == .wrong)
        }
        for signature in ["", "x", String(repeating: "A", count: 43)] { #expect(Self.refusal(signature: signature) == .wrong) }
        // What is wrong is never called expired.
        #expect(Self.refusal(signature: "", now: 2_000) == .wrong)
    }

    /// A rotated key checks on, in a cluster as on a server alone; another server's links open nothing.
    @Test func keysThatCheckPushesCheckLinks() {
        #expect(Self.refusal(KeyRing(key: "key-two-2", backupKey: "key-one-1", jwtKey: "", webhookKey: "")) == nil)
        var former = KeyRing(key: "key-two-2", backupKey: nil, jwtKey: "", webhookKey: "")
        #expect(Self.refusal(former) == .wrong)
        former.former.key = "key-one-1"
        #expect(Self.refusal(former) == nil)
    }

    @Test func noKeyIsShown() {
        var dumped = ""
        dump(FileLinks(Self.ring), to: &dumped)
        #expect(!"\(FileLinks(Self.ring)) \(dumped)".contains(Self.ring.fileKeys[0]))
        #expect(Set([Self.ring.key, Self.ring.playKey, Self.ring.fileKeys[0]]).count == 3)
    }
}
