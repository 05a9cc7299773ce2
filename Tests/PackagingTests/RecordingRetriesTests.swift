import NIOEmbedded
import Rooms
import TestSupport
import Testing

@testable import Packaging
@testable import Relay

/// The rules of recordings without a call, on values: no server, no clock, no disk.
@Suite struct RecordingRetriesTests {
    private static let path = "live/cam1"
    private static let second: Int64 = 1_000

    private static func stream(_ path: String = Self.path) -> Relay.Stream {
        Relay.Stream(path: path, home: RelayLoop(eventLoop: EmbeddedEventLoop(), encoder: RTMPEncoder()))
    }

    private static func source(_ path: String = Self.path, isByCall: Bool = false) throws -> RecordingSource {
        RecordingSource(path: try StreamPath(path).orThrow(), roomID: nil, slot: 1, isByCall: isByCall)
    }

    // MARK: - Retries

    @Test func aRefusedRecordingIsTriedAgainOnce() throws {
        let (stream, source) = (Self.stream(), try Self.source(isByCall: true))
        var retries = RecordingRetries()
        #expect(!retries.isWaiting(Self.path))
        retries.refused(source, of: stream, nowMs: 5)
        #expect(retries.isWaiting(Self.path) && !retries.isWaiting("live/cam2"))
        #expect(retries.due(nowMs: 30 * Self.second + 4) { _ in stream }.isEmpty)
        #expect(retries.due(nowMs: 30 * Self.second + 5) { _ in stream } == [source])
        #expect(!retries.isWaiting(Self.path))
        #expect(retries.due(nowMs: .max) { _ in stream }.isEmpty)
    }

    @Test func anotherStreamOfTheNameIsLeftAlone() throws {
        let (stream, source) = (Self.stream(), try Self.source())
        for found in [nil, Self.stream()] {
            var retries = RecordingRetries()
            retries.refused(source, of: stream, nowMs: 0)
            #expect(retries.due(nowMs: .max) { _ in found }.isEmpty)
            #expect(!retries.isWaiting(Self.path))
        }
        // Nobody uses the stream any more.
        var retries = RecordingRetries()
        retries.refused(source, of: Self.stream(), nowMs: 0)
        #expect(retries.due(nowMs: .max) { _ in stream }.isEmpty)
    }

    /// Returns the delays in seconds of recordings that fail one after the other, each after `ranMs`.
    private static func delays(_ ranMs: [Int64], then find: (Relay.Stream) -> Relay.Stream? = { $0 }) throws -> [Int64] {
        let (stream, source) = (Self.stream(), try Self.source())
        var retries = RecordingRetries()
        return ranMs.map { ranMs in
            #expect(retries.ended(source, of: stream, .diskFull, ranMs: ranMs, nowMs: 0) == nil)
            let delay = (0...2_000).first {
                !retries.due(nowMs: $0 * Self.second) { _ in find(stream) }.isEmpty || !retries.isWaiting(Self.path)
            }
            retries.began(Self.path)
            return delay ?? -1
        }
    }

    @Test func delaysDoubleUntilOneRunsForLong() throws {
        #expect(try Self.delays([0, 0, 119_999, 0, 0, 0, 0]) == [30, 60, 120, 240, 480, 960, 960])
        #expect(try Self.delays([0, 0, 120_000, 0]) == [30, 60, 30, 60])
        #expect(try Self.delays([0, 0, 0], then: { _ in nil }) == [30, 30, 30], "a new stream begins anew")
    }

    @Test func onlyFailuresAreTriedAgain() throws {
        let (stream, source) = (Self.stream(), try Self.source())
        for end in RecordingEnd.allCases {
            var retries = RecordingRetries()
            #expect(retries.ended(source, of: stream, end, ranMs: 0, nowMs: 0) == nil)
            #expect(retries.isWaiting(Self.path) == (end.isFailure && end != .unsupportedMedia), "\(end)")
        }
        // An ordinary end forgets earlier failures.
        var retries = RecordingRetries()
        for end in [RecordingEnd.diskFull, .diskFull, .streamEnded, .diskFull] {
            _ = retries.ended(source, of: stream, end, ranMs: 0, nowMs: 0)
        }
        #expect(retries.due(nowMs: 30 * Self.second) { _ in stream } == [source])
    }

