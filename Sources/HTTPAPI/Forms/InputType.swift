import Rooms
package import Support

/// One kind of request value: its reader and its schema in one declaration.
package struct InputType<Value: Sendable>: Sendable {
    package let schema: Schema
    /// Throws the broken rule. The caller adds field and value, except for inner fields.
    package let read: @Sendable (JSONValue) throws(BrokenRule) -> Value

    package init(_ schema: Schema, _ read: @escaping @Sendable (JSONValue) throws(BrokenRule) -> Value) {
        self.schema = schema
        self.read = read
    }

    /// Checks or converts the value further; the schema stays.
    package func map<Other: Sendable>(_ change: @escaping @Sendable (Value) throws(BrokenRule) -> Other) -> InputType<Other> {
        InputType<Other>(self.schema) { (json: JSONValue) throws(BrokenRule) in try change(self.read(json)) }
    }
}

/// The rule that a value breaks, as text: "at most 200 bytes". Names the inner field concerned, if any.
package struct BrokenRule: Error, Equatable {
    package let rule: String
    package var inner: String?
    /// The inner field's value; nil when it is missing. Without an inner field: the part of the value that breaks the rule.
    package var value: String?

    package init(_ rule: String, inner: String? = nil, value: String? = nil) {
        self.rule = rule
        self.inner = inner
        self.value = value
    }

    package func error(_ field: String, _ value: JSONValue) -> FieldError {
        if let inner {
            FieldError("\(field).\(inner)", self.value ?? "", self.rule)
        } else {
            FieldError(field, self.value ?? value.shown, self.rule)
        }
    }
}

extension InputType<String> {
    /// Text for lists and logs: without control and invisible characters.
    package static func text(length: ClosedRange<Int>) -> InputType {
        self.text(length, Self.plainPattern, "expected text without control and invisible characters") { PlainText.isPlain($0) }
    }

    /// The same with an example value for the document, for names that do not imply a typical value.
    package func example(_ text: String) -> InputType {
        guard case .plain(let members) = self.schema else { return self }
        return InputType(.plain(members + [.init(name: "examples", value: [.string(text)])]), self.read)
    }

    /// Text that is only compared with stored text; without control characters.
    package static func sought(length: ClosedRange<Int>) -> InputType {
        self.text(length, #"^[^\x00-\x1f\x7f-\x9f]*$"#, "expected text without control characters") { text in
            text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        }
    }

    /// The same for a stored name, which has one spelling.
    package static func soughtName(length: ClosedRange<Int>) -> InputType {
        self.sought(length: length).map { (text: String) throws(BrokenRule) in
            if let problem = NameForm.problem(text) { throw BrokenRule("the text \(problem)") }
            return text
        }
    }

    /// Lengths are in Unicode code points, as JSON Schema counts them (2020-12 Validation §6.3.1).
    private static func text(
        _ length: ClosedRange<Int>, _ pattern: String, _ plainRule: String, isPlain: @escaping @Sendable (String) -> Bool
    ) -> InputType {
        let rule = "expected \(length.lowerBound == 0 ? "at most" : "\(length.lowerBound) to") \(length.upperBound) characters of text"
        return InputType(
            .keywords(
                "string", ("minLength", .integer(Int64(length.lowerBound))), ("maxLength", .integer(Int64(length.upperBound))),
                ("pattern", .string(pattern)))
        ) { (json: JSONValue) throws(BrokenRule) in
            guard case .string(let text) = json else { throw BrokenRule(rule) }
            let count = text.unicodeScalars.count
            guard length.contains(count) else { throw BrokenRule("\(rule); these are \(count)") }
            guard isPlain(text) else { throw BrokenRule(plainRule) }
            return text
        }
    }

    /// ``PlainText`` as a regular expression. Characters above U+FFFF appear literally: dialects escape them differently.
    private static let plainPattern: String = {
        func written(_ code: UInt32) -> String {
            code > 0xFFFF ? Unicode.Scalar(code).map(String.init) ?? "" : "\\u\(String(hex: code, digits: 4))"
        }
        let ranges = PlainText.refused.map { "\(written($0.lowerBound))-\(written($0.upperBound))" }
        return "^[^\(ranges.joined())]*$"
    }()

    /// The id of a room, user or device.
    package static var id: InputType {
        InputType(.keywords("string", ("pattern", "^[A-Za-z0-9_-]{1,64}$"))) { (json: JSONValue) throws(BrokenRule) in
            guard case .string(let text) = json, RoomID.isID(text) else { throw BrokenRule("expected 1 to 64 of A-Z a-z 0-9 _ -") }
            return text
        }
    }

    /// A JSON object, as compact text.
    package static func jsonObject(bytes limit: Int) -> InputType {
        InputType(.keywords("object")) { (json: JSONValue) throws(BrokenRule) in
            guard case .object = json else { throw BrokenRule("expected a JSON object") }
            let text = json.text
            guard text.utf8.count <= limit else {
                throw BrokenRule("expected at most \(limit) bytes of compact JSON; these are \(text.utf8.count)")
            }
            return text
        }
    }
}

