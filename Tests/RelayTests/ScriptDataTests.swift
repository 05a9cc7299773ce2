import Media
import NIOCore
import Synchronization
import Testing

@testable import Relay

/// Which script data reaches players, and with which timestamp.
@Suite struct ScriptDataTests {
    /// Marker 2, UI16 length, the name; then a number.
    private static func data(_ name: String, at timestamp: Int64, values: Int = 1) throws -> Frame {
        var payload = ByteBuffer(bytes: [2, 0, UInt8(name.utf8.count)] + Array(name.utf8))
        for _ in 0..<values { payload.writeBytes([0, 0x40, 0x45, 0, 0, 0, 0, 0, 0]) }
        return try Frame(kind: .data, timestamp: timestamp, payload: payload)
    }

    /// Names and times of the FLV tags in WebSocket messages.
    private static func wireTimes(_ bytes: [UInt8]) -> [String] {
        var buffer = ByteBuffer(bytes: bytes)
        var all: [String] = []
        while buffer.readInteger(as: UInt8.self) == 0x82, let length = buffer.readInteger(as: UInt8.self),
            let tag = buffer.readSlice(length: Int(length)), let type = tag.getInteger(at: 0, as: UInt8.self),
            let time = tag.getInteger(at: 4, as: UInt32.self)
        {
            var name = type == 8 ? "audio" : "video"
            if type == 18, let count = tag.getInteger(at: 12, as: UInt16.self) { name = tag.getString(at: 14, length: Int(count)) ?? "" }
            all.append("\(name) @\(time >> 8 | (time & 0xFF) << 24)")
        }
        return all
    }

    /// Metadata has time 0 for every FLV viewer; other data keeps the device's time. Stream time goes on.
    @Test func timesOnTheWire() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let early = try await relay.join(live.stream, on: relay.home, .flvOverWebSocket)
            let tap = TimesTap()
            RelayLoop.add(tap, to: live.stream)
            try await relay.publish(
                [
                    try Self.data("onMetaData", at: 0, values: 2), try Make.videoHeader(1, at: 70_000), try Make.key(2, at: 70_000),
                    try Self.data("onMetaData", at: 0), try Self.data("onCuePoint", at: 70_010), try Self.data("onCuePoint", at: 0),
                    try Self.data("onTextData", at: 70_030), try Make.audio(3, at: 70_040),
                ], to: live)
            let late = try await relay.join(live.stream, on: relay.other, .flvOverWebSocket)
            let rtmp = try await relay.join(live.stream, on: relay.other)
            for sink in [early, late] {
                #expect(
                    Self.wireTimes(try await relay.with(sink) { $0.bytes }) == [
                        "onMetaData @0", "video @70000", "video @70000", "onMetaData @0", "onCuePoint @70010", "onCuePoint @0",
                        "onTextData @70030", "audio @70040",
                    ])
            }
            // The tests' own wire format shows stream time; data without a time gets the newest.
            let times = [70_000, 70_000, 70_000, 70_000, 70_010, 70_000, 70_030, 70_040] as [Int64]
            #expect(try await relay.received(rtmp).map(\.timestamp) == times)
            #expect(tap.times == [0] + times.dropFirst())
        }
    }

    /// Server-to-server and malformed data never reaches a player.
    @Test func notForPlayers() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.home)
            var frames = try ["|RtmpSampleAccess", "onFI", "onStatus", "onPlayStatus", "@setDataFrame", "@clearDataFrame"].map {
                try Self.data($0, at: 20)
            }
            for bytes: [UInt8] in [[], [2, 0, 0], [2, 0, 9, 0x61], [0, 0, 0, 0, 0, 0, 0, 0, 0], [0x11, 6, 3, 0x61], [5]] {
                frames.append(try Frame(kind: .data, timestamp: 20, payload: ByteBuffer(bytes: bytes)))
            }
            frames.append(try Self.data("onMetaData", at: 0, values: 0))
            let kept = try ["onCuePoint", "onTextData", "onCaption", "onCaptionInfo", "onFIx", "myHandler"].map {
                try Self.data($0, at: 20)
            }
            try await relay.publish(frames + kept, to: live)
            #expect(try await relay.received(sink) == kept.received())
        }
    }
}

/// Records the timestamps of the frames it is given.
private final class TimesTap: StreamTap {
    private let kept = Mutex<[Int64]>([])
    var times: [Int64] { self.kept.withLock { $0 } }

    func receive(_ items: [TapItem]) {
        let times = items.compactMap { item in
            if case .frame(let frame) = item { frame.timestamp } else { nil }
        }
        self.kept.withLock { $0 += times }
    }
}
