import Support
import Testing

@testable import RoomRegistry
@testable import Rooms

@Suite struct NodeSignalTests {
    private static let event = RoomEvent(
        id: 7, number: 3, kind: .roomClosed, roomID: RoomID(stored: "cam1"), instance: 1, at: 5, data: "{}", app: "live", subject: "cam1")

    private static func outcomes(_ signal: NodeSignal, _ events: [RoomEvent]) -> [String] {
        signal.results(Dictionary(uniqueKeysWithValues: events.map { ($0.id, $0) })).outcomes.map { outcome in
            switch outcome {
            case .eventElsewhere(let event): "heard \(event.id)"
            case .eventMark(let mark): "marked \(mark.id) \(mark.kind.rawValue) \(mark.roomID?.rawValue ?? "-")"
            default: "\(outcome)"
            }
        }
    }

    @Test func anEventIsMarked() throws {
        var work = WorkResults()
        work.add(.event(Self.event))
        work.add(
            .event(RoomEvent(id: 8, number: 1, kind: .streamBegin, roomID: nil, instance: 0, at: 5, data: "{}", app: "live", subject: "x")))
        let signal = try NodeSignal(text: try #require(NodeSignal(work)).text)
        #expect(signal.events == [7, 8])
        #expect(Self.outcomes(signal, []) == ["marked 7 room.closed cam1", "marked 8 stream.begin -"])
        #expect(Self.outcomes(signal, [Self.event]) == ["heard 7", "marked 8 stream.begin -"])
    }

    /// A later version may mark events with kinds that are unknown here.
    @Test func aLaterVersion() throws {
        let later = try NodeSignal(text: #"[{"event":7,"kind":"room.painted","room":"cam1"}]"#)
        #expect(Self.outcomes(later, []).isEmpty)
    }

    @Test(arguments: [(1, 100), (3, 100), (400, 100), (404, 101), (1_000, 250), (4_000, 1_000), (100_000, 1_000)])
    func looksOfManyNodes(_ nodes: Int, _ ms: Int) { #expect(RoomRegistry.pollMs(nodes: nodes) == ms) }
}
