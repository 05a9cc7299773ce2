import Support

/// Describes schemas of the OpenAPI document in a few words, for tables.
enum SchemaText {
    /// A longer pattern says less than the description beside it.
    private static let longestPattern = 48

    /// The type in a few words: "integer 1 to 8", "list of [RoomStream](#roomstream)".
    static func words(_ schema: JSONValue) -> String {
        if let name = Self.typeName(schema) { return "[\(name)](#\(name.lowercased()))" }
        if case .array(let choices)? = schema["anyOf"] { return choices.map(Self.words).joined(separator: ", or ") }
        if case .array(let words)? = schema["enum"] { return words.map { "`\($0.shown)`" }.joined(separator: ", ") }
        if let constant = schema["const"] { return "`\(constant.shown)`" }
        switch schema["type"] {
        case "array"?: return "list of \(Self.words(schema["items"] ?? .null))"
        case "object"?:
            guard let element = schema["additionalProperties"], case .object = element else { return "object" }
            return "object of \(Self.words(element)) by name"
        case "string"?: return Self.text(schema)
        case "integer"?, "number"?: return (schema["type"]?.shown ?? "") + Self.range(schema)
        case let type?: return type.shown
        case nil: return "any"
        }
    }

    /// The name of the type that the schema refers to.
    static func typeName(_ schema: JSONValue) -> String? {
        guard case .string(let reference)? = schema["$ref"] else { return nil }
        return reference.split(separator: "/").last.map(String.init)
    }

    /// A table row for each member of an object; members of an inner object follow it.
    static func rows(_ schema: JSONValue, prefix: String = "", showsRequired: Bool) -> [String] {
        guard case .object(let properties)? = schema["properties"] else { return [] }
        let required = schema["required"] ?? .array([])
        return properties.flatMap { property -> [String] in
            var isRequired = false
            if showsRequired, case .array(let names) = required { isRequired = names.contains(.string(property.name)) }
            let name = Self.name(prefix + property.name, isRequired: isRequired)
            let meaning = property.value["description"].map(\.shown) ?? ""
            let row = "| \(name) | \(Self.words(property.value)) | \(Self.cell(meaning)) |"
            return [row] + Self.rows(property.value, prefix: "\(prefix)\(property.name).", showsRequired: showsRequired)
        }
    }

    /// Characters of a cell that a reader still takes in.
    private static let longestCell = 200

    /// A table of these rows: a name, a type, a meaning. Types that list many words stand below it.
    static func table(of what: String, _ rows: [String]) -> [String] {
        var below: [String] = []
        let shown = rows.map { row in
            let inner = row.dropFirst(2).dropLast(2)
            var cells = inner.split(separator: " | ", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
            guard cells.count == 3, cells[1].count > Self.longestCell else { return row }
            below.append("- \(cells[0]): \(cells[1])")
            cells[1] = cells[1].hasPrefix("list of ") ? "list of words, below" : "a word, below"
            return "| \(cells.joined(separator: " | ")) |"
        }
        return ["| \(what) | type | meaning |", "|---|---|---|"] + shown + (below.isEmpty ? [] : [""] + below)
    }

    static func name(_ name: String, isRequired: Bool) -> String { isRequired ? "**`\(name)`**" : "`\(name)`" }

    /// A bar would end the cell (GitHub Flavored Markdown 4.10), and an asterisk might begin emphasis.
    static func cell(_ text: String) -> String {
        text.replacing("|", with: "\\|").replacing("*", with: "\\*").replacing("\n", with: " ")
    }

    private static func text(_ schema: JSONValue) -> String {
        switch schema["format"] {
        case "date-time"?: return "time, RFC 3339"
        case "uri"?: return "URL"
        case "binary"?: return "bytes"
        default: break
        }
        if let pattern = schema["pattern"]?.shown, pattern.count <= Self.longestPattern, !pattern.contains("\\x") {
            return "text that fits `\(pattern.replacing("|", with: "\\|"))`"
        }
        guard let most = schema["maxLength"] else { return "text" }
        return "text of \(schema["minLength"]?.shown ?? "0") to \(most.shown) characters"
    }

    private static func range(_ schema: JSONValue) -> String {
        switch (schema["minimum"], schema["maximum"]) {
        case (nil, nil): return ""
        case (let least?, nil): return " from \(least.shown)"
        case (nil, let most?): return " up to \(most.shown)"
        // The type's own maximum is no limit that anybody reaches.
        case (let least?, .integer(.max)?): return " from \(least.shown)"
        case (let least?, let most?): return " \(least.shown) to \(most.shown)"
        }
    }
}
