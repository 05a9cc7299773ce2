/// Frames of HTTP/2 (RFC 9113 section 4.1). A plain value.
struct HTTP2Frame: Equatable {
    enum Kind {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let priority: UInt8 = 2
        static let reset: UInt8 = 3
        static let settings: UInt8 = 4
        static let ping: UInt8 = 6
        static let goAway: UInt8 = 7
        static let windowUpdate: UInt8 = 8
        static let continuation: UInt8 = 9
    }

    var kind: UInt8
    var flags: UInt8
    var stream: Int
    var payload: [UInt8]

    /// END_STREAM, and ACK of other frames.
    var isLast: Bool { self.flags & 1 != 0 }
    var endsHeaders: Bool { self.flags & 4 != 0 }

    var bytes: [UInt8] {
        let length = self.payload.count
        return [UInt8(length >> 16 & 255), UInt8(length >> 8 & 255), UInt8(length & 255), self.kind, self.flags]
            + Self.word(self.stream) + self.payload
    }

    static func word(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    static func number(_ bytes: some Collection<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    /// RFC 9113 section 3.4.
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// Reads whole frames; returns the bytes behind the last one, too.
    static func read(_ bytes: ArraySlice<UInt8>) -> (frames: [HTTP2Frame], rest: ArraySlice<UInt8>) {
        var rest = bytes
        var frames: [HTTP2Frame] = []
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            let length = self.number(head[..<3])
            guard rest.count >= 9 + length else { break }
            let payload = Array(rest.dropFirst(9).prefix(length))
            frames.append(HTTP2Frame(kind: head[3], flags: head[4], stream: self.number(head[5...]) & 0x7FFF_FFFF, payload: payload))
            rest = rest.dropFirst(9 + length)
        }
        return (frames, rest)
    }
}

/// The answers that a client's bytes allow the server, as far as the bytes are frames. A plain value.
struct HTTP2Client {
    /// Bytes that the windows of the connection and of a stream let through, at most.
    private(set) var connectionWindow = 65_535
    private var streamWindows: [Int: Int] = [:]
    private var initialWindow = 0
    /// The least initial window that was ever set.
    private(set) var leastWindow = 65_535
    /// Streams that the client has reset.
    private(set) var resets: Set<Int> = []
    private(set) var tableBytes = 4_096
    private(set) var frameBytes = 16_384

    init(_ bytes: [UInt8]) {
        guard bytes.starts(with: HTTP2Frame.preface) else { return }
        let frames = HTTP2Frame.read(bytes.dropFirst(HTTP2Frame.preface.count)).frames
        if let first = frames.first, first.kind != HTTP2Frame.Kind.settings || !Self.settings(first).contains(where: { $0.id == 4 }) {
            self.initialWindow = 65_535
        }
        for frame in frames {
            switch frame.kind {
            case HTTP2Frame.Kind.reset: self.resets.insert(frame.stream)
            case HTTP2Frame.Kind.windowUpdate where frame.payload.count != 4: break
            case HTTP2Frame.Kind.windowUpdate where frame.stream == 0: self.connectionWindow += HTTP2Frame.number(frame.payload)
            case HTTP2Frame.Kind.windowUpdate: self.streamWindows[frame.stream, default: 0] += HTTP2Frame.number(frame.payload)
            case HTTP2Frame.Kind.settings: self.set(frame)
            default: break
            }
        }
    }

    func window(of stream: Int) -> Int { self.initialWindow + self.streamWindows[stream, default: 0] }

    private mutating func set(_ frame: HTTP2Frame) {
        for (id, value) in Self.settings(frame) {
            switch id {
            case 1: self.tableBytes = max(self.tableBytes, value)
            case 4:
                self.initialWindow = max(self.initialWindow, value)
                self.leastWindow = min(self.leastWindow, value)
            case 5: self.frameBytes = max(self.frameBytes, value)
            default: break
            }
        }
    }

    static func settings(_ frame: HTTP2Frame) -> [(id: Int, value: Int)] {
        stride(from: 0, to: frame.payload.count - 5, by: 6).map { start in
            (HTTP2Frame.number(frame.payload[start..<start + 2]), HTTP2Frame.number(frame.payload[(start + 2)..<(start + 6)]))
        }
    }
}

/// Frames made of an input, so that most are of a right form.
enum HTTP2Frames {
    static func bytes(_ input: inout FuzzInput, limit: Int) -> [UInt8] {
        var bytes = HTTP2Frame.preface
        // Most clients begin with SETTINGS; an input that wants to may begin otherwise.
        var last = HTTP2Frame(kind: HTTP2Frame.Kind.settings, flags: 0, stream: 0, payload: [])
        if input.byte() & 1 == 0 { bytes += last.bytes }
        while !input.isEmpty, bytes.count < limit {
            let kind = input.byte()
            guard kind & 0xF != 0xB else {
                // The last frame, on one stream after the other: a few times, or more often than any limit allows, which takes long.
                let count = input.byte()
                for _ in 0..<(count < 0xF0 ? Int(count & 7) : 220) where bytes.count < limit {
                    if last.stream > 0 { last.stream += 2 }
                    bytes += last.bytes
                }
                continue
            }
            last = self.frame(kind, &input)
            bytes += last.bytes
        }
        return bytes
    }

