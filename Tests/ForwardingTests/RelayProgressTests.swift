import Rooms
import Testing
import Upstream

@testable import Forwarding

/// What of a link's progress is news.
@Suite struct RelayProgressTests {
    private static let broken = UpstreamError.closed(while: "while publishing")

    @Test func onlyChangesAreNews() {
        var progress = RelayProgress()
        func kinds(_ states: UpstreamState...) -> [RelayChange.Kind] {
            states.compactMap { progress.changed($0, error: Self.broken)?.kind }
        }
        #expect(kinds(.idle, .connecting) == [.started])
        #expect(kinds(.waiting(untilMs: 1), .connecting, .waiting(untilMs: 2), .connecting) == [.interrupted])
        #expect(kinds(.running, .waiting(untilMs: 3), .connecting, .running) == [.connected, .interrupted, .connected])
        progress.stopReason = "stream_ended"
        #expect(progress.changed(.stopped, error: nil) == RelayProgress.News(kind: .stopped, reason: "stream_ended"))
        #expect(kinds(.stopped, .connecting) == [.started])
        let failed = progress.changed(.failed(reason: "no", permanent: true), error: .badURL("x"))
        #expect(failed == RelayProgress.News(kind: .stopped, reason: "bad_url", words: "no"))
        #expect(progress.ended("deleted") == nil)
        #expect(kinds(.connecting, .running) == [])
    }

    @Test func holdsAreInterruptions() {
        var progress = RelayProgress()
        _ = progress.changed(.connecting, error: nil)
        _ = progress.changed(.running, error: nil)
        #expect(progress.held("forbidden", "words")?.reason == "forbidden")
        #expect(progress.changed(.stopped, error: nil) == nil && progress.held("forbidden", "again") == nil)
        #expect(progress.changed(.connecting, error: nil) == nil)
        #expect(progress.changed(.running, error: nil)?.kind == .connected)
        _ = progress.held("dropped", "words")
        #expect(progress.rests("no_viewer") == RelayProgress.News(kind: .stopped, reason: "no_viewer"))
        #expect(progress.changed(.stopped, error: nil) == nil)
        _ = progress.changed(.connecting, error: nil)
        #expect(progress.ended("deleted")?.reason == "deleted" && progress.ended("deleted") == nil)
    }
}
