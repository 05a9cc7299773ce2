import Media
import NIOCore
import Synchronization
import Testing

@testable import Relay

/// Viewers that know Multitrack get all tracks as sent; others the default track of each kind in messages of its own.
@Suite struct MultitrackTests {
    /// A way in which encoders send tracks.
    struct Layout: Sendable {
        /// What is sent, each with the form for viewers without Multitrack: itself, another, or none.
        let headers: [Step]
        let pictures: [Step]
        let more: [Step]
    }

    struct Step: Sendable {
        let sent: Frame
        let single: ByteBuffer?
    }

    private static func step(_ kind: Frame.Kind, _ timestamp: Int64, _ sent: [UInt8], _ single: [UInt8]?) throws -> Step {
        Step(
            sent: try Frame(kind: kind, timestamp: timestamp, payload: ByteBuffer(bytes: sent)),
            single: single.map { ByteBuffer(bytes: $0) })
    }

    private static let avc = Array("avc1".utf8)

    /// Multitrack video of one track, AVC: ex header, type; FourCC, track, body.
    private static func one(_ track: UInt8, _ packet: UInt8, key: Bool = true, _ body: [UInt8]) -> [UInt8] {
        [key ? 0x96 : 0xA6, packet] + Self.avc + [track] + body
    }

    private static func layout(_ picture: (Int64, Bool, UInt8) throws -> [Step], _ headers: [Step]) throws -> Layout {
        Layout(
            headers: headers, pictures: try picture(0, true, 1) + picture(40, false, 2),
            more: try picture(80, true, 3) + picture(120, false, 4))
    }

    private static func layouts() throws -> [Layout] {
        let sound: (Int64, UInt8) throws -> Step = { try self.step(.audio, $0, [0xAF, 1, $1], [0xAF, 1, $1]) }
        return [
            // OBS and FFmpeg: the first track plain, others as Multitrack.
            try self.layout(
                { at, key, seed in
                    let plain: [UInt8] = [key ? 0x17 : 0x27, 1, 0, 0, 0, seed]
                    return [
                        try self.step(.video, at, plain, plain), try self.step(.video, at, self.one(1, 3, key: key, [seed, 1]), nil),
                        try sound(at, seed),
                    ]
                },
                [
                    try self.step(.video, 0, [0x17, 0, 0, 0, 0, 9], [0x17, 0, 0, 0, 0, 9]),
                    try self.step(.video, 0, self.one(1, 0, [8]), nil), try self.step(.audio, 0, [0xAF, 0, 7], [0xAF, 0, 7]),
                ]),
            // Each track in a message of its own, the default one last.
            try self.layout(
                { at, key, seed in
                    [
                        try self.step(.video, at, self.one(1, 3, key: key, [seed, 1]), nil),
                        try self.step(.video, at, self.one(0, 3, key: key, [seed]), [key ? 0x17 : 0x27, 1, 0, 0, 0, seed]),
                        try sound(at, seed),
                    ]
                },
                [
                    try self.step(.video, 0, self.one(0, 0, [9]), [0x17, 0, 0, 0, 0, 9]),
                    try self.step(.video, 0, self.one(1, 0, [8]), nil), try self.step(.audio, 0, [0xAF, 0, 7], [0xAF, 0, 7]),
                ]),
            // All tracks in one message, none of them 0.
            try self.layout(
                { at, key, seed in
                    let both: [UInt8] = [key ? 0x96 : 0xA6, 0x13] + self.avc + [2, 0, 0, 1, seed, 3, 0, 0, 1, 77]
                    return [try self.step(.video, at, both, [key ? 0x17 : 0x27, 1, 0, 0, 0, seed]), try sound(at, seed)]
                },
                [
                    try self.step(
                        .video, 0, [0x96, 0x10] + self.avc + [2, 0, 0, 1, 9, 3, 0, 0, 1, 8], [0x17, 0, 0, 0, 0, 9]),
                    try self.step(.audio, 0, [0xAF, 0, 7], [0xAF, 0, 7]),
                ]),
        ]
    }

