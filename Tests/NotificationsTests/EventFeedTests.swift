import NIOCore
import TestSupport
import Testing

@testable import Notifications
@testable import Rooms

/// The source of the next event: ring or store, without gap or repetition.
@Suite struct EventFeedTests {
    static func event(_ id: Int64, room: String? = "r", data: String = "{}") -> RoomEvent {
        RoomEvent(
            id: id, number: id, kind: .roomLive, roomID: room.map(RoomID.init(stored:)), instance: 1, at: 1_795_255_200_000, data: data)
    }

    static func entry(_ id: Int64, room: String? = "r", bytes: Int = 10) -> EventRing.Entry {
        EventRing.Entry(id: id, room: room.map(RoomID.init(stored:)), kind: .roomLive, frame: ByteBuffer(repeating: 0, count: bytes))
    }

    @Test func theRingIsBoundedInNumber() {
        var ring = EventRing()
        #expect(ring.base == nil)
        for id in 1...Int64(EventRing.entryLimit + 5) { ring.append(Self.entry(id)) }
        #expect(ring.count == EventRing.entryLimit)
        // The last entry dropped.
        #expect(ring.base == 5)
        #expect(ring.head == Int64(EventRing.entryLimit + 5))
        #expect(ring.first(after: 5)?.id == 6)
        #expect(ring.first(after: ring.head ?? 0) == nil)
    }

    /// Events of other nodes are left out while nobody reads them: who is behind such a gap reads the store.
    @Test func aGapBeginsTheRingAnew() {
        var ring = EventRing()
        for id in [1, 2, 5, 6] as [Int64] { ring.append(Self.entry(id)) }
        #expect(ring.base == 4 && ring.count == 2 && ring.bytes == 20)
        #expect(ring.first(after: 4)?.id == 5)
        var cursor = FeedCursor(after: 2)
        #expect(cursor.next(ring) == .readStore(after: 2))
    }

    @Test func theRingIsBoundedInBytes() {
        var ring = EventRing()
        for id in 1...Int64(10) { ring.append(Self.entry(id, bytes: EventRing.byteLimit / 4)) }
        #expect(ring.count == 4)
        #expect(ring.bytes <= EventRing.byteLimit)
        ring.append(Self.entry(11, bytes: 2 * EventRing.byteLimit))
        #expect(ring.count == 1)
        #expect(ring.base == 10)
    }

    @Test func whatIsThereIsNotThereTwice() {
        var ring = EventRing()
        ring.append(Self.entry(5))
        ring.append(Self.entry(5))
        ring.append(Self.entry(4))
        #expect(ring.count == 1)
        #expect(ring.base == 4)
    }

    /// A subscriber, a ring and a store, driven at random: every event after the start is delivered once and in order.
    @Test(arguments: [nil, "a"] as [String?])
    func everythingOnceAndInOrder(_ room: String?) throws {
        for seed in UInt64(1)...300 {
            var random = SeededGenerator(seed: seed)
            var store: [RoomEvent] = []
            var untold: [RoomEvent] = []
            var ring = EventRing()
            var lastID: Int64 = 0
            func happen() {
                // Ids may have holes, from transactions without effect.
                lastID += Int64.random(in: 1...3, using: &random)
                let event = Self.event(lastID, room: Bool.random(using: &random) ? "a" : "b")
                store.append(event)
                untold.append(event)
            }
            func deliver() {
                for event in untold { ring.append(Self.entry(event.id, room: event.roomID?.rawValue, bytes: EventRing.byteLimit / 6)) }
                untold = []
            }
            for _ in 0..<Int.random(in: 0...20, using: &random) { happen() }
            let start = Int64.random(in: 0...lastID, using: &random)
            if Bool.random(using: &random) { untold = [] }
            var cursor = FeedCursor(after: start)
            var told: [Int64] = []
            var page: [RoomEvent]?
            let limit = 4
            var quiet = 0
            for step in 0..<400 {
                if step < 200, Int.random(in: 0...3, using: &random) == 0 { happen() }
                if step >= 200 || Bool.random(using: &random) { deliver() }
                if let read = page, Bool.random(using: &random) {
                    page = nil
                    told += read.map(\.id)
                    cursor.pageArrived(last: read.last?.id, isFull: read.count == limit)
                }
                switch cursor.next(ring) {
                case .wait: quiet += 1
                case .readStore(let after):
                    if Int.random(in: 0...9, using: &random) == 0 {
                        cursor.pageFailed()
                    } else {
                        page = Array(store.filter { $0.id > after && (room == nil || $0.roomID?.rawValue == room) }.prefix(limit))
                    }
                case .readRing:
                    let entry = try #require(ring.first(after: cursor.position))
                    cursor.sent(entry.id)
                    if room == nil || entry.room?.rawValue == room { told.append(entry.id) }
                }
            }
            let expected = store.filter { $0.id > start && (room == nil || $0.roomID?.rawValue == room) }.map(\.id)
            #expect(told == expected, "seed \(seed)")
            #expect(quiet > 0)
        }
    }

    @Test func messages() throws {
        let event = RoomEvent(
            id: 7, number: 3, kind: .streamEnd, roomID: RoomID(stored: "cam1"), instance: 2, at: 1_795_255_200_123, data: #"{"code":1}"#)
        #expect(
            EventMessage.event(event)
                == #"{"type":"event","id":7,"number":3,"kind":"stream.end","roomId":"cam1","instance":2,"at":"2026-11-21T10:00:00.123Z","data":{"code":1}}"#
        )
        #expect(EventMessage.event(Self.event(1, room: nil)).contains(#""roomId":null"#))
    }

    @Test(arguments: [
        (#"{"type":"ping"}"#, true), (#" {"type" : "ping", "x":1}"#, true), (#"{"type":"pong"}"#, false), ("ping", false), ("", false),
        (#"{"type":1}"#, false), ("[", false), (#"{"type":"ping","pad":"\#(String(repeating: "a", count: 256))"}"#, false),
    ])
    func clientMessages(_ text: String, _ isPing: Bool) { #expect(ClientMessage.isPing(text) == isPing) }
}
