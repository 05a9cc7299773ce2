import Health
package import HTTPTypes
package import Hummingbird
import Synchronization

/// HTTP requests by route, and how long their answers took. Any thread; a lock for a moment, once per request.
package final class RequestFigures: Sendable {
    struct Key: Hashable {
        /// A pattern such as "/api/v1/rooms/{roomId}", never the path of a request.
        let route: String
        let method: String
        let status: Int
    }

    struct Values {
        var counts: [Key: UInt64] = [:]
        var times: [String: Histogram] = [:]
    }

    private let values = Mutex(Values())

    private static let boundsMicros: [Int64] = [
        1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
    ]
    private static let methods: Set<String> = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    /// The route of a request that matches none of the server's.
    package static let unmatched = "unmatched"

    package init() {}

    var current: Values { self.values.withLock { $0 } }

    /// Counts an answer. `route`: one of the program's patterns, so their number is bounded.
    package func answered(_ route: String, _ method: HTTPRequest.Method, _ status: HTTPResponse.Status, after: Duration) {
        let key = Key(route: route, method: Self.methods.contains(method.rawValue) ? method.rawValue : "other", status: status.code)
        let micros = Int64(after / .microseconds(1))
        self.values.withLock { values in
            values.counts[key, default: 0] &+= 1
            values.times[route, default: Histogram(boundsMicros: Self.boundsMicros)].observe(micros: micros)
        }
    }

    /// Counts the answer that `body` makes to the request, and its time.
    package func timed(_ route: String, _ request: Request, _ body: () async -> Response) async -> Response {
        let began = ContinuousClock.now
        let answer = await body()
        self.answered(route, request.method, answer.status, after: ContinuousClock.now - began)
        return answer
    }
}
