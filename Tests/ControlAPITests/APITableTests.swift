import EarshotServer
import HTTPTypes
import ServerTestSupport
import TestSupport
import Testing

@testable import ControlAPI
@testable import HTTPAPI
@testable import Support

/// Routing of requests, and the document's agreement with the table.
@Suite struct APITableTests {
    private let table = APITable(APIRoute.all)

    private func match(_ method: HTTPRequest.Method, _ path: String) -> (name: String, path: [String])? {
        guard case .route(let route, let members) = self.table.match(method, path[...]) else { return nil }
        return (route.name, members.map(\.value.shown))
    }

    @Test func everyCallIsReached() {
        for route in APIRoute.all {
            let path =
                "/"
                + route.parts.map { part in
                    switch part {
                    case .literal(let text): text
                    case .parameter: "x1"
                    }
                }.joined(separator: "/")
            #expect(self.match(route.method, path)?.name == route.name, "\(route.method) \(path)")
        }
    }

    @Test func encodedSlashesStayInTheirPart() {
        #expect(self.match(.get, "/streams/live/room1%2Falice")! == ("getStream", ["live", "room1/alice"]))
        #expect(self.match(.get, "/streams/live/room1/alice") == nil)
        #expect(self.match(.get, "/streams/live/%E2%98%83")! == ("getStream", ["live", "☃"]))
        #expect(self.match(.get, "/rooms/..%2f..%2fetc")! == ("getRoom", ["../../etc"]))
        #expect(self.match(.get, "/streams/published/stats/stats")?.name == "getStreamStats")
        #expect(self.match(.head, "/rooms")?.name == "listRooms")
    }

    @Test(arguments: [
        "", "/", "rooms", "/rooms/", "//rooms", "/Rooms", "/rooms/a/", "/rooms//close", "/rooms/a/close/", "/rooms/a/b", "/streams/live/",
    ])
    func otherPathsAreNotFound(_ path: String) {
        guard case .noSuchPath = self.table.match(.get, path[...]) else {
            Issue.record("\(path) was found")
            return
        }
    }

    @Test(arguments: ["/rooms/%", "/rooms/%4", "/rooms/%zz", "/rooms/%ff", "/rooms/%c3", "/rooms/%ed%a0%80"])
    func badEncodingIsSaid(_ path: String) {
        guard case .badEncoding = self.table.match(.get, path[...]) else {
            Issue.record("\(path) was read")
            return
        }
    }

    @Test func otherMethodsNameTheKnownOnes() {
        guard case .noSuchMethod(let methods) = self.table.match(.put, "/rooms/a") else {
            Issue.record("PUT was found")
            return
        }
        #expect(Set(methods) == [.get, .patch, .delete])
    }

