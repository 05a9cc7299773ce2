import Testing

@testable import Streaming

/// The rules by which a stream that would feed itself is found.
@Suite struct LoopDetectorTests {
    @Test func marks() throws {
        let origins = LoopDetector()
        let mark = origins.mark(of: "live/a")
        #expect(mark.count == 16 && origins.mark(of: "live/a") == mark && origins.mark(of: "live/b") != mark)
        #expect(LoopDetector().mark(of: "live/a") != mark)
        #expect(LoopDetector.marks("\(mark),\(mark)") == [mark, mark])
        let long = Array(repeating: mark, count: 65)
        for bad in [nil, "", ",", mark + ",", "\(mark) ", mark.uppercased() + "Z", String(mark.dropLast()), long.joined(separator: ",")] {
            #expect(LoopDetector.marks(bad) == [], "\(bad ?? "nil")")
        }
        #expect(LoopDetector.marks(LoopDetector.text(long)).count == 64)
    }

    @Test func ways() {
        let (a, b) = (LoopDetector(), LoopDetector())
        #expect(a.way(of: "live/x") == [a.mark(of: "live/x")])
        b.cameIn("live/y", a.way(of: "live/x"), owner: "1")
        #expect(b.way(of: "live/y") == [a.mark(of: "live/x"), b.mark(of: "live/y")])
        #expect(a.objection(to: b.way(of: "live/y"), feeding: "live/x")?.contains("loop") == true)
        #expect(a.objection(to: b.way(of: "live/y"), feeding: "live/z") == nil)
        // The newest publisher counts; a refused one leaves no trace.
        b.cameIn("live/y", [], owner: "2")
        #expect(b.way(of: "live/y").count == 1)
        b.left("live/y", owner: "2")
        #expect(b.way(of: "live/y").count == 2)
        b.left("live/y", owner: "1")
        #expect(b.way(of: "live/y").count == 1)
        let hops = (0..<LoopDetector.mostHops).map { b.mark(of: "\($0)") }
        #expect(a.objection(to: Array(hops.dropLast()), feeding: "live/x") == nil)
        #expect(a.objection(to: hops, feeding: "live/x")?.contains("8 servers") == true)
    }

    @Test func sinks() {
        let (a, b) = (LoopDetector(), LoopDetector())
        a.plays("live/x", for: b.sinks(of: "live/y"), owner: "1/1")
        #expect(a.sinks(of: "live/x") == [a.mark(of: "live/x"), b.mark(of: "live/y")])
        #expect(b.objection(to: a.sinks(of: "live/x"), playing: "live/y")?.contains("loop") == true)
        #expect(b.objection(to: a.sinks(of: "live/x"), playing: "live/z") == nil)
        a.playEnded("live/x", owner: "1/1")
        #expect(a.sinks(of: "live/x") == [a.mark(of: "live/x")])
    }
}
