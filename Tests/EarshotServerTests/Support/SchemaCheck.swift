import HTTPTypes
import Support
import Testing

@testable import ControlAPI
@testable import EarshotServer

/// Validates a JSON value against a schema of the API's document. Supports only the keywords in use there.
struct SchemaCheck {
    let document: JSONValue

    /// Each violation with its place; empty for a valid value.
    func problems(_ value: JSONValue, _ schema: JSONValue, at place: String = "$") -> [String] {
        guard case .object(let keywords) = schema else { return ["\(place): \(schema.text) is no schema"] }
        return keywords.flatMap { self.problem(value, $0.name, $0.value, schema, place) }
    }

    private func problem(_ value: JSONValue, _ keyword: String, _ rule: JSONValue, _ schema: JSONValue, _ place: String) -> [String] {
        let wrong = ["\(place): \(value.text.prefix(200)) breaks \(keyword) \(rule.text.prefix(200))"]
        switch (keyword, value) {
        case ("description", _), ("deprecated", _): return []
        case ("$ref", _):
            guard let target = self.resolve(rule.shown) else { return ["\(place): \(rule.text) leads nowhere"] }
            return self.problems(value, target, at: place)
        case ("type", _): return Self.fits(value, rule.shown) ? [] : wrong
        case ("const", _): return value == rule ? [] : wrong
        case ("enum", _):
            guard case .array(let words) = rule else { return wrong }
            return words.contains(value) ? [] : wrong
        case ("anyOf", _):
            guard case .array(let choices) = rule else { return wrong }
            let all = choices.map { self.problems(value, $0, at: place) }
            return all.contains(where: \.isEmpty) ? [] : wrong + all.joined()
        case ("items", .array(let elements)):
            return elements.enumerated().flatMap { self.problems($1, rule, at: "\(place)[\($0)]") }
        case ("properties", .object(let members)):
            return members.flatMap { member in
                rule[member.name].map { self.problems(member.value, $0, at: "\(place).\(member.name)") } ?? []
            }
        case ("required", .object(let members)):
            guard case .array(let names) = rule else { return wrong }
            return names.filter { name in !members.contains { $0.name == name.shown } }.map { "\(place): \($0.shown) is missing" }
        case ("additionalProperties", .object(let members)):
            let others = members.filter { schema["properties"]?[$0.name] == nil }
            if rule == false { return others.map { "\(place): \($0.name) is not in the schema" } }
            return others.flatMap { self.problems($0.value, rule, at: "\(place).\($0.name)") }
        case ("minimum", _): return Self.number(value).map { $0 >= Self.number(rule) ?? .infinity } ?? true ? [] : wrong
        case ("maximum", _): return Self.number(value).map { $0 <= Self.number(rule) ?? -.infinity } ?? true ? [] : wrong
        case ("format", .string(let text)):
            switch rule {
            case "date-time": return Instant.ms(text) == nil ? wrong : []
            case "uri": return text.contains("://") ? [] : wrong
            default: return wrong
            }
        case ("items", _), ("properties", _), ("required", _), ("additionalProperties", _), ("format", _): return []
        default: return ["\(place): the keyword \(keyword) is not known here"]
        }
    }

    /// Resolves a reference such as "#/components/schemas/Room".
    func resolve(_ reference: String) -> JSONValue? {
        guard reference.hasPrefix("#/") else { return nil }
        return reference.dropFirst(2).split(separator: "/").reduce(self.document) { $0?[String($1)] }
    }

    private static func fits(_ value: JSONValue, _ type: String) -> Bool {
        switch (type, value) {
        case ("object", .object), ("array", .array), ("string", .string), ("boolean", .bool), ("null", .null), ("integer", .integer),
            ("number", .integer), ("number", .number), ("number", .digits):
            true
        default: false
        }
    }

    private static func number(_ value: JSONValue) -> Double? { value.double }
}

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