    @Test func namesAreUniqueAndPathsDeclared() {
        #expect(Set(APIRoute.all.map(\.name)).count == APIRoute.all.count)
        #expect(Set(APIRoute.all.map { "\($0.method) \($0.path)" }).count == APIRoute.all.count)
        for route in APIRoute.all {
            let inPath = route.parts.compactMap { part -> String? in if case .parameter(let name) = part { name } else { nil } }
            #expect(inPath == route.pathForm.inputs.map(\.name), "\(route.name)")
            #expect(!route.pathForm.inputs.contains { !$0.isRequired }, "\(route.name)")
            let all = (route.pathForm.inputs + route.query.inputs + (route.body?.inputs ?? [])).map(\.name)
            #expect(Set(all).count == all.count, "\(route.name) has two inputs of one name")
            if route.method == .get || route.method == .delete { #expect(route.body == nil, "\(route.name)") }
        }
    }

    /// Every served call is documented, and every documented call is served.
    @Test func theDocumentListsTheTable() throws {
        let document = try JSONParser.parse(OpenAPIDocument.bytes)
        #expect(document["openapi"] == "3.1.0")
        guard case .object(let paths)? = document["paths"] else {
            Issue.record("no paths")
            return
        }
        var documented: Set<String> = []
        for path in paths {
            guard case .object(let operations) = path.value else { continue }
            for operation in operations {
                documented.insert("\(operation.name.uppercased()) \(path.name)")
                let served = path.name.replacing(/\{[a-zA-Z]+\}/) { _ in "x1" }
                let name = self.match(.init(operation.name.uppercased()) ?? .trace, served)?.name
                #expect(name == operation.value["operationId"]?.shown, "\(operation.name) \(path.name)")
            }
        }
        #expect(documented == Set(APIRoute.all.map { "\($0.method.rawValue) \($0.path)" }))
        for reference in Self.references(document) {
            #expect(SchemaCheck(document: document).resolve(reference) != nil, "\(reference)")
        }
        #expect(!document.text.contains("null,null"))
    }

    /// Generators of clients name a property's enumeration after its schema and itself: `Stream` and `state` become `StreamState`. No other
    /// schema may have that name: the generator would leave out both, and every call that answers them.
    @Test func classNamesDoNotClash() throws {
        let document = try JSONParser.parse(OpenAPIDocument.bytes)
        guard case .object(let schemas)? = document["components"]?["schemas"] else {
            Issue.record("no schemas")
            return
        }
        var names = Set(schemas.map(\.name))
        var inner = 0
        for schema in schemas {
            guard case .object(let properties)? = schema.value["properties"] else { continue }
            for property in properties where Self.holds("enum", property.value) || Self.holds("properties", property.value) {
                inner += 1
                let name = schema.name + property.name.prefix(1).uppercased() + property.name.dropFirst()
                #expect(names.insert(name).inserted, "\(name) is the name of two classes")
            }
        }
        #expect(inner > 20)
    }

    /// Whether the schema, or that of its items, has this keyword.
    private static func holds(_ keyword: String, _ schema: JSONValue) -> Bool {
        schema[keyword] != nil || schema["items"].map { Self.holds(keyword, $0) } ?? false
    }

    @Test func everyOperationIsDescribed() throws {
        let document = try JSONParser.parse(OpenAPIDocument.bytes)
        for route in APIRoute.all {
            let operation = try document["paths"]?[route.path]?[route.method.rawValue.lowercased()].orThrow()
            let (summary, description) = (operation?["summary"]?.shown ?? "", operation?["description"]?.shown ?? "")
            #expect(summary.count > 8 && !summary.contains(". ") && !summary.hasSuffix("."), "\(route.name): \(summary)")
            #expect(description.hasSuffix("."), "\(route.name): \(description)")
            for (type, _) in route.success.content {
                let content = operation?["responses"]?["\(route.success.status.code)"]?["content"]?[type]
                #expect(content?["schema"] != nil, "\(route.name) \(type)")
                #expect(content?["example"].map(\.shown.isEmpty) == false, "\(route.name) \(type)")
            }
        }
    }

    /// The document's own examples: answers fit their schemas, and each body is read without complaint.
    @Test func examplesAreValid() throws {
        let document = try JSONParser.parse(OpenAPIDocument.bytes)
        let check = SchemaCheck(document: document)
        var count = 0
        for route in APIRoute.all {
            let operation = try (document["paths"]?[route.path]?[route.method.rawValue.lowercased()]).orThrow()
            if let body = route.body {
                let example = operation["requestBody"]?["content"]?["application/json"]?["example"]
                guard case .object(let members)? = example else {
                    Issue.record("\(route.name) has no example of its body")
                    continue
                }
                #expect(throws: Never.self, "\(route.name): \(members)") { try body.read(members, what: "field") }
                count += 1
            }
            let media = operation["responses"]?["\(route.success.status.code)"]?["content"]?["application/json"]
            guard let media, let schema = media["schema"] else { continue }
            let example = try media["example"].orThrow()
            #expect(check.problems(example, schema).isEmpty, "\(route.name): \(check.problems(example, schema))")
            count += 1
        }
        #expect(count > 60)
        let delivery = try (document["webhooks"]?["event"]?["post"]?["requestBody"]?["content"]?["application/json"]).orThrow()
        guard case .object(let examples)? = delivery["examples"] else {
            Issue.record("deliveries have no examples")
            return
        }
        for example in examples {
            let problems = check.problems(try example.value["value"].orThrow(), try delivery["schema"].orThrow())
            #expect(problems.isEmpty, "\(example.name): \(problems)")
        }
    }

    private static func references(_ value: JSONValue) -> [String] {
        switch value {
        case .object(let members):
            members.flatMap { member in
                if member.name == "$ref", case .string(let text) = member.value { [text] } else { Self.references(member.value) }
            }
        case .array(let values): values.flatMap(Self.references)
        default: []
        }
    }

    @Test func percentCodingGoesBothWays() {
        let text = "a/b ?&=%é☃😀~-._"
        #expect(PercentCoding.decode(PercentCoding.encode(text).utf8) == text)
        #expect(PercentCoding.encode("a/b é") == "a%2Fb%20%C3%A9")
    }
}

/// The rate limit of a token.
@Suite struct APIRateTests {
    private let second: UInt64 = 1_000_000_000

