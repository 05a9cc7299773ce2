import NIOCore
import NIOEmbedded
import NIOHTTP2
import Support

@testable import HTTPServer

extension FuzzTarget {
    /// A client of the HTTPS port that chose HTTP/2: its bytes, or frames made of them. Each answer belongs to a request and is whole; no
    /// more is open or answered than the limits allow; a client that breaks the protocol is disconnected; all ends in time.
    static let http2 = FuzzTarget("http2", maxLength: 4_096, timeoutSeconds: 60) { input in
        _ = isChecked
        var input = input
        let options = input.byte()
        let seed = input.byte()
        let plan = HTTP2Plan(options)
        let bytes = options & 2 == 0 ? HTTP2Frames.bytes(&input, limit: Cuts.limit(seed, 8 << 10)) : input.rest
        let server = FuzzHTTPServer()
        let run = HTTP2Run(bytes, Cuts(seed), plan, on: server)
        run.check()
        if seed > 0 {
            let whole = HTTP2Run(bytes, .none, plan, on: server)
            whole.check()
            // The streams let through depend on which are open at a time. The request on each does not.
            for (stream, head) in whole.heads {
                guard let other = run.heads[stream] else { continue }
                expect(head == other, "cuts show on stream \(stream): \(other), at once \(head)")
            }
        }
        HTTP2Run.probe(server)
    }

    /// A request that is well-formed reaches the responder, or nothing is tested here; others get their status.
    private static let isChecked: Void = {
        let server = FuzzHTTPServer()
        HTTP2Run.probe(server)
        HTTP2Run.checkRefusals(server)
    }()
}

/// How an input's connection goes on.
struct HTTP2Plan {
    var habits = HTTPResponder.Habits()
    /// The server shuts down behind the last byte.
    var quiesces = false
    /// The client ends its side behind the last byte.
    var closesInput = false
    /// The client reads nothing until its last byte is sent.
    var isDeaf = false

    init(_ options: UInt8) {
        self.habits.answersEarly = options & 1 != 0
        self.habits.waits = options & 4 != 0
        self.habits.pauses = options & 8 != 0
        // More than a frame's; a few of them are more than a connection's window.
        self.habits.bodyBytes = options & 64 != 0 ? 20_000 : 4
        self.quiesces = options & 16 != 0
        self.isDeaf = options & 32 != 0
        self.closesInput = options & 128 != 0
    }
}

/// One connection and what came of it.
private final class HTTP2Run {
    private struct Stream {
        let id: Int
        let responder: HTTPResponder
        let handler: HTTP2StreamHandler
    }

    private var streams: [Stream] = []
    private var openStreams = 0
    private var answers: HTTP2Answers
    private let client: HTTP2Client
    private var isOpen = false

    /// The requests that have reached the responder, by their streams. Without their bodies, which one that fails has in parts.
    var heads: [Int: HTTPResponder.Request] {
        var heads: [Int: HTTPResponder.Request] = [:]
        for stream in self.streams {
            guard var head = stream.responder.requests.first else { continue }
            head.bodyBytes = nil
            heads[stream.id] = head
        }
        return heads
    }

    init(_ bytes: [UInt8], _ cuts: Cuts, _ plan: HTTP2Plan, on server: FuzzHTTPServer) {
        self.client = HTTP2Client(bytes)
        self.answers = HTTP2Answers([], to: self.client)
        let (channel, wire) = server.open { channel, place in
            expect(place.refusal == nil, "an earlier connection has kept its place")
            try HTTPSServerChannel.addHTTP2(to: channel, since: LoopSweeper.nowMs, place, server.shared) { stream in
                try self.opened(stream, plan)
            }
        }
        if plan.isDeaf { self.setWritable(false, channel) }
        for piece in cuts.pieces(of: bytes) where channel.isActive {
            wire.deliver(piece, to: channel)
            self.turn(channel, server)
        }
        if plan.isDeaf, channel.isActive {
            self.setWritable(true, channel)
            self.turn(channel, server)
        }
        while channel.isActive, self.turn(channel, server) {}
        self.checkNoneIsIgnored(channel, HTTP2Frame.read(wire.sent[...]).frames)
        expect(!channel.isActive || wire.unflushedBytes == 0, "\(wire.unflushedBytes) bytes are written and not flushed")
        self.isOpen = channel.isActive
        if plan.closesInput, channel.isActive {
            channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            expect(!channel.isActive, "the connection goes on without its client")
        } else if plan.quiesces, channel.isActive {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
            expect(!channel.isActive || self.openStreams > 0 || self.streams.isEmpty, "an idle connection outlives the server")
        }
        self.outlast(channel, server)
        self.answers = HTTP2Answers(wire.sent, to: self.client)
        server.close(channel)
        server.checkNothingIsHeld()
        expect(self.openStreams == 0, "\(self.openStreams) streams outlive their connection")
    }

