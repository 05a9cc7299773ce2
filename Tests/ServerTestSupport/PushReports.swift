import TestSupport
import Testing

/// A broadcaster's reports of its push.
extension RunningServer {
    package func beat(_ name: String, _ query: String, _ status: String = "pushing", method: String = "POST") async throws -> HTTPAnswer {
        try await self.request(
            method, "/push/live/\(name)/heartbeat?\(query)", body: method == "GET" ? nil : "{\"status\":\"\(status)\"}")
    }

    /// Once the stream may be reported again.
    package func pacedBeat(_ name: String, _ query: String, _ status: String = "pushing") async throws -> JSON {
        var answer = try await self.beat(name, query, status)
        try await eventually("a turn") {
            if answer.status == 429 { answer = try await self.beat(name, query, status) }
            return answer.status != 429
        }
        #expect(answer.status == 200, "\(answer.text)")
        return try answer.json()
    }
}
