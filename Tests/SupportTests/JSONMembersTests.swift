import Foundation
import Support
import Testing

/// Objects built member by member, read by another parser.
@Suite struct JSONMembersTests {
    @Test func writtenJSONIsReadAlike() throws {
        var text: [JSONValue.Member] = []
        #expect(text.text == "{}")
        let odd = String(String.UnicodeScalarView((0...0xFF).compactMap { Unicode.Scalar($0) })) + "\u{2028}é😀"
        text.add("a", odd)
        text.add("b", [odd, "", "x"])
        text.add("c", [])
        text.add("d", -5)
        text.add("none", String?.none)
        text.add("none", Int64?.none)
        let read = try #require(try JSONSerialization.jsonObject(with: Data(text.text.utf8)) as? [String: Any])
        #expect(read.count == 4)
        #expect(
            read["a"] as? String == odd && read["b"] as? [String] == [odd, "", "x"] && read["c"] as? [String] == []
                && read["d"] as? Int == -5)
        #expect(JSONParser.isObject(text.text, deepest: 2))
        #expect(text.text.contains("\\u000b") && text.text.contains("\\u007f") && text.text.contains("\\n\\u000b"))
    }
}
