import Media
import NIOCore
import Synchronization
import Testing

@testable import Relay

/// The same stream for viewers of other wire formats, and for taps.
@Suite struct WireFormatTests {
    /// Adobe FLV 10.1 §E.4.1: an audio tag of three bytes at 0x01020304 ms.
    @Test func flvTag() throws {
        let frame = Frame(kind: .audio, timestamp: 0x0102_0304, payload: ByteBuffer(bytes: [0xAF, 1, 2]), tag: TagInfo())
        let tag: [UInt8] = [8, 0, 0, 3, 2, 3, 4, 1, 0, 0, 0, 0xAF, 1, 2, 0, 0, 0, 14]
        #expect(Self.encode(frame, .flvTag, .webSocket) == [0x82, 18] + tag)
        #expect(Self.encode(frame, .flvTag, .httpChunk) == Array("12\r\n".utf8) + tag + Array("\r\n".utf8))
        #expect(Self.encode(frame, .payload, .httpChunk) == Array("3\r\n".utf8) + [0xAF, 1, 2] + Array("\r\n".utf8))
    }

    /// RFC 6455 §5.2, RFC 9112 §7.1: sizes where the length takes another digit or byte.
    @Test(arguments: [0, 1, 15, 16, 125, 126, 255, 256, 65_535, 65_536, 1 << 20]) func lengths(_ count: Int) throws {
        let payload = [UInt8](repeating: 7, count: count)
        let frame = Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: payload), tag: TagInfo())
        var length: [UInt8]
        switch count {
        case ...125: length = [UInt8(count)]
        case ...65_535: length = [126, UInt8(count >> 8), UInt8(count & 255)]
        default: length = [127] + (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
        }
        #expect(Self.encode(frame, .payload, .webSocket) == [0x82] + length + payload)
        length = Array("\(String(count, radix: 16))\r\n".utf8)
        #expect(Self.encode(frame, .payload, .httpChunk) == length + payload + [13, 10])
    }

    private static func encode(_ frame: Frame, _ body: BodyEncoder.Body, _ framing: BodyEncoder.Framing) -> [UInt8] {
        let encoder = BodyEncoder(body, framing)
        var bytes = [UInt8](repeating: 0, count: encoder.encodedLength(frame))
        #expect(bytes.withUnsafeMutableBytes { encoder.encode(frame, into: $0) } == 0, "no header depends on the message stream")
        return bytes
    }

    /// Early and late viewers on both loops, beside RTMP viewers, all get the same frames.
    @Test func everyWireFormatGetsTheSame() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 4)
            var viewers: [(sink: FakeSink, isLate: Bool)] = []
            for loop in relay.loops { viewers.append((try await relay.join(live.stream, on: loop, .flvOverWebSocket), false)) }
            try await relay.publishSingly(Array(frames[..<20]), to: live)
            for loop in relay.loops { viewers.append((try await relay.join(live.stream, on: loop, .flvOverWebSocket), true)) }
            let rtmp = try await relay.join(live.stream, on: relay.other)
            try await relay.publishSingly(Array(frames[20...]), to: live)
            let prelude = frames[..<3].map { Received($0, at: frames[15].timestamp) }
            #expect(try await relay.received(rtmp) == prelude + frames[15...].map { Received($0) })
            for (sink, isLate) in viewers {
                let got = Self.tags(try await relay.with(sink) { $0.bytes })
                let late = [Received(frames[0])] + prelude.dropFirst() + frames[15...].map { Received($0) }
                // Metadata goes out at time 0.
                let expected = isLate ? late : frames.map { Received($0) }
                #expect(got == expected, "late: \(isLate)")
                try await relay.with(sink) { $0.close() }
            }
        }
    }

    /// Packets are given out message by message, as they came, and again from the keyframe to a viewer that has lost what it needs.
    @Test func packets() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 3)
            try await relay.publishSingly(Array(frames[..<20]), to: live)
            for loop in relay.loops {
                let sink = try await relay.join(live.stream, on: loop, .packets)
                let joined = try await relay.with(sink) { $0.delivered }
                let group = frames[15..<20].map { Array($0.payload.readableBytesView) }
                #expect(Array(joined.suffix(group.count)) == group, "the cached group")
                #expect(try await relay.with(sink) { $0.bytes.isEmpty && $0.writes == 0 })
                try await relay.with(sink) { sink in
                    sink.delivered = []
                    for viewer in sink.viewers { sink.loop.restart(viewer) }
                }
                #expect(try await relay.with(sink) { Array($0.delivered.suffix(group.count)) } == group, "and again")
                try await relay.with(sink) { $0.close() }
            }
        }
    }

    /// A wire format without viewers is neither kept nor made.
    @Test func unusedWireFormatsGo() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish(try Make.stream(groups: 1), to: live)
            let before = try await relay.ringBytes(live.stream)
            let sinks = [
                try await relay.join(live.stream, on: relay.home, .flvOverHTTP),
                try await relay.join(live.stream, on: relay.other, .flvOverHTTP),
            ]
            #expect(try await relay.ringBytes(live.stream) > before * 3 / 2)
            for sink in sinks { try await relay.with(sink) { $0.close() } }
            try await relay.sweep()
            try await relay.sweep()
            #expect(try await relay.ringBytes(live.stream) <= before)
        }
    }

    private static func tags(_ bytes: [UInt8]) -> [Received] {
        var all: [Received] = []
        var buffer = ByteBuffer(bytes: bytes)
        while buffer.readInteger(as: UInt8.self) == 0x82, let short = buffer.readInteger(as: UInt8.self) {
            var length = Int(short)
            if short == 126 { length = Int(buffer.readInteger(as: UInt16.self) ?? 0) }
            if short == 127 { length = Int(buffer.readInteger(as: UInt64.self) ?? 0) }
            guard let tag = buffer.readSlice(length: length), let type = tag.getInteger(at: 0, as: UInt8.self),
                let kind = Frame.Kind(rawValue: type), let time = tag.getInteger(at: 4, as: UInt32.self),
                let payload = tag.getSlice(at: 11, length: length - 15)
            else { break }
            let timestamp = Int64(time >> 8 | (time & 0xFF) << 24)
            all.append(Received(Frame(kind: kind, timestamp: timestamp, payload: payload, tag: TagInfo())))
        }
        return all
    }

    // MARK: Taps

    @Test func tapGetsWhatAJoinerGets() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let frames = try Make.stream(groups: 3)
            try await relay.publish(Array(frames[..<20]), to: live)
            let tap = KeepingTap()
            RelayLoop.add(tap, to: live.stream)
            try await relay.publish(Array(frames[20...]), to: live)
            #expect(tap.words == ["prelude 1 2 3"] + frames[15...].map { "frame \(Received($0).id)" })
            RelayLoop.remove(tap, from: live.stream)
            try await relay.settle()
            try await relay.publish([try Make.audio(99, at: 9_000)], to: live)
            #expect(tap.words.last == "frame \(Received(frames[frames.count - 1]).id)")
        }
    }

    @Test func tapIsToldOfPublishersAndTheEnd() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let tap = KeepingTap()
            RelayLoop.add(tap, to: live.stream)
            try await relay.publish([try Make.audio(1, at: 0)], to: live)
            try await relay.leave(live, clean: false)
            let again = try await relay.claim(live.stream)
            try await relay.publish([try Make.audio(2, at: 0)], to: (live.stream, again))
            try await relay.leave((live.stream, again), clean: true)
            relay.clock.advance(3_000)
            try await relay.sweep()
            #expect(tap.words == ["prelude", "frame 1", "restarted", "frame 2", "ended"])
        }
    }
}

/// Records the items it is given, as text.
private final class KeepingTap: StreamTap {
    private let items = Mutex<[String]>([])
    var words: [String] { self.items.withLock { $0 } }

    func receive(_ items: [TapItem]) {
        let words = items.map { item in
            switch item {
            case .prelude(let frames): (["prelude"] + frames.map { "\(Received($0).id)" }).joined(separator: " ")
            case .frame(let frame): "frame \(Received(frame).id)"
            case .restarted: "restarted"
            case .ended: "ended"
            }
        }
        self.items.withLock { $0 += words }
    }
}
