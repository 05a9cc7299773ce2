import NIOCore
import NIOEmbedded

@testable import HTTPServer

extension FuzzTarget {
    /// A client of the HTTPS port that chose HTTP/2: its bytes, or frames made of them, behind the preface. Cuts make no difference to the
    /// requests; no more of them are open than announced; the answers are whole frames.
    static let http2 = FuzzTarget("http2", maxLength: 4_096) { input in
        var input = input
        let options = input.byte()
        let cuts = Cuts(input.byte())
        let bytes = options & 2 == 0 ? HTTP2Frames.preface + HTTP2Frames.frames(&input) : input.rest
        let whole = HTTP2Run(bytes, .none, answersEarly: options & 1 == 1)
        let pieces = HTTP2Run(bytes, cuts, answersEarly: options & 1 == 1)
        expect(whole.heads == pieces.heads, "cuts show: \(pieces.heads), at once \(whole.heads)")
        expect(whole.isOpen == pieces.isOpen, "cuts show: \(pieces.isOpen ? "open" : "closed")")
        for request in whole.heads {
            expect(HTTPConnectionHandler.isHost(request.authority), "a request to the host \(request.authority)")
        }
        expect(whole.mostStreams <= HTTP2Limits.streams, "\(whole.mostStreams) streams at a time")
    }
}

/// Frames of RFC 9113 §4.1, made of an input.
private enum HTTP2Frames {
    /// RFC 9113 §3.4, and SETTINGS without any.
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
    private static let headers: UInt8 = 1
    private static let names = [
        ":method", ":scheme", ":authority", ":path", "content-length", "te", "x-forwarded-for", "expect", "host", "a",
    ]
    private static let values = [
        "GET", "https", "h", "/", "3", "trailers", "10.0.0.1", "100-continue", "h:1", "POST", "CONNECT", "OPTIONS",
    ]

    /// The input's first byte of each frame chooses its kind; a kind that there is not makes a frame of the bytes as they are.
    static func frames(_ input: inout FuzzInput) -> [UInt8] {
        var bytes: [UInt8] = []
        while !input.isEmpty {
            let kind = input.byte()
            let flags = input.byte()
            let stream = input.byte()
            let payload: [UInt8]
            switch kind & 0xF {
            case 0xD, 0xE, 0xF: payload = self.request(&input)
            case self.headers where flags & 0x28 == 0: payload = self.fields(&input)
            default: payload = input.take(Int(input.byte()))
            }
            let type = kind & 0xF >= 0xD ? self.headers : kind & 0xF
            // END_HEADERS, so that most requests are whole.
            let ends: UInt8 = kind & 0xF >= 0xD ? 4 | (flags & 1) : flags
            bytes += [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), type, ends, 0, 0, 0, stream] + payload
        }
        return bytes
    }

    /// The four fields that a request needs, and more.
    private static func request(_ input: inout FuzzInput) -> [UInt8] {
        // RFC 7541 appendix A: GET, https, an authority, the path "/".
        [0x82, 0x87] + self.literal(":authority", "h") + [0x84] + self.fields(&input)
    }

    private static func fields(_ input: inout FuzzInput) -> [UInt8] {
        (0..<Int(input.byte() & 7)).flatMap { _ in
            let (name, value) = (Int(input.byte()), Int(input.byte()))
            return self.literal(self.names[name % self.names.count], self.values[value % self.values.count])
        }
    }

    /// RFC 7541 §6.2.2, without Huffman codes.
    private static func literal(_ name: String, _ value: String) -> [UInt8] {
        [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
    }
}

private struct HTTP2Run {
    /// The requests that reached the responder. Their bodies come in as many parts as the network made of them, also of one that fails.
    var heads: [HTTPResponder.Request] = []
    var mostStreams = 0
    var isOpen = false

    init(_ bytes: [UInt8], _ cuts: Cuts, answersEarly: Bool) {
        let loop = EmbeddedEventLoop()
        let channel = EmbeddedChannel(loop: loop)
        channel.remoteAddress = FuzzHTTP.proxy
        var responders: [HTTPResponder] = []
        var streams = 0
        var most = 0
        do {
            let shared = FuzzHTTP.shared(on: loop)
            try HTTPSServerChannel.addHTTP2(to: channel, since: 0, shared.admit(channel), shared) { stream in
                let responder = HTTPResponder(answersEarly: answersEarly)
                responders.append(responder)
                try stream.pipeline.syncOperations.addHandler(responder)
                streams += 1
                most = max(most, streams)
                stream.closeFuture.assumeIsolated().whenComplete { _ in streams -= 1 }
            }
        } catch {
            fatalError("\(error)")
        }
        channel.pipeline.fireChannelActive()
        for piece in cuts.pieces(of: bytes) where channel.isActive {
            _ = try? channel.writeInbound(piece)
            loop.run()
        }
        self.isOpen = channel.isActive
        self.mostStreams = most
        self.heads = responders.flatMap(\.requests).map { request in
            var head = request
            head.bodyBytes = nil
            return head
        }
        var sent: [UInt8] = []
        while let buffer = try? channel.readOutbound(as: ByteBuffer.self) { sent += buffer.readableBytesView }
        Self.check(sent)
        _ = try? channel.finish(acceptAlreadyClosed: true)
        loop.run()
        expect(streams == 0, "\(streams) streams outlive their connection")
    }

    /// Ends the process unless these are whole frames.
    private static func check(_ sent: [UInt8]) {
        var rest = sent[...]
        while !rest.isEmpty {
            guard rest.count >= 9 else { fatalError("half a frame's head") }
            let head = Array(rest.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            expect(head[3] <= 9, "a frame of type \(head[3])")
            expect(rest.count >= 9 + length, "half a frame")
            rest = rest.dropFirst(9 + length)
        }
    }
}
