import Apps
import Listening
import Logging
import Support

/// Calls of another server that classes need. Any thread.
final class ServiceCalls: Sendable {
    /// The other server in answers.
    private let name: String
    /// The line about a call that has failed.
    private let failure: Logger.Message
    private let host: String
    private let post: OutboundPost
    private let log: Logger
    private let floods = LogRateLimiters(perMs: 10_000)
    /// Called for each call that fails.
    private let whenFailed: @Sendable () -> Void

    private static let timeout = Duration.seconds(5)

    /// `host`: its address, with or without a slash at the end.
    init(
        _ name: String, host: String, failure: Logger.Message, post: @escaping OutboundPost, log: Logger,
        whenFailed: @escaping @Sendable () -> Void = {}
    ) {
        var host = host
        while host.hasSuffix("/") { host.removeLast() }
        self.name = name
        self.failure = failure
        self.host = host
        self.post = post
        self.log = log
        self.whenFailed = whenFailed
    }

    /// Sends a call and reads its answer. `refusal`: what the caller is told; the log has more, as clients need not know that server's address.
    func call<Answer>(
        _ path: String, _ headers: [(name: String, value: String)], _ body: String, refusal: (String) -> GatheringRefusal,
        read: (String) throws(GatheringRefusal) -> Answer
    ) async throws(GatheringRefusal) -> Answer {
        let answer: (status: Int, body: [UInt8])
        do {
            answer = try await self.post("\(self.host)\(path)", headers, Array(body.utf8), Self.timeout)
        } catch {
            self.note(path, "\(error)")
            throw refusal("\(self.name) cannot be reached.")
        }
        do throws(GatheringRefusal) {
            guard answer.status == 200 else { throw refusal("\(self.name) answers with status \(answer.status).") }
            return try read(String(decoding: answer.body, as: UTF8.self))
        } catch {
            self.note(path, "\(error)")
            throw error
        }
    }

    private func note(_ path: String, _ error: String) {
        self.whenFailed()
        guard let held = self.floods.pass(path, nowMs: LoopSweeper.nowMs) else { return }
        let metadata: Logger.Metadata = ["call": "\(path)", "error": "\(error)"]
        self.log.write(self.failure, metadata, at: .warning, heldBack: held)
    }

    /// Does it until it succeeds, once more after each pause.
    static func again(after pauses: [Duration], _ body: () async throws(GatheringRefusal) -> Void) async throws(GatheringRefusal) {
        for pause in pauses {
            do throws(GatheringRefusal) {
                return try await body()
            } catch {
                try? await Task.sleep(for: pause)
            }
        }
        try await body()
    }
}