    private static func frame(_ choice: UInt8, _ input: inout FuzzInput) -> HTTP2Frame {
        let isRequest = choice & 0xF >= 0xD
        let kind = isRequest ? HTTP2Frame.Kind.headers : choice & 0xF
        let flags = input.byte()
        let stream = Int(input.byte())
        // END_HEADERS, so that most requests are whole.
        if isRequest { return HTTP2Frame(kind: kind, flags: 4 | (flags & 1), stream: stream | 1, payload: self.request(&input)) }
        let payload: [UInt8]
        switch kind {
        case _ where choice & 0x10 != 0: payload = input.pop(Int(input.byte()))
        case HTTP2Frame.Kind.headers where flags & 0x28 == 0: payload = self.fields(&input)
        case HTTP2Frame.Kind.continuation: payload = self.fields(&input)
        case HTTP2Frame.Kind.priority: payload = HTTP2Frame.word(Int(input.byte())) + [input.byte()]
        case HTTP2Frame.Kind.reset: payload = HTTP2Frame.word(Int(input.byte()))
        case HTTP2Frame.Kind.settings: payload = flags & 1 == 0 ? self.settings(&input) : []
        case HTTP2Frame.Kind.ping: payload = HTTP2Frame.word(Int(input.byte())) + HTTP2Frame.word(0)
        case HTTP2Frame.Kind.goAway: payload = HTTP2Frame.word(Int(input.byte())) + HTTP2Frame.word(Int(input.byte() & 0xF))
        case HTTP2Frame.Kind.windowUpdate: payload = HTTP2Frame.word(Int(input.byte()) << Int(input.byte() & 31))
        default: payload = input.pop(Int(input.byte()))
        }
        return HTTP2Frame(kind: kind, flags: flags, stream: stream, payload: payload)
    }

    private static func settings(_ input: inout FuzzInput) -> [UInt8] {
        (0..<Int(input.byte() & 3)).flatMap { _ in
            [0, input.byte() & 15] + HTTP2Frame.word(Int(input.byte()) << Int(input.byte() & 31))
        }
    }

    /// The four fields that a request needs, and more. RFC 7541 appendix A: GET, https, an authority, the path "/".
    private static func request(_ input: inout FuzzInput) -> [UInt8] {
        [0x82, 0x87] + self.literal(":authority", Array("h".utf8), isKept: false) + [0x84] + self.fields(&input)
    }

    private static func fields(_ input: inout FuzzInput) -> [UInt8] {
        (0..<Int(input.byte() & 31)).flatMap { _ -> [UInt8] in
            let choice = input.byte()
            guard choice & 0x40 == 0 else { return [0x80 | (input.byte() & 0x7F)] }
            let name = self.names[Int(choice & 0x1F) % self.names.count]
            return self.literal(name, self.value(&input), isKept: choice & 0x80 != 0)
        }
    }

    private static func value(_ input: inout FuzzInput) -> [UInt8] {
        let choice = input.byte()
        switch choice {
        case ..<0x70: return Array(self.values[Int(choice) % self.values.count].utf8)
        case ..<0x80: return [UInt8](repeating: UInt8(ascii: "x"), count: Int(choice & 0xF) * 150)
        default: return input.pop(Int(choice & 0x1F))
        }
    }

    private static let names = [
        ":method", ":scheme", ":authority", ":path", "content-length", "te", "x-forwarded-for", "expect", "host", "a", "cookie",
        "connection",
        "transfer-encoding", "upgrade", "A", "", ":status", ":protocol", "content-type", "trailer",
    ]
    private static let values = [
        "GET", "https", "h", "/", "3", "trailers", "10.0.0.1", "100-continue", "h:1", "POST", "CONNECT", "OPTIONS", "HEAD", "/healthz", "",
        "0", "a b", "/a?b=c", "chunked", "websocket", "close", "300", "a\r\nb: c", "http", "*", "[::1]:80",
    ]

    /// RFC 7541 sections 6.2.1 and 6.2.2, without Huffman codes. `isKept`: joins the dynamic table.
    private static func literal(_ name: String, _ value: [UInt8], isKept: Bool) -> [UInt8] {
        [isKept ? 0x40 : 0] + self.text(Array(name.utf8)) + self.text(value)
    }

    /// RFC 7541 section 5.2.
    private static func text(_ text: [UInt8]) -> [UInt8] {
        guard text.count >= 127 else { return [UInt8(text.count)] + text }
        var length: [UInt8] = [127]
        var rest = text.count - 127
        while rest >= 128 {
            length.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        return length + [UInt8(rest)] + text
    }

    /// A client that sends one request, with these fields and END_STREAM.
    static func client(_ fields: [(name: String, value: String)], body: String? = nil) -> [UInt8] {
        let block = fields.flatMap { self.literal($0.name, Array($0.value.utf8), isKept: false) }
        var frames = [
            HTTP2Frame(kind: HTTP2Frame.Kind.settings, flags: 0, stream: 0, payload: []),
            HTTP2Frame(kind: HTTP2Frame.Kind.headers, flags: body == nil ? 5 : 4, stream: 1, payload: block),
        ]
        if let body { frames.append(HTTP2Frame(kind: HTTP2Frame.Kind.data, flags: 1, stream: 1, payload: Array(body.utf8))) }
        return HTTP2Frame.preface + frames.flatMap(\.bytes)
    }
}