    @Test(arguments: 0..<3) func viewersGetTheFormThatTheyKnow(_ index: Int) async throws {
        let layout = try Self.layouts()[index]
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            var viewers: [(sink: FakeSink, takesTracks: Bool, steps: [Step])] = []
            func join(_ steps: [Step]) async throws {
                for loop in relay.loops {
                    for streamID: UInt32 in [1, 5] {
                        for takesTracks in [false, true] {
                            let tracks: TrackChoice = takesTracks ? .all : .standard
                            let sink = try await relay.join(live.stream, on: loop, streamID: streamID, tracks: tracks)
                            viewers.append((sink, takesTracks, steps))
                        }
                    }
                }
            }
            let all = layout.headers + layout.pictures + layout.more
            try await join(all)
            try await relay.publishSingly((layout.headers + layout.pictures + [layout.more[0]]).map(\.sent), to: live)
            try await relay.publish(layout.more.dropFirst().map(\.sent), to: live)
            // Late ones begin at the default track's newest keyframe.
            let start = try #require(layout.more.firstIndex { $0.single != nil })
            try await join(layout.headers + layout.more[start...])
            let last = try Make.audio(99, at: 160)
            try await relay.publish([last], to: live)
            for (number, viewer) in viewers.enumerated() {
                let got = try await relay.received(viewer.sink).map(\.payload)
                let expected = viewer.steps.compactMap { viewer.takesTracks ? $0.sent.payload : $0.single } + [last.payload]
                #expect(got == expected, "viewer \(number), tracks: \(viewer.takesTracks)")
            }
        }
    }

    /// HTTP-FLV's ring is made from RTMP's.
    @Test(arguments: 0..<3) func otherPackagingsGetTheSameForms(_ index: Int) async throws {
        let layout = try Self.layouts()[index]
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish((layout.headers + layout.pictures).map(\.sent), to: live)
            for takesTracks in [false, true] {
                let sink = try await relay.join(live.stream, on: relay.other, .flvOverWebSocket, tracks: takesTracks ? .all : .standard)
                let start = try #require(layout.pictures.firstIndex { $0.single != nil })
                let steps = layout.headers + layout.pictures[start...]
                let expected = steps.compactMap { takesTracks ? $0.sent.payload : $0.single }
                let bytes = try await relay.with(sink) { $0.bytes }
                // A binary message of one tag: two bytes of WebSocket, eleven of the tag, the payload, four of its size.
                var rest = ByteBuffer(bytes: bytes)
                var got: [ByteBuffer] = []
                while rest.readInteger(as: UInt8.self) == 0x82, let length = rest.readInteger(as: UInt8.self),
                    let tag = rest.readSlice(length: Int(length)), let payload = tag.getSlice(at: 11, length: Int(length) - 15)
                {
                    got.append(payload)
                }
                #expect(got == expected, "tracks: \(takesTracks)")
                try await relay.with(sink) { $0.close() }
            }
        }
    }

    /// Who asks for a track gets it alone, in messages that every player knows; of a kind without it the default, as those do who ask for a track that
    /// is not there.
    @Test(arguments: 0..<3) func aChosenTrackStandsAlone(_ index: Int) async throws {
        let layout = try Self.layouts()[index]
        let chosen: UInt8 = index == 2 ? 3 : 1
        func expected(_ steps: [Step]) throws -> [ByteBuffer] {
            try steps.compactMap { step in
                guard step.sent.kind == .video else { return step.single }
                return try step.sent.single(track: chosen)?.payload
            }
        }
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let all = layout.headers + layout.pictures + layout.more
            var early: [(sink: FakeSink, expected: [ByteBuffer])] = []
            for loop in relay.loops {
                early.append((try await relay.join(live.stream, on: loop, tracks: .one(chosen)), try expected(all)))
                early.append((try await relay.join(live.stream, on: loop, tracks: .one(9)), all.compactMap(\.single)))
            }
            try await relay.publishSingly((layout.headers + layout.pictures).map(\.sent), to: live)
            // A first one of this form, whose ring is made of the cached pictures.
            let middle = try await relay.join(live.stream, on: relay.home, streamID: 5, tracks: .one(chosen))
            try await relay.publish(layout.more.map(\.sent), to: live)
            let late = try await relay.join(live.stream, on: relay.other, tracks: .one(chosen))
            let last = try Make.audio(99, at: 160)
            try await relay.publish([last], to: live)
            for (number, viewer) in early.enumerated() {
                #expect(try await relay.received(viewer.sink).map(\.payload) == viewer.expected + [last.payload], "viewer \(number)")
            }
            #expect(try await relay.received(middle).map(\.payload) == expected(all) + [last.payload])
            #expect(try await relay.received(late).map(\.payload) == expected(layout.headers + layout.more) + [last.payload])
        }
    }

    /// The choice is bounded, as each chosen track is packed for itself; other values are somebody else's.
    @Test func choices() {
        let texts = ["all", "0", "1", "15", "16", "-1", "+1", "", "ALL", "1x", "99999999999999999999"]
        let choices: [TrackChoice?] = [.all, .standard, .one(1), .one(15), nil, nil, nil, nil, nil, nil, nil]
        #expect(texts.map { TrackChoice($0) } == choices)
    }

    /// A stream that gets a second track while viewers play, and loses it again.
    @Test func aTrackComesAndGoes() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let old = try await relay.join(live.stream, on: relay.home)
            let new = try await relay.join(live.stream, on: relay.home, tracks: .all)
            let plain = try Make.stream(groups: 2)
            let side = try Frame(kind: .video, timestamp: 240, payload: ByteBuffer(bytes: Self.one(1, 3, [5])))
            let after = try Make.stream(groups: 2, firstID: 100, at: 260)
            try await relay.publishSingly(plain + [side] + after, to: live)
            try await relay.sweep()
            #expect(try await relay.received(old).map(\.payload) == (plain + after).map(\.payload))
            #expect(try await relay.received(new).map(\.payload) == (plain + [side] + after).map(\.payload))
        }
    }

    @Test(arguments: 0..<2) func pictureAndFiguresAreTheDefaultTracks(_ index: Int) async throws {
        let layout = try Self.layouts()[index]
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let hevc = try Frame(kind: .video, timestamp: 0, payload: ByteBuffer(bytes: [0x96, 0x00] + Array("hvc1".utf8) + [1, 4, 4]))
            try await relay.publish((layout.headers + layout.pictures).map(\.sent) + [hevc], to: live)
            let found = try await relay.on(relay.home) { home in
                home.keyframe(of: live.stream).map { (header: $0.header.payload, keyframe: $0.keyframe.payload) }
            }
            #expect(found?.header == ByteBuffer(bytes: [0x17, 0, 0, 0, 0, 9]))
            #expect(found?.keyframe == ByteBuffer(bytes: [0x17, 1, 0, 0, 0, 1]))
            let meter = try await relay.on(relay.home) { $0.snapshot(of: live.stream)?.stream.meter }
            #expect(meter?.video?.codec == .avc)
        }
    }

    @Test func sideTracksAreNoFrames() throws {
        var meter = StreamMeter()
        for index in 0..<50 {
            let nowMs = Int64(index) * 40
            meter.count(try Make.key(index, at: nowMs), nowMs: nowMs)
            meter.count(
                try Frame(kind: .video, timestamp: nowMs, payload: ByteBuffer(bytes: Self.one(1, 3, [5]))), isSide: true, nowMs: nowMs)
        }
        meter.tick(nowMs: 2_000)
        #expect(meter.framesPerSecond == 25 && meter.keyframeIntervalMs == 40 && meter.messagesIn == 100)
    }

    /// Taps, such as the recorder and links, get what was sent.
    @Test(arguments: 0..<3) func tapsGetAllTracks(_ index: Int) async throws {
        let layout = try Self.layouts()[index]
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish((layout.headers + layout.pictures).map(\.sent), to: live)
            let tap = PayloadTap()
            RelayLoop.add(tap, to: live.stream)
            try await relay.publish(layout.more.map(\.sent), to: live)
            let start = try #require(layout.pictures.firstIndex { $0.single != nil })
            let expected = layout.headers + layout.pictures[start...] + layout.more
            #expect(tap.payloads.withLock { $0 } == expected.map(\.sent.payload))
        }
    }
}

private final class PayloadTap: StreamTap {
    let payloads = Mutex<[ByteBuffer]>([])

    func receive(_ items: [TapItem]) {
        self.payloads.withLock { payloads in
            for item in items {
                switch item {
                case .prelude(let frames): payloads += frames.map(\.payload)
                case .frame(let frame): payloads.append(frame.payload)
                case .restarted, .ended: break
                }
            }
        }
    }
}
