import NIOCore
import NIOHPACK

@testable import HTTPServer

/// Answers of HTTP/2, read from the server's bytes as strictly as a client may. A plain value.
struct HTTP2Answers {
    struct Answer {
        /// Nil until the final head.
        var status: Int?
        var continues = 0
        var fields: [(name: String, value: String)] = []
        var body: [UInt8] = []
        var hasEnded = false
        var wasReset = false

        func values(_ name: String) -> [String] { self.fields.filter { $0.name == name }.map(\.value) }
        var number: Int? { self.values("x-number").first.flatMap { Int($0) } }
    }

    private(set) var answers: [Int: Answer] = [:]
    /// Error codes, in order.
    private(set) var goAways: [Int] = []
    private(set) var pingsAnswered = 0
    private(set) var settingsAnswered = 0
    private var lastAllowed = Int.max
    private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
    private let client: HTTP2Client

    private static let connectionFields = ["connection", "transfer-encoding", "upgrade", "keep-alive", "proxy-connection"]

    private static let repeatedFields = [":status", "cache-control", "content-type", "server"]

    /// Ends the process unless these are frames that a server may send to this client. `isOpen`: the connection has not ended.
    init(_ sent: [UInt8], to client: HTTP2Client) {
        self.client = client
        self.decoder.maxDynamicTableLength = client.tableBytes
        let (frames, rest) = HTTP2Frame.read(sent[...])
        expect(rest.isEmpty, "half a frame")
        guard let first = frames.first else { return }
        expect(first.kind == HTTP2Frame.Kind.settings && !first.isLast, "begins with \(first)")
        expect(HTTP2Client.settings(first).contains { $0 == (3, HTTP2Limits.streams) }, "announces \(first.payload)")
        var block: HTTP2Frame?
        for frame in frames {
            expect(frame.payload.count <= client.frameBytes, "a frame of \(frame.payload.count) bytes")
            if let begun = block {
                expect(frame.kind == HTTP2Frame.Kind.continuation && frame.stream == begun.stream, "\(frame) in a head")
            }
            switch frame.kind {
            case HTTP2Frame.Kind.headers:
                expect(frame.flags & ~5 == 0, "HEADERS with the flags \(frame.flags)")
                block = frame
            case HTTP2Frame.Kind.continuation:
                expect(block != nil, "CONTINUATION without HEADERS")
                block?.payload += frame.payload
                block?.flags |= frame.flags & 4
            default: self.read(frame)
            }
            if let whole = block, whole.endsHeaders {
                block = nil
                self.head(whole)
            }
        }
        expect(block == nil, "half a head")
        let total = self.answers.values.reduce(0) { $0 + $1.body.count }
        expect(total <= client.connectionWindow, "\(total) bytes, the window is \(client.connectionWindow)")
        for (stream, answer) in self.answers {
            expect(answer.body.count <= client.window(of: stream), "\(answer.body.count) bytes, the window is \(client.window(of: stream))")
        }
    }

    private mutating func read(_ frame: HTTP2Frame) {
        switch frame.kind {
        case HTTP2Frame.Kind.data:
            expect(frame.flags & ~1 == 0, "DATA with the flags \(frame.flags)")
            let answer = self.open(frame.stream)
            expect(answer.status != nil, "DATA before a head")
            self.answers[frame.stream]?.body += frame.payload
            self.answers[frame.stream]?.hasEnded = frame.isLast
        case HTTP2Frame.Kind.reset:
            expect(frame.stream > 0 && frame.payload.count == 4, "\(frame)")
            self.answers[frame.stream, default: Answer()].wasReset = true
        case HTTP2Frame.Kind.settings:
            expect(frame.stream == 0 && (!frame.isLast || frame.payload.isEmpty), "\(frame)")
            if frame.isLast { self.settingsAnswered += 1 }
        case HTTP2Frame.Kind.ping:
            expect(frame.stream == 0 && frame.payload.count == 8, "\(frame)")
            if frame.isLast { self.pingsAnswered += 1 }
        case HTTP2Frame.Kind.goAway:
            expect(frame.stream == 0 && frame.payload.count >= 8, "\(frame)")
            let last = HTTP2Frame.number(frame.payload[..<4])
            expect(last <= self.lastAllowed, "GOAWAY allows \(last) after \(self.lastAllowed)")
            self.lastAllowed = last
            self.goAways.append(HTTP2Frame.number(frame.payload[4..<8]))
        case HTTP2Frame.Kind.windowUpdate:
            expect(frame.payload.count == 4 && HTTP2Frame.number(frame.payload) > 0, "\(frame)")
        default: fatalError("a server does not send \(frame)")
        }
    }

    /// The answer on a stream that may get more.
    private func open(_ stream: Int) -> Answer {
        let answer = self.answers[stream] ?? Answer()
        expect(stream & 1 == 1, "an answer on stream \(stream)")
        expect(!answer.hasEnded && !answer.wasReset, "more behind the answer on stream \(stream)")
        return answer
    }

    private mutating func head(_ frame: HTTP2Frame) {
        var answer = self.open(frame.stream)
        expect(answer.status == nil, "trailers")
        var bytes = ByteBuffer(bytes: frame.payload)
        guard let fields = try? self.decoder.decodeHeaders(from: &bytes), bytes.readableBytes == 0 else {
            fatalError("a head that is not HPACK: \(frame.payload)")
        }
        // A client may allow any table; values without number must not fill it.
        let kept = fields.filter { $0.indexable == .indexable && !Self.repeatedFields.contains($0.name) }
        expect(kept.isEmpty, "\(kept) join the table")
        let texts = fields.map { (name: $0.name, value: $0.value) }
        guard let first = texts.first, first.name == ":status", let status = Int(first.value) else { fatalError("no status: \(texts)") }
        for (name, value) in texts.dropFirst() {
            expect(!name.isEmpty && name.utf8.allSatisfy { $0 > 32 && $0 < 127 && !(65...90).contains($0) && $0 != 58 }, "the name \(name)")
            expect(value.utf8.allSatisfy { $0 == 9 || ($0 >= 32 && $0 != 127) }, "control characters in \(name): \(value)")
            expect(!Self.connectionFields.contains(name), "\(name) in HTTP/2")
        }
        if status < 200 {
            expect(status == 100 && !frame.isLast && texts.count == 1, "\(texts)")
            answer.continues += 1
        } else {
            answer.status = status
            answer.fields = Array(texts.dropFirst())
            answer.hasEnded = frame.isLast
        }
        self.answers[frame.stream] = answer
    }
}
