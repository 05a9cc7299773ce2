import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One HTTP request and its answer.
struct HTTPAnswer: Sendable {
    let status: Int
    let contentType: String?
    let body: Data
    var text: String { String(decoding: self.body, as: UTF8.self) }
    func json() throws -> JSON { JSON(try JSONSerialization.jsonObject(with: self.body)) }

    static func get(_ url: String, method: String = "GET") async throws -> HTTPAnswer {
        var request = URLRequest(url: try URL(string: url).orThrow())
        request.httpMethod = method
        let (body, response) = try await URLSession.shared.data(for: request)
        let http = try (response as? HTTPURLResponse).orThrow()
        return HTTPAnswer(status: http.statusCode, contentType: http.value(forHTTPHeaderField: "Content-Type"), body: body)
    }
}
