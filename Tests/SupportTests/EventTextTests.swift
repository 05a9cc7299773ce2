import Support
import Testing

/// The data of an event, byte for byte: webhooks sign the stored text.
@Suite struct EventTextTests {
    @Test func membersKeepTheOrderOfTheCalls() {
        var data: [JSONValue.Member] = []
        #expect(data.text == "{}")
        data.add("state", "live")
        data.add("by", String?.none)
        data.add("sequence", Int64.max)
        data.add("slot", 1)
        data.add("bytes", Int64?.none)
        data.add("app", "")
        data.add("changed", ["title", "b\"\\"])
        data.add("none", [])
        #expect(data.text == #"{"state":"live","sequence":9223372036854775807,"slot":1,"app":"","changed":["title","b\"\\"],"none":[]}"#)
    }

    @Test func namesAndValuesAreEscapedAlike() {
        let odd = "\"\\/\n\r\t\u{0}\u{8}\u{1F}\u{7F}é\u{2028}💥"
        var data: [JSONValue.Member] = []
        data.add(odd, odd)
        let text = #""\"\\/\n\r\t\u0000\u0008\u001f\u007fé\u2028"# + "💥\""
        #expect(data.text == "{\(text):\(text)}")
    }
}
