import Foundation
import ServerTestSupport
import TestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension HTTPAnswer {
    static func get(_ url: String, token: String? = nil) async throws -> HTTPAnswer { try await Self.call("GET", url, token: token) }

    /// Keeps no cookies: those of one server would go to all on this address.
    private static let session: URLSession = {
        let configuration = URLSessionConfiguration.default
        configuration.httpCookieStorage = nil
        return URLSession(configuration: configuration)
    }()

    /// One request and its answer. `body` is sent as JSON unless the headers say otherwise.
    static func call(
        _ method: String, _ url: String, body: Data? = nil, token: String? = nil, headers: [String: String] = [:]
    ) async throws -> HTTPAnswer {
        var request = URLRequest(url: try URL(string: url).orThrow())
        request.httpMethod = method
        if let body {
            request.httpBody = body
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        // In a task that is never cancelled: Foundation's session deadlocks when it is cancelled just as the answer arrives
        // (its own queue and the task's lock are each held by the thread that waits for the other).
        let (data, response) = try await Task { [request] in try await Self.session.data(for: request) }.value
        let http = try (response as? HTTPURLResponse).orThrow()
        var names: [String: String] = [:]
        for (name, value) in http.allHeaderFields { names["\(name)".lowercased()] = "\(value)" }
        return HTTPAnswer(status: http.statusCode, headers: names, body: data)
    }
}
