import Testing

@testable import Support

@Suite struct ShortTextTests {
    @Test func bytesAreCounted() {
        #expect("12345678".shortened(toBytes: 8) == "12345678")
        #expect("123456789".shortened(toBytes: 8) == "12345…")
        // "é" has two bytes, and is not cut within.
        #expect("1234ééé".shortened(toBytes: 8) == "1234…")
        #expect("12345ééé".shortened(toBytes: 8) == "12345…")
        #expect("".shortened(toBytes: 0).isEmpty && "a".shortened(toBytes: 1) == "a")
    }

    /// One character of ten thousand bytes.
    @Test func marksOnALetterAreBytesToo() {
        let text = "e" + String(repeating: "\u{301}", count: 5_000)
        #expect(text.count == 1 && text.shortened(toBytes: 256).utf8.count <= 256)
        #expect(text.shortened(toBytes: 256).hasSuffix("…") && text.shortened(toBytes: 256).utf8.count >= 254)
    }
}
