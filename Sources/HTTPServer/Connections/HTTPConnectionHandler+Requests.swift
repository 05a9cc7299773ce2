import HTTPTypes
import NIOCore
import NIOHTTP1
import Support

/// Checks a request's head before anything reads its body.
extension HTTPConnectionHandler {
    /// Whether the path is answered even if the server is full. It may have a query.
    static func isHealthCheck(_ path: String) -> Bool {
        ServerPath(rawValue: String(path.prefix { $0 != "?" && $0 != "#" }))?.isHealthCheck == true
    }

    /// The reason to refuse the request by its head alone, or nil. `goodHost`: the Host header of the last good request; a client goes on with it.
    package static func refusal(of head: HTTPRequestHead, _ refusal: HTTPPlaceTable.Refusal?, goodHost: inout String?) -> APIError? {
        if let refusal, !Self.isHealthCheck(head.uri) { return refusal.error }
        // RFC 9112 §3.2
        let hosts = head.headers["host"]
        switch hosts.count {
        case 0 where head.isOld: return nil
        case 0: return Self.badHost("An HTTP/1.1 request needs a Host header; this one has none.")
        case 1:
            if hosts[0] == goodHost { return nil }
            guard Self.isHost(hosts[0]) else { return Self.badHost("The Host header is not a host, with or without a port.") }
            goodHost = hosts[0]
            return nil
        default: return Self.badHost("A request must have exactly one Host header; this one has more.")
        }
    }

    /// RFC 9112 §3.2: host and port as in RFC 3986 §3.2, or nothing if the target has no authority.
    static func isHost(_ text: String) -> Bool {
        var rest = text.utf8[...]
        if rest.first == UInt8(ascii: "[") {
            guard let end = rest.firstIndex(of: UInt8(ascii: "]")), IPText.v6(String(text[..<end].dropFirst())) != nil else { return false }
            rest = rest[rest.index(after: end)...]
        } else {
            let name = rest.prefix { $0 != UInt8(ascii: ":") }
            guard PercentCoding.decode(name) != nil, name.allSatisfy(Self.isOfName) else { return false }
            rest = rest[name.endIndex...]
        }
        guard !rest.isEmpty else { return true }
        let port = rest.dropFirst()
        guard rest.first == UInt8(ascii: ":"), port.count <= 5, port.allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
        return port.isEmpty || UInt16(String(decoding: port, as: UTF8.self)) != nil
    }

    /// RFC 3986 §3.2.2: unreserved, sub-delims, and the percent sign of an encoded byte.
    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "-._~!$&'()*+,;=%".utf8.contains(byte)
        }
    }

    static func badHost(_ message: String) -> APIError {
        var error = APIError(.badRequest, .invalid, message)
        error.field = "Host"
        error.rule = "expected exactly one, host or host:port"
        return error
    }
}

extension HTTPRequestHead {
    /// Whether the request is HTTP/1.0 or older.
    var isOld: Bool { self.version.major < 1 || (self.version.major == 1 && self.version.minor == 0) }
}

/// Outbound event: the responder is about to read the request's body. A client that waits for 100 (Continue) gets it now.
package struct HTTPBodyWanted: Sendable {}

extension HTTPResponseHead {
    /// The head as bytes, for when NIO's encoder has been removed.
    var serialized: ByteBuffer {
        var text = "HTTP/1.1 \(self.status.code) \(self.status.reasonPhrase)\r\n"
        for (name, value) in self.headers { text += "\(name): \(value)\r\n" }
        return ByteBuffer(string: text + "\r\n")
    }
}
