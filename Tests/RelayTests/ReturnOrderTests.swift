import Media
import NIOCore
import Testing

@testable import Relay

/// The order of the first frames after a publisher's return.
@Suite struct ReturnOrderTests {
    private let me = PublisherIdentity("me")

    /// A stream of these kinds whose publisher left and returned at 10,000 ms.
    private func returned(_ kinds: Set<Frame.Kind>) throws -> (state: StreamState, token: Int) {
        var state = StreamState()
        var items: [StreamState.Item] = []
        let token = try state.claim(self.me, nowMs: 0, items: &items).token
        if kinds.contains(.video) {
            for frame in [try Make.videoHeader(1), try Make.key(2, at: 0)] { state.ingest(frame, token: token, nowMs: 0, items: &items) }
        }
        if kinds.contains(.audio) {
            for frame in [try Make.audioHeader(3), try Make.audio(4, at: 0)] { state.ingest(frame, token: token, nowMs: 0, items: &items) }
        }
        state.leave(token: token, clean: false, nowMs: 0)
        let again = try state.claim(self.me, nowMs: 10_000, items: &items).token
        return (state, again)
    }

    private func feed(_ frames: [Frame], into state: inout StreamState, _ token: Int, nowMs: Int64 = 10_000) -> [String] {
        var items: [StreamState.Item] = []
        for frame in frames { state.ingest(frame, token: token, nowMs: nowMs, items: &items) }
        return describe(items).filter { $0.hasPrefix("frame") }
    }

    private func tick(_ state: inout StreamState, nowMs: Int64) -> [String] {
        var items: [StreamState.Item] = []
        _ = state.tick(nowMs: nowMs, items: &items)
        return describe(items).filter { $0.hasPrefix("frame") }
    }

    @Test func theFirstOfEachKindFollowOneAnother() throws {
        var (state, token) = try self.returned([.audio, .video])
        #expect(self.feed([try Make.audio(10, at: 0), try Make.audio(11, at: 20)], into: &state, token) == [], "no picture yet")
        #expect(
            self.feed([try Make.key(12, at: 30), try Make.audio(13, at: 40)], into: &state, token)
                == ["frame 10 @10000", "frame 12 @10000", "frame 11 @10020", "frame 13 @10040"])
        #expect(self.feed([try Make.audio(14, at: 60)], into: &state, token) == ["frame 14 @10060"], "from then on as they come")
    }

    /// Headers carry no clock. They go first because players need them first.
    @Test func headersGoAhead() throws {
        var (state, token) = try self.returned([.audio, .video])
        let frames = [try Make.key(10, at: 0), try Make.audioHeader(11), try Make.inter(12, at: 40), try Make.audio(13, at: 20)]
        #expect(self.feed(frames, into: &state, token) == ["frame 11 @10000", "frame 10 @10000", "frame 13 @10000", "frame 12 @10040"])
    }

    @Test func oneKindIsNotHeld() throws {
        for kind: Frame.Kind in [.audio, .video] {
            var (state, token) = try self.returned([kind])
            let frame = kind == .video ? try Make.key(10, at: 0) : try Make.audio(10, at: 0)
            #expect(self.feed([frame], into: &state, token) == ["frame 10 @10000"])
        }
    }

    /// A device returns without its microphone. Its pictures wait half a second, whether more arrive or not.
    @Test func theOtherKindIsNotWaitedForForEver() throws {
        var (state, token) = try self.returned([.audio, .video])
        #expect(self.feed([try Make.key(10, at: 0), try Make.inter(11, at: 40)], into: &state, token) == [])
        #expect(
            self.feed([try Make.inter(12, at: 500)], into: &state, token, nowMs: 10_500)
                == ["frame 10 @10000", "frame 11 @10040", "frame 12 @10500"])

        (state, token) = try self.returned([.audio, .video])
        #expect(self.feed([try Make.key(10, at: 0)], into: &state, token) == [])
        #expect(self.tick(&state, nowMs: 10_499) == [])
        #expect(self.tick(&state, nowMs: 10_500) == ["frame 10 @10000"])
    }

    @Test func whatIsHeldIsBounded() throws {
        var (state, token) = try self.returned([.audio, .video])
        var frames: [Frame] = []
        for index in 0...64 { frames.append(try Make.audio(100 + index, at: Int64(index))) }
        #expect(self.feed(Array(frames.dropLast()), into: &state, token) == [])
        #expect(self.feed([frames[64]], into: &state, token).count == frames.count)
    }

    /// Holds four megabytes at most, headers included. A frame that would exceed them ends the wait.
    @Test func whatIsHeldIsBoundedInBytes() throws {
        func frame(bytes: Int) throws -> Frame {
            var payload = ByteBuffer(bytes: [0xAF, 1])
            payload.writeRepeatingByte(7, count: bytes - 2)
            return try Frame(kind: .audio, timestamp: 0, payload: payload)
        }
        func isHeld(_ sizes: [Int]) throws -> Bool {
            var order = ReturnOrder()
            for size in sizes.dropLast() { _ = order.receive(try frame(bytes: size), nowMs: 0) }
            let outcome = order.receive(try frame(bytes: sizes.last ?? 2), nowMs: 0)
            if case .held = outcome { return true } else { return false }
        }
        #expect(try isHeld([1 << 20, 1 << 20, 2 << 20]))
        #expect(try !isHeld([1 << 20, 1 << 20, (2 << 20) + 1]))
    }

    /// A publisher that leaves again at once, or is replaced, loses nothing it sent.
    @Test func whatIsHeldIsNotLost() throws {
        var (state, token) = try self.returned([.audio, .video])
        #expect(self.feed([try Make.audio(10, at: 0)], into: &state, token) == [])
        var items: [StreamState.Item] = []
        _ = try state.claim(self.me, nowMs: 10_100, items: &items)
        #expect(describe(items) == ["frame 10 @10000", "dropGOP"])

        (state, token) = try self.returned([.audio, .video])
        #expect(self.feed([try Make.audio(10, at: 0)], into: &state, token) == [])
        items = []
        let wasUsed = state.endNow(items: &items)
        #expect(wasUsed)
        #expect(describe(items).first == "frame 10 @10000")
    }
}