    /// Takes one token at each of these times. Returns whether each was allowed.
    private func acquire(_ bucket: inout TokenBucket, at times: [UInt64]) -> [Bool] { times.map { bucket.acquire(nowNs: $0).isAllowed } }

    @Test func aBucketLetsABurstThroughAndThenItsRate() {
        var bucket = TokenBucket(rate: 2, burst: 4, nowNs: 0)
        #expect(self.acquire(&bucket, at: [0, 0, 0, 0]) == [true, true, true, true])
        let empty = bucket.acquire(nowNs: 0)
        #expect(empty == .init(isAllowed: false, remaining: 0, waitSeconds: 0.5, fullSeconds: 2))
        #expect(self.acquire(&bucket, at: [self.second / 2 - 1, self.second / 2, self.second / 2]) == [false, true, false])
        // The bucket holds no more than its burst.
        #expect(self.acquire(&bucket, at: Array(repeating: 100 * self.second, count: 5)) == [true, true, true, true, false])
        // A clock that goes back refills nothing.
        #expect(self.acquire(&bucket, at: [50 * self.second]) == [false])
    }

    @Test func lookingTakesNothing() {
        var bucket = TokenBucket(rate: 1, burst: 1, nowNs: 0)
        let peeks = [bucket.peek(nowNs: 0), bucket.peek(nowNs: 0), bucket.acquire(nowNs: 0), bucket.peek(nowNs: 0)]
        #expect(peeks.map(\.isAllowed) == [true, true, true, false])
        let isFull = [bucket.isFull(nowNs: 0), bucket.isFull(nowNs: self.second)]
        #expect(isFull == [false, true])
    }

    @Test func tokensDoNotShareTheirCalls() {
        let limits = RateLimits(rate: 1)
        #expect(limits.call(token: 1, nowNs: 0).isAllowed && limits.call(token: 1, nowNs: 0).isAllowed)
        #expect(!limits.call(token: 1, nowNs: 0).isAllowed)
        #expect(limits.call(token: 2, nowNs: 0).isAllowed)
    }

    @Test func addressesAreHeldBackAfterManyFailures() {
        let limits = RateLimits(rate: 1)
        for _ in 0..<20 {
            #expect(limits.mayTry(host: "a", nowNs: 0) == nil)
            limits.failed(host: "a", nowNs: 0)
        }
        #expect(limits.mayTry(host: "a", nowNs: 0).map { $0 > 0 } == true)
        #expect(limits.mayTry(host: "b", nowNs: 0) == nil)
        #expect(limits.mayTry(host: "a", nowNs: 5 * self.second) == nil)
        // Memory stays bounded however many addresses fail: old entries are dropped.
        for index in 0..<30_000 { limits.failed(host: "x\(index)", nowNs: 6 * self.second) }
        #expect(limits.mayTry(host: "y", nowNs: 6 * self.second) == nil)
    }
}
