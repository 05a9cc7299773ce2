import HTTPServer
import HTTPTypes
import NIOCore
import Rooms
import ServerTestSupport
import Support
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// The limits of each kind of input, and the messages when they are exceeded.
@Suite struct APIFormTests {
    private func accepts<Value>(_ kind: InputType<Value>, _ json: JSONValue) -> Bool { (try? kind.read(json)) != nil }

    @Test func textIsBoundedInCharactersAndPlain() throws {
        let kind = InputType<String>.text(length: 1...5)
        #expect(try kind.read("a") == "a")
        #expect(try kind.read("\u{1F600}a") == "\u{1F600}a")
        // Length counts code points: these are five, of four bytes each.
        #expect(self.accepts(kind, .string(String(repeating: "\u{1F600}", count: 5))))
        #expect(throws: BrokenRule("expected 1 to 5 characters of text; these are 6")) { try kind.read("\u{1F600}aaaaa") }
        // Two characters to a reader, six code points to the schema.
        #expect(throws: BrokenRule("expected 1 to 5 characters of text; these are 6")) { try kind.read("e\u{301}\u{302}a\u{301}\u{302}") }
        #expect(throws: BrokenRule("expected 1 to 5 characters of text; these are 0")) { try kind.read("") }
        for json: JSONValue in [1, true, .null, [], .object([]), .number(1.5)] { #expect(!self.accepts(kind, json), "\(json)") }
        for text in ["\0", "\n", "\u{7F}", "\u{85}", "a\u{1B}"] { #expect(!self.accepts(kind, .string(text)), "\(text.utf8.map { $0 })") }
    }

    @Test func idsAreShortAndSimple() {
        for text in ["a", "A-z_0", String(repeating: "x", count: 64)] { #expect(self.accepts(.id, .string(text))) }
        for text in ["", " ", "a b", "a/b", "..", "a.b", "é", "a\0", "'", "%", String(repeating: "x", count: 65)] {
            #expect(!self.accepts(.id, .string(text)), "\(text)")
        }
        #expect(!self.accepts(.id, 5))
    }

    @Test func wholeNumbersAreWholeAndInRange() throws {
        let kind = InputType<Int64>.whole(1...8)
        #expect(try kind.read(8) == 8)
        #expect(try kind.read(.number(2)) == 2)
        #expect(try kind.read(.digits("2.0")) == 2 && kind.read(.digits("8e0")) == 8)
        for json: JSONValue in [0, 9, -1, .number(1.5), .number(1e300), "1", true, .null, .integer(.max), .digits("1.50"), .digits("9.0")] {
            #expect(!self.accepts(kind, json))
        }
    }

    @Test func secondsAreMilliseconds() throws {
        let kind = InputType<Int64>.seconds(1...60_000)
        #expect(try kind.read(30) == 30_000)
        #expect(try kind.read(.number(0.5)) == 500)
        #expect(try kind.read(.digits("0.50")) == 500)
        #expect(try kind.read(.number(0.001)) == 1)
        for json: JSONValue in [0, 61, -1, .number(60.001), .number(0.0001), .number(1e300), .number(-1e300), "30", true, .null] {
            #expect(!self.accepts(kind, json), "\(json)")
        }
    }

    @Test func nullIsAValueOnlyWhereItIsAllowed() throws {
        let owner = Input("owner", .nullable(.id), "")
        let form = Form([owner.erased])
        let given = try form.read([.init(name: "owner", value: .null)], what: "field")
        #expect(given[owner] == .some(.none))
        let absent = try form.read([], what: "field")
        #expect(absent[owner] == .none)
        let named = try form.read([.init(name: "owner", value: "u1")], what: "field")
        #expect(named[owner] == .some(.some("u1")))
    }

    @Test func unknownFieldsAreNamedWithASuggestion() {
        let form = Form([Input("title", .text(length: 0...9), "").erased, Input("owner", .id, "").erased])
        func problem(_ name: String) -> FieldError? {
            do {
                _ = try form.read([.init(name: name, value: 1)], what: "field")
                return nil
            } catch {
                return error
            }
        }
        #expect(problem("titl")?.rule.contains("did you mean title?") == true)
        // Two letters in each other's place are one mistake.
        #expect(problem("titel")?.description == "titel is \"1\": there is no such field; did you mean title?")
        #expect(problem("zzz")?.rule.contains("expected one of title, owner") == true)
        #expect(problem(String(repeating: "x", count: 5_000))?.field.utf8.count == 60)
        #expect(problem("titl")?.value == "1")
    }

    @Test func whatIsRequiredIsMissed() {
        let form = Form([Input("userId", .id, "").required.erased])
        #expect(throws: FieldError("userId", "", "is required")) { try form.read([], what: "field") }
        #expect(throws: FieldError.self) { try form.read([.init(name: "userId", value: .null)], what: "field") }
    }

    @Test func policySettingsAreNamedWithTheirPath() throws {
        #expect(try InputType<[String: Int64]>.policy.read(["grace": 5, "heartbeatMisses": 7]) == ["grace": 5_000, "heartbeatMisses": 7])
        #expect(try InputType<[String: Int64]>.policy.read(.object([])) == [:])
        func problem(_ json: JSONValue) -> FieldError? {
            do {
                _ = try InputType<[String: Int64]>.policy.read(json)
                return nil
            } catch {
                return error.error("policy", json)
            }
        }
        #expect(problem(["grace": -1])?.field == "policy.grace")
        #expect(problem(["grace": -1])?.value == "-1")
        #expect(problem(["grce": 1])?.rule.contains("did you mean grace?") == true)
        #expect(problem(["heartbeatMisses": .number(1.5)])?.field == "policy.heartbeatMisses")
        #expect(problem([])?.field == "policy")
        // Each setting accepts its bounds and nothing beyond them.
        for field in RoomPolicy.fields {
            if case .words(let words) = field.kind {
                for word in words { #expect(problem(.object([.init(name: field.name, value: .string(word))])) == nil) }
                for wrong: JSONValue in ["", "sometimes", 0, 1, true, .null] {
                    #expect(problem(.object([.init(name: field.name, value: wrong)]))?.field == "policy.\(field.name)")
                }
                continue
            }
            let unit: Double = field.isDuration ? 1_000 : 1
            for (value, isGood) in [
                (field.range.lowerBound, true), (field.range.upperBound, true), (field.range.lowerBound - 1, false),
                (field.range.upperBound + 1, false),
            ] {
                let json: JSONValue = .object([.init(name: field.name, value: .number(Double(value) / unit))])
                #expect((problem(json) == nil) == isGood, "\(field.name) \(value)")
            }
        }
    }

    @Test func queriesAreReadByTheirSchemas() throws {
        let form = Form([
            Input("page", .whole(1...9), "").erased, Input("public", .flag, "").erased, Input("q", .text(length: 0...50), "").erased,
            Input("lifetime", .seconds(1...60_000), "").erased,
        ])
        let page = Input("page", .whole(1...9), "")
        let flag = Input("public", .flag, "")
        let text = Input("q", .text(length: 0...50), "")
        let values = try RequestReader.query("page=3&public=true&q=a+b%20%26%3D&lifetime=0.5", form)
        #expect(values[page] == 3)
        #expect(values[flag] == true)
        #expect(values[text] == "a b &=")
        #expect(values[Input("lifetime", InputType<Int64>.seconds(1...60_000), "")] == 500)
        // Digits are text where the schema expects text.
        #expect(try RequestReader.query("q=12", form)[text] == "12")
        #expect(try RequestReader.query(nil, form)[page] == nil)
        #expect(try RequestReader.query("", form)[page] == nil)
        for query in [
            "page=x", "page=", "page=1.5", "page=0x1", "page=+1", "page=1&page=1", "pgae=1", "public=1", "public=yes", "q=%", "q=%zz",
            "q=%ff", "q=%00", "page",
        ] {
            #expect(throws: APIError.self, "\(query)") { try RequestReader.query(query, form) }
        }
    }

    @Test func bodiesAreObjectsInJSON() throws {
        let form = Form([Input("title", .text(length: 0...9), "").erased])
        let title = Input("title", .text(length: 0...9), "")
        let json: HTTPFields = [.contentType: "application/json"]
        #expect(try RequestReader.body(.init(), [:], form)[title] == nil)
        #expect(try RequestReader.body(.init(string: "{}"), json, form)[title] == nil)
        #expect(
            try RequestReader.body(.init(string: #"{"title":"x"}"#), [.contentType: "Application/JSON; charset=\"UTF-8\""], form)[title]
                == "x")
        for body in ["[]", "1", "null", "\"x\"", "{", "{}{}", " "] {
            #expect(throws: APIError.self, "\(body)") { try RequestReader.body(.init(string: body), json, form) }
        }
        for type in [
            "text/plain", "application/jsonx", "application/x-www-form-urlencoded", "application/json; charset=latin1",
            "multipart/form-data",
        ] {
            do {
                _ = try RequestReader.body(.init(string: "{}"), [.contentType: type], form)
                Issue.record("\(type) was taken")
            } catch {
                #expect(error.status == .unsupportedMediaType)
            }
        }
        #expect(throws: APIError.self) { try RequestReader.body(.init(string: "{}"), [:], form) }
        // An absent body does not satisfy a required field.
        #expect(throws: APIError.self) { try RequestReader.body(.init(), [:], Form([title.required.erased])) }
    }

    /// Numbers beyond the range of `Double` keep their digits too. Inputs that need a number reject them.
    @Test(arguments: ["1e999", "-1e999", "1e400", String(repeating: "9", count: 400)])
    func numbersWithoutADoubleKeepTheirDigits(_ text: String) throws {
        let value = try JSONParser.parse(text.utf8)
        #expect(value == .digits(text) && value.text == text && value.double == nil)
        #expect(throws: BrokenRule.self) { try InputType<Int64>.whole(0...Int64.max).read(value) }
        #expect(throws: BrokenRule.self) { try InputType<Int64>.seconds(0...Int64.max).read(value) }
    }
}
