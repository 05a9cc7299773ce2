import Testing

@testable import Talk

@Suite struct PlayedLineTests {
    /// A tick accepts samples up to its room, and the last played samples stay as its past.
    @Test func aTickIsFilledAndTaken() {
        var line = PlayedLine()
        #expect(line.left == 1_024)
        line.append(600) { for index in 0..<600 { $0[index] = 1 } }
        #expect(line.left == 424 && line.made == 600)
        line.append(425) { $0[0] = 9 }
        #expect(line.left == 424, "no room for so many")
        line.append(424) { for index in 0..<424 { $0[index] = 2 } }
        #expect(line.left == 0)
        line.withPast { #expect($0.last == 2 && $0.count == Concealer.past) }
        #expect(line.popBlock() == [Float](repeating: 1, count: 600) + [Float](repeating: 2, count: 424))
        #expect(line.left == 1_024)
        line.withPast { #expect($0.last == 2 && $0.count == Concealer.past) }
    }
}
