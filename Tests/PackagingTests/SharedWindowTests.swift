import NIOCore
import NIOEmbedded
import Support
import Testing

@testable import HLS
@testable import Packaging

/// Who waits for what the window lacks.
@Suite struct SharedWindowTests {
    private static func window() throws -> SharedWindow {
        var window = try MediaWindow(epoch: "e", configuration: .init(isLowLatency: true, partMs: 100, segmentMs: 1_000))
        let format = MediaFormat(
            initialization: ByteBuffer(string: "init"), codecs: "avc1.42C01E", hasVideo: true, width: 64, height: 64, frameRate: 10,
            keyframeIntervalMs: 1_000)
        try window.begin(format, nowMs: 0)
        let shared = SharedWindow(window)
        for _ in 0..<11 { try Self.add(to: shared) }
        return shared
    }

    private static func add(to shared: SharedWindow) throws {
        try shared.change { (window: inout MediaWindow) throws(HLSError) in
            let isFirst = window.resource(named: "e-p0.m4s") == .pending
            let part = MediaPart(
                bytes: ByteBuffer(string: "part"), durationMicros: 100_000, isIndependent: isFirst, beginsWithKeyframe: isFirst,
                holdsPictures: true)
            try window.append(part, nowMs: 0)
        }
    }

    @Test func everybodyIsToldAtOnceAndOnTheirLoops() throws {
        let (shared, loops) = (try Self.window(), [EmbeddedEventLoop(), EmbeddedEventLoop()])
        let hinted = "e-p11.m4s"
        #expect(shared.read { $0.resource(named: hinted) } == .pending)
        var told: [Bool] = []
        for index in 0..<6 {
            let (isFirst, answer) = try #require(shared.wait(for: .resource(hinted), ms: 1_000, on: loops[index % 2]))
            #expect(isFirst == (index == 0))
            answer.assumeIsolated().whenSuccess { told.append($0) }
        }
        shared.wake()
        for loop in loops { loop.run() }
        #expect(told.isEmpty && shared.waiting == 6)
        try Self.add(to: shared)
        shared.wake()
        #expect(told.isEmpty && shared.waiting == 0)
        loops[0].run()
        #expect(told == [true, true, true])
        loops[1].run()
        #expect(told.count == 6)
        // What is there by now needs no wait.
        let (isFirst, answer) = try #require(shared.wait(for: .resource(hinted), ms: 1_000, on: loops[0]))
        answer.assumeIsolated().whenSuccess { told.append($0) }
        #expect(!isFirst && told.count == 7 && shared.waiting == 0)
    }

    @Test func timeIsOver() throws {
        let (shared, loop) = (try Self.window(), EmbeddedEventLoop())
        let point = WaitPoint(sequence: 1_000, part: nil)
        var told: [Bool] = []
        for ms in [10, 100_000] {
            let answer = try #require(shared.wait(for: .playlist(point), ms: ms, on: loop)).answer
            answer.assumeIsolated().whenSuccess { told.append($0) }
        }
        shared.expire(nowMs: LoopSweeper.nowMs + 1_000)
        loop.run()
        #expect(told == [false] && shared.waiting == 1)
        shared.stop()
        loop.run()
        #expect(told == [false, false] && shared.waiting == 0)
    }

    /// Past the limit nobody waits: the router says that the part is not there yet.
    @Test func noMoreThanTheLimit() throws {
        let (shared, loop) = (try Self.window(), EmbeddedEventLoop())
        let point = WaitPoint(sequence: 1_000, part: nil)
        for _ in 0..<SharedWindow.waiterLimit { #expect(shared.wait(for: .playlist(point), ms: 1_000, on: loop) != nil) }
        #expect(shared.wait(for: .playlist(point), ms: 1_000, on: loop) == nil)
        shared.stop()
        loop.run()
        #expect(shared.wait(for: .playlist(point), ms: 1_000, on: loop) != nil)
        shared.stop()
        loop.run()
    }
}