    private func checkNoneIsIgnored(_ channel: EmbeddedChannel, _ sent: [HTTP2Frame]) {
        guard channel.isActive else { return }
        let errors = sent.filter { $0.kind == HTTP2Frame.Kind.goAway && HTTP2Frame.number($0.payload[4..<8]) != 0 }
        expect(errors.isEmpty, "the connection goes on after \(errors)")
        let heard = Set(sent.filter { [HTTP2Frame.Kind.headers, HTTP2Frame.Kind.reset].contains($0.kind) }.map(\.stream))
        for stream in self.streams where stream.responder.requests.isEmpty && !self.client.resets.contains(stream.id) {
            expect(heard.contains(stream.id), "the request on stream \(stream.id) is neither served nor refused")
        }
    }

    private func opened(_ stream: any Channel, _ plan: HTTP2Plan) throws {
        guard let name = try stream.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID) else { fatalError("no stream") }
        let id = Int(name)
        expect(id & 1 == 1 && id > self.streams.last?.id ?? 0, "stream \(id) is opened behind \(self.streams.last?.id ?? 0)")
        let responder = HTTPResponder(plan.habits, first: id, closesOutput: false)
        let handler = try stream.pipeline.syncOperations.handler(type: HTTP2StreamHandler.self)
        try stream.pipeline.syncOperations.addHandler(responder)
        self.streams.append(Stream(id: id, responder: responder, handler: handler))
        self.openStreams += 1
        stream.closeFuture.assumeIsolated().whenComplete { _ in self.openStreams -= 1 }
    }

    private func setWritable(_ isWritable: Bool, _ channel: EmbeddedChannel) {
        channel.isWritable = isWritable
        channel.pipeline.fireChannelWritabilityChanged()
    }

    /// One turn of the loop. Returns whether something is left to do.
    @discardableResult private func turn(_ channel: EmbeddedChannel, _ server: FuzzHTTPServer) -> Bool {
        server.loop.run()
        var isBusy = false
        for stream in self.streams where stream.responder.turn() { isBusy = true }
        server.loop.run()
        expect(self.openStreams <= HTTP2Limits.streams, "\(self.openStreams) streams at a time")
        return isBusy
    }

    /// Ends the process unless the connection ends although its client goes on being silent.
    private func outlast(_ channel: EmbeddedChannel, _ server: FuzzHTTPServer) {
        // The body's time, the reset behind its answer, the connection's time.
        for round in 1...4 where channel.isActive {
            let nowMs = LoopSweeper.nowMs + Int64(round) * 100_000
            for stream in self.streams { stream.handler.sweep(nowMs: nowMs) }
            server.loop.run()
            guard channel.isActive else { break }
            guard let handler = try? channel.pipeline.syncOperations.handler(type: HTTP2ConnectionHandler.self) else {
                fatalError("a connection without its handler")
            }
            handler.sweep(nowMs: nowMs)
            server.loop.run()
        }
        expect(!channel.isActive, "the connection outlives its limits, with \(self.openStreams) streams")
    }

    func check() {
        let limits = FuzzHTTPServer.limits
        for request in self.streams.flatMap(\.responder.requests) {
            expect(HTTPConnectionHandler.isHost(request.authority), "a request to the host \(request.authority)")
            expect(request.headBytes <= limits.headBytes, "a head of \(request.headBytes) bytes")
            expect(request.fields.count <= limits.headerFields, "a head of \(request.fields.count) fields")
            expect(request.scheme == "https" && request.method != "CONNECT", "\(request)")
            expect(!request.fields.contains { $0.utf8.contains { $0 < 32 && $0 != 9 } }, "control characters in \(request.fields)")
        }
        // One more than is allowed is answered before it ends the connection.
        expect(self.answers.pingsAnswered <= HTTP2Limits.controlFrames + 1, "\(self.answers.pingsAnswered) answers to PING")
        expect(self.answers.settingsAnswered <= HTTP2Limits.controlFrames + 1, "\(self.answers.settingsAnswered) answers to SETTINGS")
        expect(self.answers.goAways.count <= 3, "\(self.answers.goAways.count) times GOAWAY")
        for (id, answer) in self.answers.answers where answer.status != nil || answer.continues > 0 {
            guard let stream = self.streams.first(where: { $0.id == id }) else {
                fatalError("an answer on stream \(id), without a request")
            }
            self.check(answer, of: stream)
        }
        self.checkNoneIsLost()
    }

    private func check(_ answer: HTTP2Answers.Answer, of stream: Stream) {
        let request = stream.responder.requests.first
        expect(stream.responder.requests.count <= 1, "two requests on stream \(stream.id)")
        expect(answer.continues <= (request?.expectsContinue == true ? 1 : 0), "\(answer.continues) times 100 (Continue)")
        guard let status = answer.status else { return }
        if answer.hasEnded {
            let length = answer.values("content-length").first.flatMap { Int($0) }
            expect(length == answer.body.count, "\(answer.body.count) bytes instead of \(length ?? -1)")
        }
        guard status == 200 else {
            // A body that comes too slowly is refused later than its head.
            expect(request == nil || status == 408, "\(status) to a request that was accepted")
            if answer.hasEnded { HTTPRefusals.check(status, answer.fields, answer.body) }
            return
        }
        expect(request != nil && answer.number == stream.id, "the answer to \(answer.number ?? -1) comes on stream \(stream.id)")
        expect(answer.body.allSatisfy { $0 == HTTPResponder.letter(stream.id) }, "another answer's body")
    }

    /// Answers that no window holds up and nobody has reset are sent to their end.
    private func checkNoneIsLost() {
        let answered = self.streams.filter { !$0.responder.answered.isEmpty && !self.client.resets.contains($0.id) }
        for stream in answered {
            let answer = self.answers.answers[stream.id]
            expect(answer?.hasEnded == true, "the answer on stream \(stream.id) was sent, and is lost")
        }
        let size = self.streams.first?.responder.bodyBytes ?? 0
        guard self.isOpen, size < self.client.leastWindow, size * self.streams.count < 65_535 else { return }
        for stream in self.streams where stream.responder.hasAnswered && !self.client.resets.contains(stream.id) {
            let answer = self.answers.answers[stream.id]
            expect(answer?.hasEnded == true || answer?.wasReset == true, "the answer on stream \(stream.id) is lost")
        }
    }

    /// Ends the process unless a client with a well-formed request is served, the first time and after any other client.
    static func probe(_ server: FuzzHTTPServer) {
        let run = HTTP2Run(HTTP2Frames.client(Self.head("POST", "/probe", Self.proxied), body: "abc"), .none, HTTP2Plan(0), on: server)
        let request = run.streams.first?.responder.requests.first
        expect(request?.target == "/probe" && request?.bodyBytes == 3, "the probe does not reach the responder")
        let answer = run.answers.answers[1]
        expect(run.streams.count == 1 && answer?.status == 200 && answer?.hasEnded == true, "the probe's answer: \(answer?.status ?? 0)")
        expect(answer?.body == [UInt8](repeating: HTTPResponder.letter(1), count: 4), "the probe's body")
        expect(run.isOpen, "the probe's connection is not kept")
    }

    private static let proxied = [(name: "x-forwarded-for", value: "10.0.0.1")]

    private static func head(
        _ method: String, _ path: String, authority: String = "h", _ fields: [(name: String, value: String)] = []
    ) -> [(name: String, value: String)] {
        [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)] + fields
    }

    /// Ends the process unless requests that are refused by their heads get the documented status.
    static func checkRefusals(_ server: FuzzHTTPServer) {
        let long = String(repeating: "x", count: FuzzHTTPServer.limits.headBytes)
        let many = (0...FuzzHTTPServer.limits.headerFields).map { (name: "a\($0)", value: "b") }
        let cases = [
            (431, Self.head("GET", "/\(long)")), (431, Self.head("GET", "/", many)), (400, Self.head("GET", "/", authority: "h:x")),
            (501, [(":method", "CONNECT"), (":authority", "h:1")]),
        ]
        for (status, head) in cases {
            let run = HTTP2Run(HTTP2Frames.client(head), .none, HTTP2Plan(0), on: server)
            run.check()
            let answer = run.answers.answers[1]
            expect(
                answer?.status == status && answer?.hasEnded == true && run.isOpen, "\(answer?.status ?? 0) instead of \(status) to \(head)"
            )
        }
    }
}
