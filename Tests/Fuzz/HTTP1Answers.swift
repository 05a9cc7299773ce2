import HTTPTypes
import Support

/// Answers of HTTP/1, read from the server's bytes as strictly as a client may. A plain value.
struct HTTP1Answers {
    struct Answer {
        var minorVersion: Int
        var status: Int
        /// Names in lower case.
        var fields: [(name: String, value: String)]
        var body: [UInt8]
        /// The body has all its bytes.
        var isWhole: Bool

        func values(_ name: String) -> [String] { self.fields.filter { $0.name == name }.map(\.value) }
        var saysClose: Bool { self.values("connection").contains { $0.lowercased() == "close" } }
        /// The number of the request that a responder answered; nil if the server answered by itself.
        var number: Int? { self.values("x-number").first.flatMap { Int($0) } }
    }

    /// Final answers, in order.
    private(set) var answers: [Answer] = []
    /// 100 (Continue).
    private(set) var continues = 0

    private static let ending: [UInt8] = [13, 10, 13, 10]

    /// Ends the process unless these are answers. The last one may lack its end.
    init(_ sent: [UInt8]) {
        var rest = sent[...]
        while !rest.isEmpty {
            let answer = Self.answer(&rest)
            if answer.status == 100 {
                expect(answer.fields.isEmpty && answer.minorVersion == 1, "100 (Continue) with \(answer.fields)")
                self.continues += 1
            } else {
                expect(answer.status >= 200, "the informational status \(answer.status)")
                self.answers.append(answer)
            }
        }
    }

    private static func answer(_ rest: inout ArraySlice<UInt8>) -> Answer {
        guard let end = rest.indices.first(where: { rest[$0...].starts(with: self.ending) }) else {
            fatalError("half a head: \(String(decoding: rest, as: UTF8.self))")
        }
        let lines = self.lines(rest[..<end])
        rest = rest[(end + 4)...]
        let words = lines[0].split(separator: " ", maxSplits: 2)
        guard words.count == 3, let version = ["HTTP/1.0", "HTTP/1.1"].firstIndex(of: words[0]), let status = Int(words[1]) else {
            fatalError("no status line: \(lines[0])")
        }
        let fields = lines.dropFirst().map(self.field)
        var answer = Answer(minorVersion: version, status: status, fields: fields, body: [], isWhole: true)
        let lengths = answer.values("content-length")
        let codings = answer.values("transfer-encoding")
        if status < 200 || status == 204 || status == 304 {
            expect(lengths.isEmpty && codings.isEmpty, "\(status) with a body")
        } else if !codings.isEmpty {
            expect(codings == ["chunked"] && lengths.isEmpty && version == 1, "HTTP/1.\(version) with the codings \(codings), \(lengths)")
            (answer.body, answer.isWhole) = self.chunks(&rest)
        } else if !lengths.isEmpty {
            guard lengths.count == 1, let length = Int(lengths[0]) else { fatalError("the lengths \(lengths)") }
            answer.body = Array(rest.prefix(length))
            answer.isWhole = answer.body.count == length
            rest = rest.dropFirst(length)
        } else {
            // Up to the end of the connection.
            expect(version == 0 && answer.saysClose, "HTTP/1.\(version) without a length")
            answer.body = Array(rest)
            rest = []
        }
        return answer
    }

    /// The lines of a head, each without control characters.
    private static func lines(_ head: ArraySlice<UInt8>) -> [String] {
        var lines: [[UInt8]] = [[]]
        var isAfterReturn = false
        for byte in head {
            if isAfterReturn {
                expect(byte == 10, "a return within a line")
                lines.append([])
            } else if byte != 13 {
                expect(byte == 9 || (byte >= 32 && byte != 127), "the control character \(byte) in a head")
                lines[lines.count - 1].append(byte)
            }
            isAfterReturn = byte == 13
        }
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func field(_ line: String) -> (name: String, value: String) {
        guard let colon = line.firstIndex(of: ":"), let name = HTTPField.Name(String(line[..<colon])) else {
            fatalError("no header field: \(line)")
        }
        return (name.canonicalName, String(line[line.index(after: colon)...].drop { $0 == " " }))
    }

    /// RFC 9112 section 7.1.
    private static func chunks(_ rest: inout ArraySlice<UInt8>) -> ([UInt8], isWhole: Bool) {
        var body: [UInt8] = []
        while let end = rest.firstIndex(of: 13) {
            guard let size = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16) else { fatalError("no chunk's size") }
            rest = rest[end...].dropFirst(2)
            guard rest.count >= size + 2 else {
                body += rest.prefix(size)
                rest = []
                return (body, false)
            }
            body += rest.prefix(size)
            rest = rest.dropFirst(size)
            expect(rest.starts(with: [13, 10]), "a chunk of another size")
            rest = rest.dropFirst(2)
            if size == 0 { return (body, true) }
        }
        return (body, false)
    }
}

/// Answers that the server gives by itself, to requests that do not reach the router.
enum HTTPRefusals {
    private static let names: Set<String> = [
        "content-type", "content-length", "cache-control", "x-request-id", "connection", "server", "retry-after",
    ]
    private static let messages: [Int: [String]] = [
        400: [
            "This is not an HTTP/1.1 request.", "This is not an HTTP request.",
            "An HTTP/1.1 request needs a Host header; this one has none.",
            "The Host header is not a host, with or without a port.", "A request must have exactly one Host header; this one has more.",
            "The :authority is not a host, with or without a port.", "The :path is not a path.",
        ],
        408: ["The request's body came too slowly (limits.httpBody)."],
        431: ["The request's head is too large."],
        501: ["CONNECT is not served; open WebSockets over HTTP/1.1."],
        503: [
            "The server has too many HTTP connections (limits.httpConnections).",
            "This address has too many HTTP connections (limits.httpPerAddress).",
            "This address has too much unread or unfinished here (limits.memory).",
        ],
    ]

    /// Ends the process unless this is one, with nothing of the request in it. `fields` has names in lower case.
    static func check(_ status: Int, _ fields: [(name: String, value: String)], _ body: [UInt8]) {
        let strange = fields.filter { !Self.names.contains($0.name) }
        expect(strange.isEmpty, "\(status) with \(strange)")
        expect(Set(fields.map(\.name)).count == fields.count, "\(status) with a header twice: \(fields)")
        guard let value = try? JSONParser.parse(body, deepest: 8), case .object(let members) = value else {
            fatalError("\(status) with \(String(decoding: body, as: UTF8.self))")
        }
        var texts: [String: JSONValue] = [:]
        for member in members { texts[member.name] = member.value }
        expect(texts["code"] == .integer(Int64(status)), "\(status) says \(value.text)")
        guard case .string(let message) = texts["message"], case .string(let id) = texts["requestId"] else {
            fatalError("\(status) says \(value.text)")
        }
        expect(Self.messages[status]?.contains(message) == true, "\(status) says: \(message)")
        expect(fields.contains { $0.name == "x-request-id" && $0.value == id }, "\(status) with another id than \(id)")
    }
}
