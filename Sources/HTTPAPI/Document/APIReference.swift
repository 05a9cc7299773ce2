package import Support

/// The OpenAPI document for people to read: `docs/http-api.md`.
package enum APIReference {
    /// Every call, event and type. Ends with a line break.
    package static func markdown(_ document: JSONValue) -> String {
        let types = document["components"]?["schemas"]?.members ?? []
        // The variants of an event differ only in their data, which has a type of its own.
        let forms = Set(
            ["Event", "WebhookEvent"].flatMap { name in types.first { $0.name == name }?.value["oneOf"]?.elements ?? [] }
                .compactMap { SchemaText.typeName($0) })
        let calls = Self.calls(document)
        var lines = [
            "# HTTP API reference",
            "",
            "Every call, made by `earshot api reference` from the table that the server serves from; `earshot api document` prints the same as",
            "OpenAPI 3.1, which a server has at `/api/v1/openapi.json`. [api.md](api.md) explains tokens, errors, paging, versions and repeated calls.",
            "",
            "Paths are below `/api/v1`. An answer with status 200 or 201 has the fields `code`, `message`, `requestId` and `data`; the tables below list",
            "the fields of `data`, unless another content type is named. Inputs in **bold** are required. Every call may also be answered by 401, 403 and 429,",
            "every POST by 409, and every call with a body by 408, 413 and 415.",
        ]
        for tag in document["tags"]?.elements ?? [] {
            let name = tag["name"]?.string ?? ""
            let chosen = calls.filter { $0.tag == name }
            lines += ["", "## Calls: \(name)", "", "| call | what it does | role |", "|---|---|---|"]
            lines += chosen.map { "| [`\($0.method) \($0.path)`](#\($0.anchor)) | \(SchemaText.cell($0.text("summary"))) | \($0.role) |" }
            for call in chosen { lines += call.lines }
        }
        lines += [
            "", "## Events", "", "Kinds of events, in the feed and in what webhooks get. Each has its data in one of the [types](#types).",
            "",
        ]
        lines += ["| kind | what has happened | data |", "|---|---|---|"] + Self.events(document, types)
        lines += ["", "## Types"]
        for type in types where !forms.contains(type.name) {
            lines += ["", "### \(type.name)", ""] + Self.type(type.value)
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func calls(_ document: JSONValue) -> [ReferenceCall] {
        (document["paths"]?.members ?? []).flatMap { path in
            path.value.members.map { ReferenceCall(method: $0.name.uppercased(), path: path.name, operation: $0.value) }
        }
    }

    private static func type(_ schema: JSONValue) -> [String] {
        if let forms = schema["oneOf"]?.elements {
            return [
                "One of \(forms.count) forms, told apart by `\(schema["discriminator"]?["propertyName"]?.string ?? "")`: see [events](#events)."
            ]
        }
        let rows = SchemaText.rows(schema, showsRequired: false)
        if rows.isEmpty { return [SchemaText.words(schema)] }
        return SchemaText.table(of: "field", rows)
    }

    /// A row for each kind of event: its description, and the type of its data.
    private static func events(_ document: JSONValue, _ types: [JSONValue.Member]) -> [String] {
        let mapping = types.first { $0.name == "Event" }?.value["discriminator"]?["mapping"]?.members ?? []
        let examples = document["webhooks"]?["event"]?["post"]?["requestBody"]?["content"]?["application/json"]?["examples"]
        return mapping.map { kind in
            let name = SchemaText.typeName(["$ref": kind.value]) ?? ""
            let data = types.first { $0.name == name }?.value["properties"]?["data"]
            let summary = examples?[kind.name]?["summary"]?.string ?? ""
            return "| `\(kind.name)` | \(SchemaText.cell(summary)) | \(data.map(SchemaText.words) ?? "") |"
        }
    }
}

/// One call of the document.
private struct ReferenceCall {
    let method: String
    let path: String
    let operation: JSONValue

    /// Statuses of every call, of every POST, and of every call with a body; described once, in the introduction.
    private static let usual: Set<String> = ["401", "403", "408", "409", "413", "415", "429"]

    var tag: String { self.operation["tags"]?.elements.first?.string ?? "" }
    var role: String { self.operation["x-role"]?.string ?? "none" }
    /// The heading's anchor, as GitHub makes it.
    var anchor: String { self.text("operationId").lowercased() }

    func text(_ name: String) -> String { self.operation[name]?.string ?? "" }

    var lines: [String] {
        var lines = [
            "", "### \(self.text("operationId"))", "",
            "`\(self.method) \(self.path)`: \(self.text("summary")). \(self.text("description"))",
        ]
        let inputs = (self.operation["parameters"]?.elements ?? []).filter { $0["in"]?.string != "header" }
        let body = self.operation["requestBody"]?["content"]?["application/json"]
        let fields = body.map { SchemaText.rows($0["schema"] ?? .null, showsRequired: true) } ?? []
        if !inputs.isEmpty || !fields.isEmpty {
            let asked = inputs.map { input in
                let name = SchemaText.name(input["name"]?.string ?? "", isRequired: input["required"] == true)
                let mark = input["in"]?.string == "path" ? "" : "?"
                let words = SchemaText.words(input["schema"] ?? .null)
                return
                    "| \(name.replacing("`", with: "`\(mark)", maxReplacements: 1)) | \(words) | \(SchemaText.cell(input["description"]?.string ?? "")) |"
            }
            lines += [""] + SchemaText.table(of: "input", asked + fields)
        }
        if let example = body?["example"], !example.members.isEmpty { lines += ["", "Body, for example: `\(example.text)`"] }
        lines += ["", self.answers]
        return lines
    }

    private var answers: String {
        let responses = self.operation["responses"]?.members ?? []
        let successes = responses.filter { $0.name.hasPrefix("2") || $0.name.hasPrefix("3") }.map { "\($0.name) \(Self.content($0.value))" }
        let failures = responses.map(\.name).filter { $0.hasPrefix("4") || $0.hasPrefix("5") }.filter { !Self.usual.contains($0) }
        return "Answers \(successes.joined(separator: ", "))."
            + (failures.isEmpty ? "" : " Fails also with \(failures.joined(separator: ", ")).")
    }

    private static func content(_ response: JSONValue) -> String {
        let kinds = (response["content"]?.members ?? []).map { content in
            guard content.name == "application/json", let schema = content.value["schema"] else { return "`\(content.name)`" }
            return SchemaText.words(schema["properties"]?["data"] ?? schema)
        }
        return kinds.isEmpty ? "without a body" : kinds.joined(separator: " or ")
    }
}

extension JSONValue {
    fileprivate var members: [Member] { if case .object(let members) = self { members } else { [] } }
    fileprivate var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }
    fileprivate var string: String? { if case .string(let text) = self { text } else { nil } }
}
