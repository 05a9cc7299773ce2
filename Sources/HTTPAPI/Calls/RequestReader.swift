import HTTPServer
import HTTPTypes
import NIOCore
import Rooms
import Support

/// Reads a request's query and body, strictly.
enum RequestReader {
    /// The query's parameters, decoded into the types that their inputs expect.
    static func query(_ query: String?, _ form: Form) throws(APIError) -> InputValues {
        var members: [JSONValue.Member] = []
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentCoding.decode(parts[0].utf8, plusIsSpace: true),
                let value = PercentCoding.decode(parts.count > 1 ? parts[1].utf8 : Substring().utf8, plusIsSpace: true)
            else { throw APIError(FieldError("query", String(pair), "expected percent-encoded UTF-8")) }
            guard !members.contains(where: { $0.name == name }) else { throw APIError(FieldError(name, value, "is given twice")) }
            members.append(.init(name: name, value: Self.value(value, form.input(name)?.schema)))
        }
        do { return try form.read(members, what: "query parameter") } catch { throw APIError(error) }
    }

    /// Converts text to the number, boolean or list of its schema. Text that is none of these stays a string.
    static func value(_ text: String, _ schema: Schema?) -> JSONValue {
        switch schema?.type {
        case "integer"?, "number"?, "boolean"?:
            // JSON may have space around a value; a parameter may not.
            guard !text.utf8.contains(where: { $0 <= 0x20 }), let value = try? JSONParser.parse(text.utf8) else { return .string(text) }
            return value
        case "array"?: return .array(text.split(separator: ",", omittingEmptySubsequences: false).map { .string(String($0)) })
        default: return .string(text)
        }
    }

    /// The path's parameters, decoded into the types that their inputs expect.
    static func path(_ members: [JSONValue.Member], _ form: Form) throws(APIError) -> InputValues {
        let typed = members.map { member -> JSONValue.Member in
            return .init(name: member.name, value: Self.value(member.value.shown, form.input(member.name)?.schema))
        }
        do { return try form.read(typed, what: "part of the path") } catch { throw APIError(error) }
    }

    /// The body's members. An absent body is an empty object where nothing is required.
    static func body(_ bytes: ByteBuffer, _ headers: HTTPFields, _ form: Form) throws(APIError) -> InputValues {
        if bytes.readableBytes == 0 {
            if form.isOptional { return InputValues() }
            let names = form.inputs.filter(\.isRequired).map(\.name).joined(separator: ", ")
            throw APIError(FieldError("body", "", "expected a JSON object with \(names)"))
        }
        try Self.checkType(headers)
        let json: JSONValue
        do {
            json = try JSONParser.parse(bytes.readableBytesView)
        } catch {
            throw APIError(FieldError("body", "", "is not JSON: \(error)"))
        }
        guard case .object(let members) = json else { throw APIError(FieldError("body", json.shown, "expected a JSON object")) }
        do { return try form.read(members, what: "field") } catch { throw APIError(error) }
    }

    private static func checkType(_ headers: HTTPFields) throws(APIError) {
        let type = headers[.contentType] ?? ""
        let parts = type.lowercased().split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" && $0 != "\"" } }
        let isJSON = parts.first == "application/json" && parts.dropFirst().allSatisfy { $0.isEmpty || $0 == "charset=utf-8" }
        guard isJSON else {
            var error = APIError(.unsupportedMediaType, .invalid, "The body must be JSON: Content-Type: application/json.")
            error.field = "Content-Type"
            error.value = String(type.prefix(80))
            error.rule = "expected application/json"
            throw error
        }
    }
}
