import LinkTransport
import Rooms
import Testing

@testable import Links

/// What of a link's progress is news.
@Suite struct LinkProgressTests {
    private static let broken = LinkError.closed(while: "while publishing")

    @Test func onlyChangesAreNews() {
        var progress = LinkProgress()
        func kinds(_ states: LinkState...) -> [LinkChange.Kind] {
            states.compactMap { progress.changed($0, error: Self.broken)?.kind }
        }
        #expect(kinds(.idle, .connecting) == [.started])
        #expect(kinds(.waiting(untilMs: 1), .connecting, .waiting(untilMs: 2), .connecting) == [.interrupted])
        #expect(kinds(.running, .waiting(untilMs: 3), .connecting, .running) == [.connected, .interrupted, .connected])
        progress.stopReason = "stream_ended"
        #expect(progress.changed(.stopped, error: nil) == LinkProgress.News(kind: .stopped, reason: "stream_ended"))
        #expect(kinds(.stopped, .connecting) == [.started])
        let failed = progress.changed(.failed(reason: "no", permanent: true), error: .badURL("x"))
        #expect(failed == LinkProgress.News(kind: .stopped, reason: "bad_url", words: "no"))
        #expect(progress.ended("deleted") == nil)
        #expect(kinds(.connecting, .running) == [])
    }

    @Test func holdsAreInterruptions() {
        var progress = LinkProgress()
        _ = progress.changed(.connecting, error: nil)
        _ = progress.changed(.running, error: nil)
        #expect(progress.held("forbidden", "words")?.reason == "forbidden")
        #expect(progress.changed(.stopped, error: nil) == nil && progress.held("forbidden", "again") == nil)
        #expect(progress.changed(.connecting, error: nil) == nil)
        #expect(progress.changed(.running, error: nil)?.kind == .connected)
        _ = progress.held("dropped", "words")
        #expect(progress.rests("no_viewer") == LinkProgress.News(kind: .stopped, reason: "no_viewer"))
        #expect(progress.changed(.stopped, error: nil) == nil)
        _ = progress.changed(.connecting, error: nil)
        #expect(progress.ended("deleted")?.reason == "deleted" && progress.ended("deleted") == nil)
    }
}