    @Test func aPublisherWaitsForThePreviousFile() throws {
        let (stream, source, next) = (Self.stream(), try Self.source(), try Self.source(isByCall: true))
        var retries = RecordingRetries()
        retries.queued(next)
        #expect(!retries.isWaiting(Self.path))
        #expect(retries.ended(source, of: stream, .streamEnded, ranMs: 0, nowMs: 0) == next)
        #expect(retries.ended(source, of: stream, .streamEnded, ranMs: 0, nowMs: 0) == nil, "only once")
        // Stopped by a call, or to be tried again: nothing else begins in its place.
        for end in [RecordingEnd.stopped, .diskFull] {
            retries.queued(next)
            #expect(retries.ended(source, of: stream, end, ranMs: 0, nowMs: 0) == nil)
            #expect(retries.ended(source, of: stream, .streamEnded, ranMs: 0, nowMs: 0) == nil)
        }
    }

    @Test func aStopGivesUpWhatWaits() throws {
        let (stream, source) = (Self.stream(), try Self.source())
        var retries = RecordingRetries()
        #expect(retries.stopped(Self.path) == false)
        retries.queued(source)
        #expect(retries.stopped(Self.path) == false, "no retry was waiting")
        #expect(retries.ended(source, of: stream, .streamEnded, ranMs: 0, nowMs: 0) == nil)
        retries.refused(source, of: stream, nowMs: 0)
        #expect(retries.stopped(Self.path) == true)
        #expect(!retries.isWaiting(Self.path))
    }

    @Test func aBeginningClearsWhatWaits() throws {
        let (stream, source) = (Self.stream(), try Self.source())
        var retries = RecordingRetries()
        retries.refused(source, of: stream, nowMs: 0)
        retries.queued(source)
        retries.began(Self.path)
        #expect(!retries.isWaiting(Self.path))
        #expect(retries.ended(source, of: stream, .streamEnded, ranMs: 0, nowMs: 0) == nil)
    }

    @Test func aNewPolicyGivesUpOnlyItsOwnRetries() throws {
        let stream = Self.stream()
        for isByCall in [false, true] {
            var retries = RecordingRetries()
            retries.unwanted(Self.path)
            retries.refused(try Self.source(isByCall: isByCall), of: stream, nowMs: 0)
            retries.unwanted(Self.path)
            #expect(retries.isWaiting(Self.path) == isByCall)
        }
    }

    // MARK: - Policy

    @Test(
        arguments: [
            ([], .always, true), ([], .apps, false), (["live"], .apps, true), (["other"], .apps, false), (["other", "*"], .apps, true),
            (["live"], .never, false), (["*"], .never, false), (["other"], .always, true),
        ] as [([String], RoomPolicy.Record, Bool)])
    func aRoomsPolicyOverridesTheSettings(_ apps: [String], _ record: RoomPolicy.Record, _ isWanted: Bool) {
        #expect(RecordingPolicy(apps: apps).isWanted("live", record) == isWanted)
    }

    @Test func aStopHoldsForTheStreamsLife() {
        let stream = Self.stream()
        var policy = RecordingPolicy(apps: ["*"])
        #expect(!policy.isHeld(Self.path, stream) && !policy.isHeld(Self.path, nil))
        policy.hold(Self.path, stream)
        policy.forgetGone()
        #expect(policy.isHeld(Self.path, stream) && !policy.isHeld("live/cam2", stream))
        #expect(!policy.isHeld(Self.path, Self.stream()) && !policy.isHeld(Self.path, nil))
        policy.release(Self.path)
        #expect(!policy.isHeld(Self.path, stream))
        // Gone, or never there.
        policy.hold(Self.path, Self.stream())
        policy.hold("live/cam2", nil)
        #expect(!policy.isHeld(Self.path, nil) && !policy.isHeld("live/cam2", nil))
        policy.forgetGone()
        #expect(!policy.isHeld(Self.path, nil))
    }
}
