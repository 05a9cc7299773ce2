import Media
import NIOCore
import Testing

@testable import Relay

/// Data frames that announce the type of the payloads after them.
@Suite struct PayloadDataTests {
    private static func type(_ text: String) -> Frame {
        Frame(kind: .data, timestamp: 0, payload: ByteBuffer(string: text), tag: TagInfo(flags: .metadata))
    }

    private static func header(_ text: String) -> Frame {
        Frame(kind: .video, timestamp: 0, payload: ByteBuffer(string: text), tag: TagInfo(flags: .sequenceHeader))
    }

    private static func piece(_ text: String, at timestamp: Int64) -> Frame {
        Frame(kind: .video, timestamp: timestamp, payload: ByteBuffer(string: text), tag: TagInfo(flags: [.coded, .keyframe]))
    }

    /// Over a WebSocket, the type is text before the payloads it describes. Viewers already there and later ones get it. Over HTTP nothing
    /// is written: viewers already there get a change at the same place, later ones none.
    @Test func typeChanges() async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            try await relay.publish([Self.type("T1"), Self.header("I1"), Self.piece("P1", at: 0)], to: live)
            var early: [FakeSink] = []
            for loop in relay.loops { early.append(try await relay.join(live.stream, on: loop, .payloadOverWebSocket)) }
            for loop in relay.loops { early.append(try await relay.join(live.stream, on: loop, .payloadOverHTTP)) }
            try await relay.publish([Self.type("T2"), Self.header("I2"), Self.piece("P2", at: 40)], to: live)
            let late = [
                try await relay.join(live.stream, on: relay.other, .payloadOverWebSocket),
                try await relay.join(live.stream, on: relay.other, .payloadOverHTTP),
            ]
            for (index, sink) in (early + late).enumerated() {
                let bytes = try await relay.with(sink) { $0.bytes }
                let told = try await relay.with(sink) { $0.told.filter { $0.change == .changed }.map(\.at) }
                let isHTTP = index == 2 || index == 3 || index == 5
                let words = index >= 4 ? ["T2", "I2", "P2"] : ["T1", "I1", "P1", "T2", "I2", "P2"]
                if isHTTP {
                    let body = words.filter { !$0.hasPrefix("T") }.map { "2\r\n\($0)\r\n" }
                    #expect(String(decoding: bytes, as: UTF8.self) == body.joined())
                    #expect(told == (index >= 4 ? [] : [14]), "behind two chunks of 7 bytes")
                } else {
                    #expect(bytes == words.flatMap { [$0.hasPrefix("T") ? 0x81 : 0x82, 2] + Array($0.utf8) })
                    #expect(told.isEmpty)
                }
            }
        }
    }

    /// In FLV, data is a tag like any other.
    @Test(arguments: [WireFormat.flvOverHTTP, .flvOverWebSocket]) func flvKeepsIt(_ wireFormat: WireFormat) async throws {
        try await RelayHarness.run { relay in
            let live = try await relay.live()
            let sink = try await relay.join(live.stream, on: relay.other, wireFormat)
            try await relay.publish([try Make.metadata(1)], to: live)
            #expect(try await relay.with(sink) { $0.bytes }.contains(18))
            #expect(try await relay.changes(sink).contains(.changed) == false)
        }
    }
}
