import EarshotServer
import Foundation
import HTTPTypes
import Support
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// The reference for people, which is made from the OpenAPI document.
@Suite struct APIReferenceTests {
    @Test func theReferenceIsCurrent() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../docs/http-api.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text == APIReference.markdown, "make it again: earshot api reference > docs/http-api.md")
    }

    /// Each call, with all its inputs, and each kind of event.
    @Test func nothingIsMissing() {
        let text = APIReference.markdown
        for route in APIRoute.all {
            #expect(text.contains("\n### \(route.name)\n\n`\(route.method.rawValue) \(route.path)`: "), "\(route.name)")
            let section = text.components(separatedBy: "\n### \(route.name)\n").last?.components(separatedBy: "\n### ").first ?? ""
            for input in route.pathForm.inputs { #expect(section.contains("**`\(input.name)`**"), "\(route.name): \(input.name)") }
            for input in route.query.inputs { #expect(section.contains("`?\(input.name)`"), "\(route.name): \(input.name)") }
            for input in route.body?.inputs ?? [] { #expect(section.contains("`\(input.name)`"), "\(route.name): \(input.name)") }
        }
    }

    @Test func typesInWords() {
        let words = SchemaText.words
        #expect(words(["type": "integer", "minimum": 1, "maximum": 8]) == "integer 1 to 8")
        #expect(words(["type": "integer", "minimum": 0]) == "integer from 0")
        #expect(words(["anyOf": [["type": "string", "format": "date-time"], ["type": "null"]]]) == "time, RFC 3339, or null")
        #expect(words(["type": "array", "items": ["$ref": "#/components/schemas/RoomStream"]]) == "list of [RoomStream](#roomstream)")
        #expect(words(["type": "string", "enum": ["json", "csv"]]) == "`json`, `csv`")
        #expect(words(["type": "string", "pattern": "^a|b$"]) == "text that fits `^a\\|b$`")
        #expect(words(["type": "object", "additionalProperties": ["type": "integer"]]) == "object of integer by name")
        #expect(words([:]) == "any")
        #expect(SchemaText.cell("a|b*\nc") == "a\\|b\\* c")
    }

    @Test func membersOfMembers() {
        let schema: JSONValue = [
            "type": "object", "required": ["a"],
            "properties": [
                "a": ["type": "object", "description": "Outer.", "properties": ["b": ["type": "boolean", "description": "Inner."]]]
            ],
        ]
        #expect(SchemaText.rows(schema, showsRequired: true) == ["| **`a`** | object | Outer. |", "| `a.b` | boolean | Inner. |"])
    }
}