extension InputType<Bool> {
    package static var flag: InputType {
        InputType(.keywords("boolean")) { (json: JSONValue) throws(BrokenRule) in
            guard case .bool(let value) = json else { throw BrokenRule("expected true or false") }
            return value
        }
    }
}

extension InputType<Int64> {
    package static func whole(_ range: ClosedRange<Int64>) -> InputType {
        let rule = "expected a whole number from \(range.lowerBound) to \(range.upperBound)"
        return InputType(
            .keywords("integer", ("minimum", .integer(range.lowerBound)), ("maximum", .integer(range.upperBound)))
        ) { (json: JSONValue) throws(BrokenRule) in
            let value: Int64? =
                switch json {
                case .integer(let value): value
                // 1.0 and 1e3 are whole numbers to JSON Schema.
                case .number, .digits: json.double.flatMap(Int64.init(exactly:))
                default: nil
                }
            guard let value, range.contains(value) else { throw BrokenRule(rule) }
            return value
        }
    }

    /// Reads a word as its index in the list.
    package static func index(in words: [String]) -> InputType {
        InputType(.words(words)) { (json: JSONValue) throws(BrokenRule) in
            guard case .string(let text) = json, let index = words.firstIndex(of: text) else {
                throw BrokenRule("expected one of \(words.joined(separator: ", "))")
            }
            return Int64(index)
        }
    }

    /// Reads seconds as whole milliseconds. The range is in milliseconds.
    package static func seconds(_ range: ClosedRange<Int64>) -> InputType {
        let bounds = (JSONValue.number(Double(range.lowerBound) / 1_000), JSONValue.number(Double(range.upperBound) / 1_000))
        let rule = "expected \(bounds.0.text) to \(bounds.1.text) seconds"
        return InputType(.keywords("number", ("minimum", bounds.0), ("maximum", bounds.1))) { (json: JSONValue) throws(BrokenRule) in
            guard let seconds = json.double, let ms = Int64(exactly: (seconds * 1_000).rounded()), range.contains(ms) else {
                throw BrokenRule(rule)
            }
            return ms
        }
    }

    /// Reads RFC 3339 as milliseconds since 1970.
    package static var instant: InputType {
        InputType(.keywords("string", ("format", "date-time"))) { (json: JSONValue) throws(BrokenRule) in
            guard case .string(let text) = json, let ms = Instant.ms(text) else {
                throw BrokenRule("expected a time such as 2026-11-21T10:00:00.000Z")
            }
            return ms
        }
    }
}

extension InputType {
    package static func choice() -> InputType where Value: RawRepresentable<String> & CaseIterable {
        .choice(of: Array(Value.allCases))
    }

    package static func choice(of cases: [Value]) -> InputType where Value: RawRepresentable<String> {
        let words = cases.map(\.rawValue)
        return InputType(.words(words)) { (json: JSONValue) throws(BrokenRule) in
            guard case .string(let text) = json, let value = cases.first(where: { $0.rawValue == text }) else {
                throw BrokenRule("expected one of \(words.joined(separator: ", "))")
            }
            return value
        }
    }

    /// One or more of these values, separated by commas in a query.
    package static func choices<Word>() -> InputType
    where Value == Set<Word>, Word: RawRepresentable<String> & CaseIterable & Hashable & Sendable {
        let words = Word.allCases.map(\.rawValue)
        let one: JSONValue = ["type": "string", "enum": .array(words.map(JSONValue.string))]
        let schema = Schema.keywords("array", ("items", one), ("minItems", 1), ("uniqueItems", true))
        return InputType(schema) { (json: JSONValue) throws(BrokenRule) in
            let rule = "expected one or more of \(words.joined(separator: ", ")), with commas between them"
            guard case .array(let values) = json, !values.isEmpty else { throw BrokenRule(rule) }
            // The whole list as given: an empty value is visible only between its commas.
            let all = values.map(\.shown).joined(separator: ",")
            var chosen: Set<Word> = []
            for value in values {
                guard case .string(let text) = value, let word = Word(rawValue: text) else {
                    throw BrokenRule(rule, value: value.shown.isEmpty ? all : value.shown)
                }
                guard chosen.insert(word).inserted else { throw BrokenRule("\(text) is given twice", value: all) }
            }
            return chosen
        }
    }

    /// Reads `null` as nil.
    package static func nullable<Wrapped: Sendable>(_ kind: InputType<Wrapped>) -> InputType where Value == Wrapped? {
        InputType(.nullable(kind.schema)) { (json: JSONValue) throws(BrokenRule) in
            if case .null = json { nil } else { try kind.read(json) }
        }
    }
}
