import Access
import Foundation
import NIOCore
import RTMP
import Rooms
import Support
import TestSupport
import Testing

@testable import Streaming

/// Devices and viewers that were refused, as they are kept for operators.
@Suite struct RecentRefusalsTests {
    private func text(_ name: String, _ message: String = "no") throws -> RefusalText {
        RefusalText(try StreamAddress(app: "live", name: name), message)
    }
    private func host(_ text: String) throws -> SocketAddress { try SocketAddress(ipAddress: text, port: 1) }

    @Test func repetitionsAreCounted() throws {
        let refusals = RecentRefusals()
        let (cam, one) = ("cam1?txSecret=hush", try self.host("10.0.0.1"))
        refusals.note(.publish, try self.text(cam, "first"), .credentialWrong, from: one, nowMs: 1)
        refusals.note(.play, try self.text(cam, "a player"), .credentialWrong, from: one, nowMs: 2)
        refusals.note(.publish, try self.text(cam, "another reason"), .credentialExpired, from: one, nowMs: 3)
        refusals.note(.publish, try self.text(cam, "from elsewhere"), .credentialWrong, from: try self.host("10.0.0.2"), nowMs: 4)
        let again = try SocketAddress(ipAddress: "10.0.0.1", port: 2)
        refusals.note(.publish, try self.text(cam, "again"), .credentialWrong, from: again, nowMs: 5)
        let list = refusals.list(nowMs: 6)
        #expect(list.map(\.message) == ["again", "from elsewhere", "another reason", "a player"])
        #expect(list.map(\.count) == [2, 1, 1, 1])
        #expect(list[0].firstAt == 1 && list[0].lastAt == 5 && list[0].path.name == "cam1")
        // Refusals are forgotten after a while.
        #expect(refusals.list(nowMs: RecentRefusals.keptMs + 3).map(\.message) == ["again", "from elsewhere"])
        // An admitted push removes the refusals of its host for that stream.
        refusals.admitted(try StreamAddress(app: "live", name: "cam1?txSecret=right"), from: one)
        #expect(refusals.list(nowMs: 6).map(\.message) == ["from elsewhere", "a player"])
    }

    /// A flood from one host, a /64 of IPv6, displaces its own; many hosts displace the oldest of the same action.
    @Test func floodsAreBounded() throws {
        let refusals = RecentRefusals()
        refusals.note(.publish, try self.text("honest"), .credentialExpired, from: try self.host("10.9.9.9"), nowMs: 0)
        for number in 1...1_000 {
            let host = try self.host("2001:db8::\(String(number, radix: 16))")
            refusals.note(.publish, try self.text("s\(number)"), .credentialWrong, from: host, nowMs: Int64(number))
        }
        #expect(refusals.list(nowMs: 2_000).count == 1 + RecentRefusals.perHost)
        #expect(refusals.list(nowMs: 2_000).first?.path.name == "s1000" && refusals.list(nowMs: 2_000).last?.path.name == "honest")
        func flood(_ action: AdmissionRequest.Action) throws {
            for number in 1...RecentRefusals.perAction {
                refusals.note(
                    action, try self.text("x"), .credentialWrong, from: try self.host("10.1.\(number / 256).\(number % 256)"), nowMs: 2_000)
            }
        }
        try flood(.play)
        #expect(refusals.list(nowMs: 2_000).count == RecentRefusals.perAction + 1 + RecentRefusals.perHost)
        #expect(refusals.list(nowMs: 2_000).contains { $0.path.name == "honest" }, "viewers displace no devices")
        try flood(.publish)
        #expect(refusals.list(nowMs: 2_000).count == 2 * RecentRefusals.perAction)
        #expect(!refusals.list(nowMs: 2_000).contains { $0.path.name == "honest" })
        refusals.note(.play, try self.text("long", String(repeating: "e\u{301}", count: 10_000)), .badName, from: nil, nowMs: 3_000)
        refusals.note(.play, try self.text("long", "e" + String(repeating: "\u{301}", count: 10_000)), .badName, from: nil, nowMs: 3_000)
        let newest = try refusals.list(nowMs: 3_000).first.orThrow()
        #expect(newest.message.utf8.count <= RefusalText.longest && newest.address == "unknown" && newest.count == 2)
    }

    /// A device that forgets or encodes the question mark sends its credential as a part of the name; a hook may repeat the query.
    @Test(arguments: [
        "x&token=hush-hush", "x%3Ftoken=hush-hush", "x;token=hush-hush", "token=hush-hush/x", "x/txSecret=hush-hush&txTime=1",
        "x\u{FF1F}token=hush-hush", "x?key=hush-hush",
    ]) func credentialsAreHidden(_ name: String) throws {
        let address = try StreamAddress(app: "live", name: name)
        let text = RefusalText(address, "\(address.path) is refused: bad ?key=hush-hush; see \(address.query).")
        #expect(!text.path.contains("hush-hush"), "\(text.path)")
        #expect(address.query.isEmpty || !text.message.contains("hush-hush"), "\(text.message)")
        #expect(!RefusalText(address, "\(address.path) is refused.").message.contains("hush-hush"))
        #expect(RefusalText(try StreamAddress(app: "live", name: "cam-1_b/2"), "").path == "live/cam-1_b/2")
    }
}
