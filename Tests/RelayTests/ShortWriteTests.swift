import Media
import Testing

@testable import Relay

/// However a connection splits the bytes, the viewer gets the messages end to end.
@Suite struct ShortWriteTests {
    /// Headers, cached pictures and live frames, with one cut at every byte position.
    @Test(arguments: [1, 7] as [UInt32]) func cutAtEveryByte(_ streamID: UInt32) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 2, framesPerGroup: 3)
            try await relay.publish(frames, to: live)
            let expected =
                (frames[..<3].map { Received($0, streamID: streamID, at: 60) }) + frames[9...].map { Received($0, streamID: streamID) }
            let whole = try await relay.join(live.stream, on: relay.home, streamID: streamID)
            #expect(try await relay.received(whole) == expected)
            let bytes = try await relay.with(whole) { $0.bytes }
            let stream = live.stream
            let wrong = try await relay.on(relay.home) { home in
                (0...bytes.count).filter { cut in
                    let sink = FakeSink(home)
                    sink.room = cut
                    let viewer = sink.play(stream, streamID: streamID)
                    let first = sink.bytes == Array(bytes[..<cut])
                    sink.drain()
                    sink.stop(viewer)
                    let isCounted = viewer.bytesSent == UInt64(bytes.count) && viewer.messagesSent == UInt64(expected.count)
                    return !(first && sink.bytes == bytes && isCounted && !sink.holdsRest)
                }
            }
            #expect(wrong == [])
        }
    }

    /// Limits every write to so few bytes that a message is cut many times. Several cuts may fall into one header.
    @Test(arguments: [1, 7] as [UInt32]) func everyWriteIsShort(_ streamID: UInt32) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish(try Make.stream(groups: 1, framesPerGroup: 4), to: live)
            let whole = try await relay.join(live.stream, on: relay.home, streamID: streamID)
            let bytes = try await relay.with(whole) { $0.bytes }
            let stream = live.stream
            let wrong = try await relay.on(relay.home) { home in
                (1...90).filter { limit in
                    let sink = FakeSink(home)
                    sink.writeLimit = limit
                    let viewer = sink.play(stream, streamID: streamID)
                    var turns = 0
                    while sink.bytes.count < bytes.count, turns < 2_000 {
                        sink.makeRoom()
                        turns += 1
                    }
                    sink.stop(viewer)
                    return sink.bytes != bytes
                }
            }
            #expect(wrong == [])
        }
    }

    /// A connection accepts nothing for a while, as with EAGAIN. Nothing is lost, and the backlog leaves together.
    @Test func nothingForAWhile() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sinks = [try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.other)]
            let frames = try Make.stream(groups: 1)
            try await relay.publish(Array(frames[..<4]), to: live)
            for sink in sinks { try await relay.with(sink) { $0.writeLimit = 0 } }
            try await relay.publishSingly(Array(frames[4...]), to: live)
            for sink in sinks {
                #expect(try await relay.with(sink) { $0.holdsRest }, "the message that was not taken waits at the connection")
                #expect(try await relay.received(sink) == frames[..<4].map { Received($0) })
                let before = try await relay.with(sink) { $0.writes }
                try await relay.with(sink) { $0.drain() }
                #expect(try await relay.received(sink) == frames.received())
                let after = try await relay.with(sink) { $0.writes }
                #expect(after <= before + 2)
            }
        }
    }

    /// Two players of two streams on one connection. Their messages do not mix, and each has its message stream id.
    @Test func twoViewersOnOneConnection() async throws {
        try await RelayHarness.run { relay in
            let framesOne = try Make.stream(groups: 2, firstID: 1)
            let framesTwo = try Make.stream(groups: 2, firstID: 1_000)
            for (index, loop) in relay.loops.enumerated() {
                for limit in [1, 5, 16, 17, 18, 40, Int.max] {
                    // Of their own, since times of a stream do not go back.
                    let name = "\(index)-\(limit)"
                    let one = try await relay.live("live/one\(name)")
                    let two = try await relay.live("live/two\(name)")
                    let sink = FakeSink(loop)
                    try await relay.on(loop) { _ in
                        sink.writeLimit = limit
                        sink.play(one.stream, streamID: 1)
                        sink.play(two.stream, streamID: 2)
                    }
                    try await relay.settle()
                    for at in framesOne.indices {
                        RelayLoop.publish([framesOne[at]], to: one.stream, token: one.token)
                        RelayLoop.publish([framesTwo[at]], to: two.stream, token: two.token)
                        try await relay.with(sink) { $0.makeRoom() }
                    }
                    try await relay.with(sink) { $0.drain() }
                    try await relay.with(sink) { $0.drain() }
                    let received = try await relay.received(sink)
                    #expect(received.filter { $0.streamID == 1 }.suffix(framesOne.count) == framesOne.received()[...])
                    #expect(received.filter { $0.streamID == 2 }.suffix(framesTwo.count) == framesTwo.received(streamID: 2)[...])
                    try await relay.with(sink) { $0.close() }
                }
            }
        }
    }

    /// The frames of one loop turn leave in one write per viewer, gathered once.
    @Test func batching() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sinks = [try await relay.join(live.stream, on: relay.home), try await relay.join(live.stream, on: relay.home)]
            let frames = try (1...50).map { try Make.audio($0, at: Int64($0)) }
            try await relay.publish(frames, to: live)
            for sink in sinks {
                #expect(try await relay.with(sink) { $0.writes } == 1)
                #expect(try await relay.received(sink) == frames.received())
            }
        }
    }

    /// More vectors and more bytes than fit one batch.
    @Test func batchesAreBounded() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            // Each in a slab of its own, then one that is larger than a batch.
            var frames = try (1...150).map { try Make.inter($0, at: Int64($0), bytes: 20_000) }
            frames.append(try Make.inter(200, at: 200, bytes: 3 << 20))
            frames.append(try Make.audio(201, at: 201))
            try await relay.publish(frames, to: live)
            #expect(try await relay.received(sink) == frames.received())
            #expect(try await relay.with(sink) { $0.writes } >= 4)
        }
    }
}
