import EarshotServer
import Foundation
import HTTPTypes
package import ServerTestSupport
import Support
import TestSupport
package import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// Calls a server's API and validates each answer by the served document: status, media type, schema, common headers.
package struct CheckedAPI: Sendable {
    package let server: any RunningServer
    private let document: JSONValue
    private static let table = APITable(APIRoute.all)
    /// Parsed once for all tests: that takes longer than most of them.
    private static let built = Result { try JSONParser.parse(OpenAPIDocument.bytes) }

    package init(_ server: any RunningServer) async throws {
        self.server = server
        let served = try await server.call("GET", "openapi.json", token: "").body
        self.document = served == Data(OpenAPIDocument.bytes) ? try Self.built.get() : try JSONParser.parse(served)
    }

    @discardableResult
    package func callAsFunction(
        _ method: String, _ path: String, _ body: String? = nil, token: String? = nil, headers: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> HTTPAnswer {
        let answer = try await self.server.call(method, path, body, token: token, headers: headers)
        for problem in self.problems(method, path, answer) {
            Issue.record("\(method) \(path) -> \(answer.status): \(problem)", sourceLocation: sourceLocation)
        }
        return answer
    }

    /// The answer's data; expects this status.
    @discardableResult
    package func ok(
        _ method: String, _ path: String, _ body: String? = nil, status: Int = 200, token: String? = nil, headers: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let answer = try await self(method, path, body, token: token, headers: headers, sourceLocation: sourceLocation)
        #expect(answer.status == status, "\(method) \(path): \(answer.text)", sourceLocation: sourceLocation)
        return try answer.json()["data"]
    }

    /// The answer's error; expects this status.
    @discardableResult
    package func refused(
        _ status: Int, _ method: String, _ path: String, _ body: String? = nil, token: String? = nil, headers: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let answer = try await self(method, path, body, token: token, headers: headers, sourceLocation: sourceLocation)
        #expect(answer.status == status, "\(method) \(path): \(answer.text)", sourceLocation: sourceLocation)
        return try answer.json()["error"]
    }

    /// The secret of a new token that reaches only what the limits name, as members of the call's body.
    package func limitedToken(_ limits: String = #""rooms":["acme-"]"#, role: String = "admin") async throws -> String {
        let name = "limited-\(UUID().uuidString.prefix(8))"
        return try await self.ok("POST", "tokens", #"{"name":"\#(name)","role":"\#(role)",\#(limits)}"#, status: 201)["secret"].string
            .orThrow()
    }

    private func problems(_ method: String, _ path: String, _ answer: HTTPAnswer) -> [String] {
        var problems: [String] = []
        if answer.headers["cache-control"] != "no-store" { problems.append("Cache-Control is missing") }
        if answer.headers["x-content-type-options"] != "nosniff" { problems.append("X-Content-Type-Options is missing") }
        if answer.headers["x-request-id"]?.isEmpty != false { problems.append("X-Request-Id is missing") }
        let plain = "/" + path.prefix { $0 != "?" }
        var response: JSONValue = ["content": ["application/json": ["schema": ["$ref": "#/components/schemas/Error"]]]]
        let check = SchemaCheck(document: self.document)
        if case .route(let route, _) = Self.table.match(.init(method) ?? .get, plain[...]) {
            guard var found = self.document["paths"]?[route.path]?[method.lowercased()]?["responses"]?["\(answer.status)"] else {
                return problems + ["this status is not in the document"]
            }
            if case .string(let reference)? = found["$ref"] { found = check.resolve(reference) ?? .null }
            response = found
        } else if answer.status < 400 {
            problems.append("answered, but is not in the table")
        }
        // A 304 has only headers.
        if response["content"] == nil, answer.body.isEmpty, answer.contentType == nil { return problems }
        guard let type = answer.contentType, let content = response["content"]?[type] else {
            return problems + ["the type \(answer.contentType ?? "none") is not in the document"]
        }
        guard type == "application/json", let schema = content["schema"] else { return problems }
        do {
            let json = try JSONParser.parse(answer.body)
            if json["requestId"]?.shown != answer.headers["x-request-id"], json["openapi"] == nil {
                // A replayed answer carries the first request's id.
                if answer.headers["idempotency-replayed"] == nil { problems.append("two request ids") }
            }
            return problems + check.problems(json, schema)
        } catch {
            return problems + ["\(error)"]
        }
    }
}
