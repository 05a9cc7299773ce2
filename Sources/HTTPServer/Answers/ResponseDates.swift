import Support
import Synchronization

/// The Date of responses, formatted once a second. Any thread.
final class ResponseDates: Sendable {
    static let shared = ResponseDates()

    private let last = Mutex<(second: Int64, text: String)>((0, ""))

    var now: String {
        let second = WallClock.ms / 1_000
        return self.last.withLock { last in
            if last.second != second { last = (second, Instant.httpText(second * 1_000)) }
            return last.text
        }
    }
}
