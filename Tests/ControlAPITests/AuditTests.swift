import Rooms
import ServerTestSupport
import Support
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// The audit trail's cells, and how many failures leave a line.
@Suite struct AuditTests {
    @Test(arguments: [
        (JSONValue.string("plain"), "plain"), (.null, ""), (.integer(7), "7"), (.string("a,b"), "\"a,b\""),
        (.string("say \"x\""), "\"say \"\"x\"\"\""), (.string("two\r\nlines"), #"two\r\nlines"#),
        // Spreadsheets would compute these.
        (.string("=1+1"), "'=1+1"), (.string("+1"), "'+1"), (.string("-1"), "'-1"), (.string("@x"), "'@x"),
        (.string("=HYPERLINK(\"http://x\",\"y\")"), "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""), (.string("a=1"), "a=1"),
        (.string("\u{FF1D}1+1"), "'\u{FF1D}1+1"), (.string("\u{FF20}x"), "'\u{FF20}x"), (.string("\t=1"), #"\t=1"#),
        // Terminals would obey these, and readers be misled.
        (.string("a\u{1B}[31mb\u{9B}c"), #"a\u{1b}[31mb\u{9b}c"#), (.string("gpj\u{202E}.exe\u{2066}"), #"gpj\u{202e}.exe\u{2066}"#),
        (.object([.init(name: "a", value: "\u{202E}")]), "\"{\"\"a\"\":\"\"\\u202e\"\"}\""),
        (.object([.init(name: "a", value: 1)]), "\"{\"\"a\"\":1}\""),
    ]) func cells(_ value: JSONValue, _ cell: String) {
        #expect(CSV.cell(value) == cell)
    }

    /// A line of another version may name a tool that the document does not.
    @Test(arguments: [("api", "api"), ("tencent", "tencent"), ("phone", nil), (nil, nil)] as [(String?, String?)])
    func aToolThatNobodyKnowsIsNone(_ stored: String?, _ shown: String?) {
        var line = AuditLine("closeRoom")
        line.via = stored.map(AuditTool.init(rawValue:))
        #expect(AuditEntry.outputType.write(AuditEntry(id: 1, at: 0, line: line))["via"] == shown.map(JSONValue.string) ?? .null)
    }

    /// One noisy address uses up its own share only; many share that of all.
    @Test func failuresArePaced() {
        var pace = FailurePace(nowNs: 0)
        let own = (0..<200).count { _ in pace.acquire("192.0.2.1", nowNs: 0) }
        #expect(own == 60)
        let other = pace.acquire("192.0.2.2", nowNs: 0)
        let later = (0..<2).map { _ in pace.acquire("192.0.2.1", nowNs: 1_000_000_000) }
        #expect(other && later == [true, false])
        var flood = FailurePace(nowNs: 0)
        let all = (0..<5_000).count { flood.acquire("address \($0)", nowNs: 0) }
        #expect(all == 400)
        let more = (0..<100).count { flood.acquire("later \($0)", nowNs: 1_000_000_000) }
        #expect(more == 20)
    }
}
