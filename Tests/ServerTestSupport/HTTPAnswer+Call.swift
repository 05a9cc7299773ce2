package import Foundation
import TestSupport

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension HTTPAnswer {
    package static func get(_ url: String, token: String? = nil) async throws -> HTTPAnswer {
        try await Self.call("GET", url, token: token)
    }

    /// Keeps no cookies: those of one server would go to all on this address.
    private static let session: URLSession = {
        let configuration = URLSessionConfiguration.default
        configuration.httpCookieStorage = nil
        return URLSession(configuration: configuration)
    }()

    /// One request and its answer. `body` is sent as JSON unless the headers say otherwise. The server may be one of the ``MemoryNetwork``.
    package static func call(
        _ method: String, _ url: String, body: Data? = nil, token: String? = nil, headers: [String: String] = [:]
    ) async throws -> HTTPAnswer {
        let url = try URL(string: url).orThrow()
        var fields: [String: String] = [:]
        if body != nil { fields["Content-Type"] = "application/json" }
        if let token { fields["Authorization"] = "Bearer \(token)" }
        for (name, value) in headers { fields[name] = value }
        if let port = url.port, MemoryNetwork.has(port) { return try await MemoryHTTP.call(method, url, port, body, fields) }
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBody = body
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        // In a task that is never cancelled: Foundation's session deadlocks when it is cancelled just as the answer arrives
        // (its own queue and the task's lock are each held by the thread that waits for the other).
        let (data, response) = try await Task { [request] in try await Self.session.data(for: request) }.value
        let http = try (response as? HTTPURLResponse).orThrow()
        var names: [String: String] = [:]
        for (name, value) in http.allHeaderFields { names["\(name)".lowercased()] = "\(value)" }
        return HTTPAnswer(status: http.statusCode, headers: names, body: data)
    }
}
