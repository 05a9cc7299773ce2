import HTTPTypes
import Rooms
import Support

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
        /// A part of the path is not percent-encoded UTF-8.
        case badEncoding
    }

    /// `path` is the part after `/api/v1`, still percent-encoded: an encoded slash belongs to its part.
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
