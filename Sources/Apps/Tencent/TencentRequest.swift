import Support

/// A request of the cloud API as it arrived, in one of four forms. A value.
///
/// | form | action | parameters |
/// |---|---|---|
/// | TC3 POST | header `X-TC-Action` | a JSON object in the body |
/// | TC3 GET | header `X-TC-Action` | the query, flattened: `SourceUrls.0=…` |
/// | v1 POST | parameter `Action` | a form in the body, flattened, with the common parameters |
/// | v1 GET | parameter `Action` | the query, likewise |
package struct TencentRequest: Sendable {
    package enum Method: String, Sendable { case get = "GET", post = "POST" }

    package let method: Method
    /// The Host header with its port, unchanged, because it is signed.
    package let host: String
    /// The query as sent, without "?"; empty when there is none.
    package let query: String
    /// The fields in their order, without Host. Names are in lower case.
    package let headers: [(name: String, value: String)]
    package let body: [UInt8]

    /// Bytes of a body, at most.
    package static let longestBody = 1 << 20
    /// Parameters of a request, at most.
    static let mostParameters = 200

    package init(method: Method, host: String, query: String, headers: [(name: String, value: String)], body: [UInt8]) {
        self.method = method
        self.host = host
        self.query = query
        self.headers = headers
        self.body = body
    }

    /// Whether a request to `/` is for this API. Every form is: nothing else that this server answers at `/` takes one.
    package static func claims(method: String, query: String?, headers: (String) -> String?) -> Bool {
        if headers("x-tc-action") != nil { return true }
        guard let method = Method(rawValue: method) else { return false }
        if query?.split(separator: "&").contains(where: { $0.hasPrefix("Action=") }) == true { return true }
        return method == .post && headers("content-type")?.lowercased().hasPrefix(TencentForm.type) == true
    }

    /// The header's value without the blanks around it; nil when it is absent. Throws when it occurs twice.
    func header(_ name: String) throws(TencentError) -> String? {
        let found = self.headers.filter { $0.name == name }
        guard found.count <= 1 else { throw TencentError(.invalidAuthorization, "The header \(name) is there \(found.count) times.") }
        return found.first.map { TencentForm.trimmed($0.value) }
    }
}

/// Forms and queries (`a=1&b=2`, a blank as `+`), as HTML 4 and the vendor's SDKs write them. Pure.
enum TencentForm {
    static let type = "application/x-www-form-urlencoded"

    /// The decoded pairs, in their order. Throws for encoding that is malformed or not UTF-8, and for a repeated name.
    static func pairs(_ text: some StringProtocol) throws(TencentError) -> [(name: String, value: String)] {
        var pairs: [(name: String, value: String)] = []
        var seen: Set<String> = []
        for part in text.utf8.split(separator: UInt8(ascii: "&")) {
            let mark = part.firstIndex(of: UInt8(ascii: "="))
            guard let name = self.decoded(part[..<(mark ?? part.endIndex)]),
                let value = self.decoded(mark.map { part[part.index(after: $0)...] } ?? part[part.endIndex...])
            else { throw TencentError(.invalid, "The parameters are not percent-encoded UTF-8.") }
            guard seen.insert(name).inserted else { throw TencentError(.invalid, "The parameter \(name.prefix(60)) is there twice.") }
            guard pairs.count < TencentRequest.mostParameters else {
                throw TencentError(.invalid, "There are more than \(TencentRequest.mostParameters) parameters.")
            }
            pairs.append((name, value))
        }
        return pairs
    }

    private static func decoded(_ part: some Collection<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var rest = part[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(self.digit), let low = rest.popFirst().flatMap(self.digit) else { return nil }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? { Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) } }

    static func trimmed(_ text: String) -> String {
        let blanks: Set<Character> = [" ", "\t"]
        guard let first = text.firstIndex(where: { !blanks.contains($0) }), let last = text.lastIndex(where: { !blanks.contains($0) })
        else { return "" }
        return String(text[first...last])
    }
}

/// An action's parameters, read one by one by their type. Numbers may be text, as in flattened forms. A value.
package struct TencentFields {
    private var rest: [(name: String, value: JSONValue)]

    /// The parameters common to all v1 requests, which belong to no action.
    private static let common: Set<String> = [
        "Action", "Version", "Timestamp", "Nonce", "SecretId", "SignatureMethod", "Signature", "RequestClient", "Language", "Region",
        "Token",
    ]

    init(_ members: [JSONValue.Member]) { self.rest = members.map { ($0.name, $0.value) } }

    init(form pairs: [(name: String, value: String)]) {
        self.rest = pairs.filter { !Self.common.contains($0.name) }.map { ($0.name, .string($0.value)) }
    }

    private mutating func remove(_ name: String) -> JSONValue? {
        guard let index = self.rest.firstIndex(where: { $0.name == name }) else { return nil }
        let value = self.rest.remove(at: index).value
        // Not `nil`, which here would be the JSON value null.
        return value == .null ? Optional.none : .some(value)
    }

    /// Nil when it is absent or empty.
    mutating func text(_ name: String, atMost bytes: Int = 1_024) throws(TencentError) -> String? {
        guard let value = self.remove(name) else { return nil }
        guard case .string(let text) = value else { throw TencentError(.invalid, "\(name) is \(value.kind); expected text.") }
        guard text.utf8.count <= bytes else {
            throw TencentError(.invalidValue, "\(name) has \(text.utf8.count) bytes; expected at most \(bytes).")
        }
        return text.isEmpty ? nil : text
    }

    /// The same for the name of an app or a stream.
    mutating func name(_ name: String) throws(TencentError) -> String? {
        guard let text = try self.text(name) else { return nil }
        if let problem = NameForm.problem(text) { throw TencentError(.invalidValue, "\(name) \(problem).") }
        return text
    }

    mutating func needed(_ name: String) throws(TencentError) -> String {
        guard let text = try self.text(name) else { throw TencentError(.missing, "\(name) is missing.") }
        return text
    }

    mutating func number(_ name: String, _ range: ClosedRange<Int64>, fallback: Int64) throws(TencentError) -> Int64 {
        guard let value = self.remove(name) else { return fallback }
        let number: Int64?
        switch value {
        case .integer(let found): number = found
        case .string(let text): number = text.utf8.first == UInt8(ascii: "+") ? nil : Int64(text)
        default: number = nil
        }
        guard let number else { throw TencentError(.invalid, "\(name) is \(value.kind); expected a whole number.") }
        guard range.contains(number) else {
            throw TencentError(.invalidValue, "\(name) is \(number); expected \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    /// A time as `2026-11-21T04:00:00Z`, in milliseconds since 1970.
    mutating func time(_ name: String) throws(TencentError) -> Int64? {
        guard let text = try self.text(name, atMost: 40) else { return nil }
        guard let ms = Instant.ms(text) else {
            throw TencentError(.invalidValue, "\(name) is \(text); expected UTC time as 2026-11-21T04:00:00Z.")
        }
        return ms
    }

    mutating func neededTime(_ name: String) throws(TencentError) -> Int64 {
        guard let ms = try self.time(name) else { throw TencentError(.missing, "\(name) is missing.") }
        return ms
    }

    /// Throws for a parameter that the action does not have.
    func finish() throws(TencentError) {
        guard let other = self.rest.first else { return }
        throw TencentError(.unknown, "This action has no parameter \(other.name.prefix(60)).")
    }
}
