import Media
import NIOCore
import NIOPosix
import Relay
import Support
import Synchronization
import TestSupport
import Testing

@testable import Packaging
@testable import Streaming

@Suite struct FrameMailboxTests {
    private final class Wakes: Sendable {
        let count = Atomic<Int>(0)
        var value: Int { self.count.load(ordering: .relaxed) }
    }

    private static func mailbox(limitBytes: Int = 1 << 20) -> (FrameMailbox, Wakes) {
        let wakes = Wakes()
        let mailbox = FrameMailbox(on: MultiThreadedEventLoopGroup.singleton.any(), limitBytes: limitBytes) {
            wakes.count.add(1, ordering: .relaxed)
        }
        return (mailbox, wakes)
    }

    private static func picture(_ ms: Int64, key: Bool = false, count: Int = 100, fill: UInt8 = 1) throws -> TapItem {
        let head: [UInt8] = [key ? 0x17 : 0x27, 1, 0, 0, 0]
        return .frame(
            try Frame(kind: .video, timestamp: ms, payload: ByteBuffer(bytes: head + [UInt8](repeating: fill, count: count))))
    }

    private static func header(_ fill: UInt8, count: Int = 100) throws -> TapItem {
        .frame(
            try Frame(
                kind: .video, timestamp: 0, payload: ByteBuffer(bytes: [0x17, 0, 0, 0, 0] + [UInt8](repeating: fill, count: count))))
    }

    private static let patience = FrameMailbox.Patience(leads: .video, dueMs: 1_000, keyframeDueMs: 500, newestMs: 100)

    @Test func whatWaitsIsCharged() throws {
        let ledger = MemoryLedger(limit: 1)
        do {
            let mailbox = FrameMailbox(on: MultiThreadedEventLoopGroup.singleton.any(), ledger: ledger) {}
            for number in 0..<10 { mailbox.receive([try Self.picture(Int64(number), key: number == 0, count: 100_000)]) }
            #expect((900_000..<1_100_000).contains(ledger.used))
            #expect(mailbox.drain().items.count == 10)
            #expect(ledger.used < 100_000)
            mailbox.receive([try Self.picture(10, count: 200_000)])
            #expect(ledger.used >= 200_000)
        }
        #expect(ledger.used == 0)
    }

    @Test func wakesForWhatIsWorthIt() throws {
        let (mailbox, wakes) = Self.mailbox()
        mailbox.receive([try Self.picture(100)])
        #expect(wakes.value == 1, "nothing is known of what it waits for")
        mailbox.receive([try Self.picture(133)])
        #expect(wakes.value == 1, "it is awake")
        #expect(mailbox.drain().items.count == 2)
        #expect(mailbox.rest(Self.patience))
        mailbox.receive([try Self.picture(166), .frame(try Frame(kind: .data, timestamp: 166, payload: ByteBuffer(bytes: [2, 0, 1, 65])))])
        mailbox.receive([try Self.picture(400, key: true)])
        #expect(wakes.value == 1)
        mailbox.receive([try Self.picture(533, key: true)])
        #expect(wakes.value == 2, "a keyframe that ends the piece")
        #expect(mailbox.drain().items.count == 4)
        mailbox.receive([try Self.picture(1_000)])
        #expect(!mailbox.rest(Self.patience), "what came meanwhile is due")
        _ = mailbox.drain()
        #expect(mailbox.rest(Self.patience))
        for item in [try Self.picture(1_033), try Self.picture(50), .restarted, .ended] {
            let before = wakes.value
            mailbox.receive([item])
            #expect(wakes.value == before + 1, "\(item)")
            _ = mailbox.drain()
            _ = mailbox.rest(Self.patience)
        }
    }

    /// The sweep reports stopped frames once, and also frames that waited too long.
    @Test func reportsStalls() async throws {
        let (mailbox, wakes) = Self.mailbox()
        var patience = Self.patience
        patience.dueMs = .max / 2
        patience.holdMs = 400
        mailbox.receive([try Self.picture(100)])
        _ = mailbox.drain()
        #expect(mailbox.rest(patience))
        mailbox.receive([try Self.picture(133)])
        try await eventually("the stall") {
            mailbox.sweep()
            return wakes.value == 2
        }
        #expect(mailbox.drain().isStalled)
        #expect(mailbox.rest(patience))
        for _ in 0..<20 { mailbox.sweep() }
        #expect(wakes.value == 2)
        var ms: Int64 = 166
        try await eventually("what waits for too long") {
            mailbox.receive([try Self.picture(ms)])
            ms += 1
            mailbox.sweep()
            return wakes.value == 3
        }
        #expect(!mailbox.drain().isStalled)
    }

    /// While the taker is stuck, memory stays bounded and the newest header is kept.
    @Test func isBounded() throws {
        let (mailbox, _) = Self.mailbox(limitBytes: 100_000)
        for round in 0..<1_000 {
            mailbox.receive([
                .frame(
                    try Frame(kind: .data, timestamp: 0, payload: ByteBuffer(bytes: [2, 0, 1, 65] + [UInt8](repeating: 0, count: 5_000)))),
                try Self.header(UInt8(round % 250), count: 2_000), try Self.picture(Int64(round), count: 3_000),
            ])
        }
        #expect(mailbox.dropped > 900)
        let items = mailbox.drain().items
        let bytes = items.reduce(0) { sum, item in
            if case .frame(let frame) = item { sum + frame.payload.readableBytes } else { sum }
        }
        #expect(bytes < 210_000, "\(bytes) bytes")
        let headers = items.compactMap { item -> UInt8? in
            guard case .frame(let frame) = item, frame.isSequenceHeader else { return nil }
            return frame.payload.readableBytesView.last
        }
        #expect(headers.last == UInt8(999 % 250))
    }

    /// Slices are copied, which frees the buffer that they are cut from. Copies stay unchanged while others follow.
    @Test func copiesAreTheirOwn() throws {
        let (mailbox, _) = Self.mailbox()
        var kept: [(Frame, UInt8)] = []
        for round in 0..<50 {
            let fill = UInt8(round + 1)
            var read = ByteBuffer(
                bytes: [0x27, 1, 0, 0, 0] + [UInt8](repeating: fill, count: 2_000) + [UInt8](repeating: 255, count: 50_000))
            let slice = try read.readSlice(length: 2_005).orThrow()
            mailbox.receive([.frame(try Frame(kind: .video, timestamp: Int64(round), payload: slice))])
            if round % 3 == 2 {
                for case .frame(let frame) in mailbox.drain().items { kept.append((frame, UInt8(frame.timestamp + 1))) }
                _ = mailbox.rest(nil)
                kept.removeFirst(max(0, kept.count - 7))
            }
            for (frame, fill) in kept {
                #expect(frame.payload.readableBytes == 2_005 && frame.payload.readableBytesView.dropFirst(5).allSatisfy { $0 == fill })
                #expect(frame.payload.storageCapacity < 50_000 && frame.payload.writableBytes >= 64)
            }
        }
    }
}
