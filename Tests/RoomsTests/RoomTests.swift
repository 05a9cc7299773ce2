import Foundation
import Support
import Testing

@testable import Rooms

/// Defaults and limits of rooms, as in the API's description and the example configuration.
@Suite struct RoomTests {
    /// Default, minimum and maximum of each setting; durations in milliseconds.
    @Test(
        arguments: [
            ("neverStarted", 300_000, 1_000, 604_800_000), ("grace", 30_000, 0, 86_400_000), ("cleanStop", 3_000, 0, 86_400_000),
            ("mediaIdle", 15_000, 1_000, 86_400_000), ("idleGrace", 120_000, 1_000, 86_400_000), ("pauseGrace", 120_000, 1_000, 86_400_000),
            ("heartbeat", 15_000, 1_000, 3_600_000), ("heartbeatMisses", 3, 1, 100), ("ownerOffline", 300_000, 1_000, 604_800_000),
            ("maxDuration", 43_200_000, 1_000, 2_592_000_000), ("retention", 86_400_000, 0, 7_776_000_000),
            ("urlLifetime", 86_400_000, 1_000, 2_592_000_000), ("record", 0, 0, 2),
        ] as [(String, Int64, Int64, Int64)])
    func policies(name: String, value: Int64, least: Int64, most: Int64) throws {
        let field = try #require(RoomPolicy.fields.first { $0.name == name })
        #expect(field.get(RoomPolicy()) == value)
        for (value, isAllowed) in [(least, true), (most, true), (least - 1, false), (most + 1, false)] {
            var patch = RoomPatch()
            patch.policy[name] = value
            var new = NewRoom(policy: RoomPolicy())
            // Enumerated settings can hold no other value; only a patch can carry one.
            field.set(&new.policy, value)
            if isAllowed {
                try patch.check()
                try new.check()
                #expect(field.get(new.policy) == value)
            } else {
                let error = #expect(throws: FieldError.self) { try patch.check() }
                #expect(error?.field == "policy.\(name)")
                if field.kind == .duration || field.kind == .count { #expect(throws: FieldError.self) { try new.check() } }
            }
        }
    }

    @Test func talkDefaults() {
        let talk = TalkSettings()
        #expect(talk.mode == .open && talk.talkers == 8 && talk.listeners == 50 && talk.maxOpen == 8 && talk.maxHoldMs == 30_000)
        #expect(!talk.preempts && !talk.ducks)
    }

    @Test func everyPolicyIsListed() { #expect(RoomPolicy.fields.count == 13) }

    @Test func aPolicysLimitIsToldInSeconds() {
        var patch = RoomPatch()
        patch.policy["heartbeat"] = 3_600_500
        let seconds = #expect(throws: FieldError.self) { try patch.check() }
        #expect(seconds?.description == "policy.heartbeat is \"3600.5\": expected 1 to 3600 seconds")
        patch.policy = ["heartbeatMisses": 0]
        let count = #expect(throws: FieldError.self) { try patch.check() }
        #expect(count?.description == "policy.heartbeatMisses is \"0\": expected 1 to 100")
        patch.policy = ["record": 3]
        let word = #expect(throws: FieldError.self) { try patch.check() }
        #expect(word?.description == "policy.record is \"3\": expected one of apps, always, never")
        patch.policy = ["graces": 3]
        #expect(throws: FieldError("policy.graces", "3", "there is no such setting")) { try patch.check() }
    }

    @Test func newRooms() throws {
        func check(_ change: (inout NewRoom) -> Void) -> String? {
            var new = NewRoom(policy: RoomPolicy())
            change(&new)
            do { try new.check() } catch { return error.field }
            return nil
        }
        #expect(check { _ in } == nil)
        for (slots, isAllowed) in [(0, false), (1, true), (8, true), (9, false)] {
            #expect(check { $0.slots = slots } == (isAllowed ? nil : "slots"))
        }
        #expect(check { $0.title = String(repeating: "é", count: 200) } == nil)
        #expect(check { $0.title = String(repeating: "é", count: 201) } == "title")
        #expect(check { $0.title = "a\u{200B}" } == "title")
        #expect(check { $0.custom = "{\"a\":\"" + String(repeating: "b", count: 4_088) + "\"}" } == nil)
        #expect(check { $0.custom = "{\"a\":\"" + String(repeating: "b", count: 4_089) + "\"}" } == "custom")
        #expect(check { $0.custom = "[]" } == "custom")
        #expect(check { $0.app = "talk" } == "app")
        #expect(check { $0.app = "a b" } == "app")
        #expect(check { $0.owner = "a b" } == "owner")
        #expect(check { $0.deviceUid = "" } == "deviceUid")
        #expect(check { $0.deviceUid = String(repeating: "a", count: 64) } == nil)
        #expect(check { $0.deviceUid = String(repeating: "a", count: 65) } == "deviceUid")
    }

    @Test func changes() {
        func check(_ change: (inout RoomPatch) -> Void) -> String? {
            var patch = RoomPatch()
            change(&patch)
            do { try patch.check() } catch { return error.field }
            return nil
        }
        #expect(check { _ in } == nil)
        #expect(check { $0.owner = .some(nil) } == nil && check { $0.owner = "a" } == nil)
        #expect(check { $0.owner = "a b" } == "owner" && check { $0.deviceUid = "a b" } == "deviceUid")
        #expect(check { $0.title = "a\u{7F}" } == "title" && check { $0.custom = "" } == "custom")
    }

    @Test func theOtherLimits() {
        #expect(RoomLimits.nickLength == 100 && RoomLimits.tokenNameLength == 64 && RoomLimits.searchLength == 200)
        #expect(RoomLimits.streamNameLength == 255 && RoomLimits.members == 10_000 && RoomLimits.tokens == 1_000)
        #expect(RoomLimits.likes == 1...100)
        #expect(RoomQuery().page == 1 && RoomQuery().size == 20 && RoomQuery.sizes == 1...200)
        #expect(RoomQuery.deepest == 10_000 && RoomQuery.longestCursor == 2_000)
        #expect(StreamBan.defaultMs == 604_800_000 && StreamBan.longestMs == 7_776_000_000)
        #expect(StreamBan.longestReason == 2_048 && StreamBan.longestCursor == 3_000)
    }
}

@Suite struct TokenRoleTests {
    @Test func eachMayDoWhatThoseBelowMay() {
        #expect(TokenRole.backend < .ops && TokenRole.ops < .admin && TokenRole.backend < .admin)
        for role in TokenRole.allCases { #expect(!(role < role)) }
        #expect(!(TokenRole.admin < .ops) && !(TokenRole.ops < .backend))
    }
}

/// Text fields of rooms.
@Suite struct RoomTextTests {
    @Test func idsAreOfLettersDigitsAndTwoSigns() {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-".utf8)
        for byte in UInt8(0)...127 { #expect(RoomID.isID(String(UnicodeScalar(byte))) == allowed.contains(byte)) }
        #expect(!RoomID.isID("") && !RoomID.isID("é"))
        #expect(RoomID.isID(String(repeating: "a", count: 64)) && !RoomID.isID(String(repeating: "a", count: 65)))
    }

    @Test func randomIDsAreLongAndFree() {
        let ids = (0..<1_000).map { _ in RoomID.random().rawValue }
        #expect(Set(ids).count == 1_000)
        #expect(ids.allSatisfy { $0.count == 13 && $0.hasPrefix("r") && RoomID.isID($0) })
        // Every character of the alphabet, which has no look-alikes, and no other. The odds of missing one are 1 in 10^150.
        #expect(Set(ids.flatMap { $0.dropFirst() }) == Set("abcdefghjkmnpqrstuvwxyz23456789"))
    }

    @Test(
        arguments: [
            ("live/a", "live", "a"), ("a/b/c", "a", "b/c"), ("a/", nil, nil), ("/a", nil, nil), ("a", nil, nil), ("", nil, nil),
            ("/", nil, nil),
        ] as [(String, String?, String?)])
    func streamPaths(text: String, app: String?, name: String?) {
        let path = StreamPath(text)
        #expect(path?.app == app && path?.name == name)
        #expect(path.map { $0.description == text } ?? true)
    }

    /// Long values are truncated.
    @Test func errorsShowWhatWasGiven() {
        #expect(FieldError("title", String(repeating: "a", count: 80), "b").value.count == 80)
        #expect(FieldError("title", String(repeating: "a", count: 81), "b").value == String(repeating: "a", count: 60) + "…")
        #expect(FieldError("title", "", "missing").description == "title: missing")
        #expect(FieldError("title", "a", "b").description == "title is \"a\": b")
    }

    /// Both ends of every range are refused.
    @Test(arguments: PlainText.refused) func invisibleCharactersAreRefused(_ range: ClosedRange<UInt32>) {
        for value in [range.lowerBound, range.upperBound] {
            if let scalar = Unicode.Scalar(value) { #expect(!PlainText.isPlain("a\(Character(scalar))"), "\(value)") }
        }
    }

    /// The tables follow Unicode: default-ignorable and control characters are refused. Exceptions are those that text is written with.
    @Test func theRefusedAreUnicodes() {
        // Kept: joiners, variation selectors, tags. Hangul fillers are refused.
        let kept: [ClosedRange<UInt32>] = [0x200C...0x200D, 0x180B...0x180F, 0xFE00...0xFE0F, 0xE0020...0xE007F, 0xE0100...0xE01EF]
        let also: [ClosedRange<UInt32>] = [0x2028...0x2029, 0xFFF9...0xFFFB]
        let edges = Set(PlainText.refused.flatMap { [$0.lowerBound, $0.upperBound, $0.upperBound + 1, max(1, $0.lowerBound) - 1] })
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let isIgnorable = scalar.properties.isDefaultIgnorableCodePoint || scalar.properties.generalCategory == .control
            // Far from every range, one value in 97 is enough.
            guard isIgnorable || value % 97 == 0 || edges.contains(value) else { continue }
            let isRefused = (isIgnorable && !kept.contains { $0.contains(value) }) || also.contains { $0.contains(value) }
            #expect(PlainText.isPlain("\(Character(scalar))") == !isRefused, "\(String(value, radix: 16))")
        }
    }

    @Test(arguments: [
        "{}", " {\t\r\n} ", "{\"a\":1}", "{\"a\":[],\"b\":[1,2.5,-0,1e5,1E+5,1e-5,0.1]}", "{\"a\":true,\"b\":false,\"c\":null}",
        "{ \"a\" : [ 1 , 2 ] , \"b\" : { } }", #"{"a":"\"\\\/\b\f\n\r\t\u00e9\uABCD"}"#, "{\"é\":\"\u{7F}\"}",
    ])
    func aJSONObject(_ text: String) {
        #expect(JSONParser.isObject(text, deepest: 2))
        #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(text.utf8)) }
    }

    @Test(arguments: [
        "", " ", "[]", "1", "{", "}", "{}x", "{} {}", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "{\"a\":1 \"b\":2}", "{\"a\":[1,]}",
        "{\"a\":[1}",
        "{\"a\":01}", "{\"a\":+1}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":1e}", "{\"a\":-}", "{\"a\":1e+-5}", "{\"a\":tru}", "{\"a\":truee}",
        "{\"a\":nulL}", "{\"a\":\"\u{1F}\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12G4\"}", "{\"a\":\"\\u123\"}", "{\"a\":\"b}", "{\"a\":\"\\",
        "{\"a\":\"\\u",
        "{,}", "{\"a\":1,,\"b\":2}", "\u{0B}{}",
    ])
    func noJSONObject(_ text: String) {
        #expect(!JSONParser.isObject(text, deepest: 100))
    }

    @Test func nestingIsBounded() {
        func nested(_ depth: Int) -> String {
            "{\"a\":" + String(repeating: "[", count: depth - 1) + String(repeating: "]", count: depth - 1) + "}"
        }
        #expect(JSONParser.isObject(nested(32), deepest: 32) && !JSONParser.isObject(nested(33), deepest: 32))
        var new = NewRoom(policy: RoomPolicy())
        new.custom = nested(32)
        #expect(throws: Never.self) { try new.check() }
        new.custom = nested(33)
        #expect(throws: FieldError.self) { try new.check() }
    }

    @Test(
        arguments: [
            ("Hello wörld 2nd", ["Hello", "wörld", "2nd"]), ("a-b_c", ["a", "b", "c"]), ("東京 Tokyo", ["東", "京", "Tokyo"]),
            ("a東b", ["a", "東", "b"]), ("ひカ", ["ひ", "カ"]), ("한국어", ["한국어"]), ("e\u{301}te", ["e\u{301}te"]), ("\u{301}a", ["a"]), ("  ", []),
            ("½x", ["½x"]),
            ("\u{3040}\u{30FF}\u{3400}\u{9FFF}\u{F900}", ["\u{30FF}", "\u{3400}", "\u{9FFF}", "\u{F900}"]),
            ("\u{20000}\u{2A6D6}", ["\u{20000}", "\u{2A6D6}"]),
            ("ab,", ["ab"]), (",ab", ["ab"]), ("ᐁᐂ", ["ᐁᐂ"]),
        ] as [(String, [String])])
    func words(text: String, words: [String]) { #expect(RoomWords.words(text) == words) }

    @Test func queries() {
        #expect(RoomWords.query("  ") == nil && RoomWords.query("-- ++") == nil)
        #expect(RoomWords.query("a-b c") == "\"a b\" \"c\"*")
        let many = (1...17).map { "w\($0)" }
        #expect(RoomWords.query(many.joined(separator: " ")) == RoomWords.query(many.prefix(16).joined(separator: " ")))
        #expect(RoomWords.query(many.prefix(16).joined(separator: " "))?.contains("w16") == true)
    }
}
