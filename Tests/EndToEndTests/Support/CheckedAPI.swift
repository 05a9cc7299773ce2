import HTTPTypes
import ServerTestSupport
import Support
import Testing

@testable import ControlAPI
@testable import EarshotServer

/// Calls a server's API and validates each answer by the served document: status, media type, schema, common headers.
struct CheckedAPI: Sendable {
    let server: TestServer
    private let document: JSONValue
    private static let table = APITable(APIRoute.all)

    init(_ server: TestServer) async throws {
        self.server = server
        self.document = try JSONParser.parse(try await HTTPAnswer.get("\(server.http)/api/v1/openapi.json").body)
    }

    @discardableResult
    func callAsFunction(
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
    func ok(
        _ method: String, _ path: String, _ body: String? = nil, status: Int = 200, token: String? = nil, headers: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let answer = try await self(method, path, body, token: token, headers: headers, sourceLocation: sourceLocation)
        #expect(answer.status == status, "\(method) \(path): \(answer.text)", sourceLocation: sourceLocation)
        return try answer.json()["data"]
    }

    /// The answer's error; expects this status.
    @discardableResult
    func refused(
        _ status: Int, _ method: String, _ path: String, _ body: String? = nil, token: String? = nil, headers: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let answer = try await self(method, path, body, token: token, headers: headers, sourceLocation: sourceLocation)
        #expect(answer.status == status, "\(method) \(path): \(answer.text)", sourceLocation: sourceLocation)
        return try answer.json()["error"]
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
