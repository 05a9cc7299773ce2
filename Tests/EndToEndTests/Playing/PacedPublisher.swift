import Media
import Relay
import ServerTestSupport
import Synchronization
import TestSupport

/// Publishes tags at the pace of their timestamps, from its own thread. Records when it sent them. Any thread.
final class PacedPublisher: Sendable {
    typealias Sent = (ms: UInt32, at: ContinuousClock.Instant)

    private let client: TagClient
    private let sent = Mutex<[Sent]>([])

    init(_ client: TagClient) { self.client = client }

    /// The pictures sent, without headers.
    var sentAt: [Sent] { self.sent.withLock { $0 } }

    /// Returns when all are sent or the task is cancelled. `times`: when to send each, in ms, if not at the pace of the tags' own.
    @discardableResult
    func send(_ tags: [FLVTag], at times: [UInt32]? = nil) async throws -> PacedSender.Lateness {
        let times = times ?? tags.map(\.timestamp)
        let first = times.first ?? 0
        let sender = PacedSender {
            var rest = Array(zip(tags, times))[...]
            return {
                rest.popFirst().map { tag, time in
                    PacedSender.Step(due: .milliseconds(Int(time &- first))) { _ in
                        if tag.kind == .video, !tag.isSequenceHeader { self.sent.withLock { $0.append((tag.timestamp, .now)) } }
                        self.client.enqueue([tag])
                    }
                }
            }
        }
        return try await withTaskCancellationHandler {
            try await sender.ended()
        } onCancel: {
            sender.stop()
        }
    }

    /// The time at which the last picture before `ms` was sent.
    func sent(before ms: Int64) -> ContinuousClock.Instant? { self.sentAt.last { Int64($0.ms) < ms }?.at }
}
