import HTTPTypes

/// Matches requests with calls. A value, made once.
struct APITable: Sendable {
    let routes: [APIRoute]
    /// Routes by number of parts.
    private let byLength: [Int: [APIRoute]]

    init(_ routes: [APIRoute]) {
        self.routes = routes
        self.byLength = Dictionary(grouping: routes) { $0.parts.count }
    }

    enum Match: Sendable {
        case route(APIRoute, path: [JSONValue.Member])
        case noSuchPath
        /// The path exists, with these methods.
        case noSuchMethod([HTTPRequest.Method])
        /// A part that is not percent-encoded UTF-8.
        case badEncoding
    }

    /// `path` is what follows `/api/v1`, still percent-encoded: an encoded slash belongs to its part.
    func match(_ method: HTTPRequest.Method, _ path: Substring) -> Match {
        guard path.first == "/" else { return .noSuchPath }
        var parts: [String] = []
        for part in path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let decoded = PercentCoding.decode(part.utf8) else { return .badEncoding }
            parts.append(decoded)
        }
        let candidates = (self.byLength[parts.count] ?? []).filter { Self.fits($0, parts) }
        // "/streams/{app}/{name}" and "/rooms/{roomId}/close" have no common paths. Should two overlap, more literal parts win.
        let literals = candidates.map { route in route.parts.count { if case .literal = $0 { true } else { false } } }
        let most = literals.max() ?? 0
        let best = zip(candidates, literals).filter { $0.1 == most }.map(\.0)
        guard !best.isEmpty else { return .noSuchPath }
        // RFC 9110 §9.3.2: HEAD is GET without the content.
        let wanted: HTTPRequest.Method = method == .head ? .get : method
        guard let route = best.first(where: { $0.method == wanted }) else { return .noSuchMethod(best.map(\.method)) }
        let values = zip(route.parts, parts).compactMap { part, text -> JSONValue.Member? in
            guard case .parameter(let name) = part else { return nil }
            return JSONValue.Member(name: name, value: .string(text))
        }
        return .route(route, path: values)
    }

    /// Adds HEAD after GET.
    static func withHead(_ methods: [HTTPRequest.Method]) -> [HTTPRequest.Method] {
        methods.flatMap { $0 == .get ? [.get, .head] : [$0] }
    }

    private static func fits(_ route: APIRoute, _ parts: [String]) -> Bool {
        zip(route.parts, parts).allSatisfy { part, text in
            switch part {
            case .literal(let literal): literal == text
            case .parameter: !text.isEmpty
            }
        }
    }
}

/// Percent-encoding (RFC 3986 §2.1).
enum PercentCoding {
    /// Returns nil for malformed encoding or invalid UTF-8.
    static func decode(_ text: some Sequence<UInt8>, plusIsSpace: Bool = false) -> String? {
        var bytes: [UInt8] = []
        var iterator = text.makeIterator()
        while let byte = iterator.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = iterator.next().flatMap(Self.digit), let low = iterator.next().flatMap(Self.digit) else { return nil }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(0x20)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? { Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init) }

    /// Encodes everything but ASCII letters, digits and `-._~`.
    static func encode(_ text: String) -> String {
        let hex = Array("0123456789ABCDEF")
        return text.utf8.reduce(into: "") { result, byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.append(Character(Unicode.Scalar(byte)))
            default:
                result += "%"
                result.append(hex[Int(byte >> 4)])
                result.append(hex[Int(byte & 15)])
            }
        }
    }
}
