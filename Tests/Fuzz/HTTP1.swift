import NIOCore
import NIOEmbedded
import Support

@testable import HTTPServer

extension FuzzTarget {
    /// A client of the HTTP port: its bytes, or words of HTTP. Requests are answered once and in order; what comes of them is whole, holds
    /// nothing of other requests, and ends in time.
    static let http1 = FuzzTarget("http1", maxLength: 4_096, timeoutSeconds: 60) { input in
        _ = isChecked
        var input = input
        let options = input.byte()
        let seed = input.byte()
        let plan = HTTP1Plan(options)
        let bytes = options & 64 != 0 ? HTTP1Words.text(&input, limit: Cuts.limit(seed, 80 << 10)) : input.rest
        let server = FuzzHTTPServer()
        let run = HTTP1Run(bytes, Cuts(seed), plan, on: server)
        run.check(plan)
        if seed > 0 {
            let whole = HTTP1Run(bytes, .none, plan, on: server)
            whole.check(plan)
            // Where a connection ends may depend on when its bytes come. What it has asked until then may not.
            let count = min(whole.heads.count, run.heads.count)
            expect(whole.heads.prefix(count) == run.heads.prefix(count), "cuts show: \(run.heads), at once \(whole.heads)")
            let (one, other) = (whole.heads.count, run.heads.count)
            expect(whole.isEnded || run.isEnded || one == other, "cuts show: \(other) requests, at once \(one)")
        }
        HTTP1Run.probe(server)
    }

    /// A request that is well-formed reaches the responder, or nothing is tested here; others get their status.
    private static let isChecked: Void = {
        let server = FuzzHTTPServer()
        HTTP1Run.probe(server)
        HTTP1Run.checkRefusals(server)
    }()
}

/// How an input's connection goes on.
struct HTTP1Plan {
    var habits = HTTPResponder.Habits()
    /// The server shuts down behind the last byte.
    var quiesces = false
    /// The client ends its side behind the last byte.
    var closesInput = false
    /// The server's only place is taken.
    var isRefused = false

    init(_ options: UInt8) {
        self.habits.answersEarly = options & 1 != 0
        self.habits.waits = options & 2 != 0
        self.habits.pauses = options & 4 != 0
        self.habits.isStreamed = options & 8 != 0
        self.quiesces = options & 16 != 0
        self.closesInput = options & 32 != 0
        self.isRefused = options & 128 != 0
    }
}

/// One connection and what came of it.
private struct HTTP1Run {
    private let responder: HTTPResponder
    private var answers: [HTTP1Answers.Answer] = []
    private var continues = 0
    /// The server has ended its output or the connection.
    private(set) var isEnded = false
    /// The last answer came when the client's time was over.
    private var isRefusedLate = false
    private let bytes: [UInt8]

    /// The requests that have reached the responder, without their bodies, which one that fails has in parts.
    var heads: [HTTPResponder.Request] {
        self.responder.requests.map { request in
            var head = request
            head.bodyBytes = nil
            return head
        }
    }

    init(_ bytes: [UInt8], _ cuts: Cuts, _ plan: HTTP1Plan, on server: FuzzHTTPServer) {
        self.bytes = bytes
        let responder = HTTPResponder(plan.habits)
        self.responder = responder
        // A connection that keeps the only place, since a request is under way on it.
        let other = plan.isRefused ? server.open { try server.shared.addHTTP1(to: $0, since: 0, $1, isSecure: false) }.0 : nil
        if let other { _ = try? other.writeInbound(ByteBuffer(string: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n")) }
        let (channel, wire) = server.open { channel, place in
            expect((place.refusal != nil) == plan.isRefused, "a place was \(plan.isRefused ? "left" : "kept by an earlier connection")")
            try server.shared.addHTTP1(to: channel, since: LoopSweeper.nowMs, place, isSecure: false)
            try channel.pipeline.syncOperations.addHandler(responder)
        }
        for piece in cuts.pieces(of: bytes) where channel.isActive {
            wire.deliver(piece, to: channel)
            server.loop.run()
            _ = responder.turn()
            self.checkTurn(channel, wire)
        }
        if plan.closesInput, channel.isActive { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        if plan.quiesces, channel.isActive { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        while channel.isActive, responder.turn() { server.loop.run() }
        server.loop.run()
        self.checkTurn(channel, wire)
        self.isEnded = !channel.isActive || wire.isOutputClosed
        // At a shutdown, a request that is on its way may still come, and so may the first one.
        let mayStay = plan.closesInput ? false : !plan.quiesces || responder.isReading || responder.requests.isEmpty
        expect(self.isEnded || mayStay, "the connection goes on after \(plan)")
        let sent = wire.sent.count
        Self.outlast(channel, server)
        self.isRefusedLate = wire.sent.count > sent
        let read = HTTP1Answers(wire.sent)
        self.answers = read.answers
        self.continues = read.continues
        server.close(channel)
        if let other { server.close(other) }
        server.checkNothingIsHeld()
    }

    private func checkTurn(_ channel: EmbeddedChannel, _ wire: HTTPWire) {
        expect(!channel.isActive || wire.unflushedBytes == 0, "\(wire.unflushedBytes) bytes are written and not flushed")
    }

    /// Ends the process unless the connection ends although its client goes on being silent.
    private static func outlast(_ channel: EmbeddedChannel, _ server: FuzzHTTPServer) {
        for round in 1...2 where channel.isActive {
            guard let handler = try? channel.pipeline.syncOperations.handler(type: HTTPConnectionHandler.self) else {
                fatalError("a connection without its handler")
            }
            handler.sweep(nowMs: LoopSweeper.nowMs + Int64(round) * 100_000)
            server.loop.run()
        }
        expect(!channel.isActive, "the connection outlives its limits")
    }

    func check(_ plan: HTTP1Plan) {
        self.checkRequests()
        self.checkAnswers(plan)
    }

    private func checkRequests() {
        let limits = FuzzHTTPServer.limits
        for request in self.responder.requests {
            // HTTP/1.0 needs no host.
            expect(HTTPConnectionHandler.isHost(request.authority), "a request to the host \(request.authority)")
            expect(request.count(of: "host") == 0, "more hosts than one: \(request)")
            expect(request.headBytes <= limits.headBytes, "a head of \(request.headBytes) bytes")
            expect(request.fields.count <= limits.headerFields, "a head of \(request.fields.count) fields")
            expect(!request.fields.contains { $0.utf8.contains { $0 < 32 && $0 != 9 } }, "control characters in \(request.fields)")
            // A program that forwards requests might see another end of such a one (RFC 9112 section 11.2).
            expect(request.count(of: "content-length") + request.count(of: "transfer-encoding") < 2, "two lengths: \(request.fields)")
        }
        let requests = self.responder.requests
        let last = requests.firstIndex { $0.asksToClose }
        expect(last.map { $0 == requests.count - 1 } ?? true, "a request behind the last: \(requests)")
    }

    private func checkAnswers(_ plan: HTTP1Plan) {
        let (requests, answers, statuses) = (self.responder.requests, self.answers, self.answers.map(\.status))
        let whole = answers.filter { $0.status == 200 && $0.isWhole }
        expect(whole.compactMap(\.number) == self.responder.answered, "\(self.responder.answered) are answered, \(statuses) are sent")
        for (index, answer) in answers.enumerated() {
            let isLast = index == answers.count - 1
            expect(!answer.saysClose || isLast, "answers behind the last: \(statuses)")
            expect(answer.isWhole || (isLast && self.isEnded), "half an answer: \(answer)")
            guard answer.status == 200 else {
                expect(isLast && answer.saysClose, "answers behind a refusal: \(statuses)")
                // The responder's own, after an error within a request.
                guard !answer.body.isEmpty else { continue }
                HTTPRefusals.check(answer.status, answer.fields, answer.body)
                continue
            }
            expect(answer.number == index, "the answer to request \(answer.number ?? -1) comes at place \(index)")
            expect(index < requests.count, "an answer without a request")
            expect(answer.body.allSatisfy { $0 == HTTPResponder.letter(index) }, "another answer's body")
            // Behind a request that asks for the end, or that is refused.
            if requests[index].asksToClose { expect(answer.saysClose || !answer.isWhole, "the answer to the last request does not say so") }
        }
        if answers.last?.saysClose == true { expect(self.isEnded || self.isRefusedLate, "the connection stays after its last answer") }
        if requests.last?.asksToClose == true, self.responder.answered.contains(requests.count - 1) {
            expect(self.isEnded, "the connection stays after its last request")
        }
        expect(self.continues <= requests.count { $0.expectsContinue }, "\(self.continues) times 100 (Continue)")
        let fields = self.bytes.count { $0 == 10 }
        let canBeTooLarge = self.bytes.count > FuzzHTTPServer.limits.headBytes || fields > FuzzHTTPServer.limits.headerFields
        expect(canBeTooLarge || !answers.contains { $0.status == 431 }, "\(self.bytes.count) bytes, \(fields) lines are too large")
        let isHealthy = { (request: HTTPResponder.Request) in HTTPConnectionHandler.isHealthCheck(request.target) }
        expect(!plan.isRefused || requests.allSatisfy(isHealthy), "served without a place: \(requests)")
    }

    /// Ends the process unless a client with a well-formed request is served, the first time and after any other client.
    static func probe(_ server: FuzzHTTPServer) {
        let text = "POST /probe HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 10.0.0.1\r\nContent-Length: 3\r\n\r\nabc"
        let run = HTTP1Run(Array(text.utf8), .none, HTTP1Plan(0), on: server)
        let request = run.responder.requests.first
        expect(request?.target == "/probe" && request?.bodyBytes == 3, "the probe does not reach the responder: \(run.responder.requests)")
        expect(run.answers.map(\.status) == [200], "the probe's answer: \(run.answers)")
        expect(run.answers[0].body == [UInt8](repeating: HTTPResponder.letter(0), count: 4), "the probe's answer: \(run.answers[0].body)")
        expect(!run.isEnded, "the probe's connection is not kept")
    }

    /// Ends the process unless requests that are refused by their heads get the documented status.
    static func checkRefusals(_ server: FuzzHTTPServer) {
        let long = String(repeating: "x", count: FuzzHTTPServer.limits.headBytes)
        let many = String(repeating: "a: b\r\n", count: FuzzHTTPServer.limits.headerFields)
        let cases = [
            (431, "GET /\(long) HTTP/1.1\r\nHost: h\r\n\r\n"), (431, "GET / HTTP/1.1\r\nHost: h\r\n\(many)\r\n"),
            (400, "GET / HTTP/1.1\r\n\r\n"), (400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), (400, "nonsense\r\n\r\n"),
        ]
        for (status, text) in cases {
            let run = HTTP1Run(Array(text.utf8), .none, HTTP1Plan(0), on: server)
            run.check(HTTP1Plan(0))
            expect(run.answers.map(\.status) == [status] && run.isEnded, "\(run.answers) instead of \(status) to \(text)")
        }
    }
}

/// Text made of an input, of the words that HTTP/1.1 consists of.
private enum HTTP1Words {
    /// An input's byte chooses a word, repeats the last one, or introduces bytes as they are.
    static func text(_ input: inout FuzzInput, limit: Int) -> [UInt8] {
        var text: [UInt8] = []
        var last: [UInt8] = []
        while !input.isEmpty, text.count < limit {
            let choice = input.byte()
            switch choice {
            case ..<0x70: last = self.words[Int(choice) % self.words.count]
            case ..<0x80:
                for _ in 0..<Int(choice & 0xF) where text.count < limit { text += last }
            default: last = input.pop(Int(choice & 0x1F))
            }
            text += last
        }
        return text
    }

    private static let words: [[UInt8]] = [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\n", "POST /a?b=c HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: h\r\n",
        "HEAD / HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n", "CONNECT h:1 HTTP/1.1\r\n", "GET http://u:p@h:1/p?q#f HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\n", "GET / HTTP/1.0\r\n", "GET / HTTP/2.0\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET ",
        " HTTP/1.1\r\n",
        "Host: h\r\n", "Host: [::1]:80\r\n", "Host: a b\r\n", "Host: h%00\r\n", "Host:\r\n", "Content-Length: 3\r\n",
        "Content-Length: 300\r\n",
        "Content-Length: 18446744073709551616\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n", "Connection: close\r\n", "connection: Close\r\n", "Connection: keep-alive\r\n",
        "Connection: keep-alive, close\r\n", "Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "Upgrade: h2c\r\n",
        "Expect: 100-continue\r\n", "X-Forwarded-For: 10.0.0.1\r\n", "X-Forwarded-For: 10.0.0.2, 192.0.2.7\r\n", "Trailer: a\r\n",
        "Cookie: a=b; c=d\r\n", "a: b\r\n", "a: b\r\n c\r\n", "a : b\r\n", ": b\r\n", "a: \0\r\n", "a: b\n", "a: b\r", "\r\n", "\n", "\r",
        "\r\n\r\n", "abc",
        "3\r\nabc\r\n", "3;x=y\r\nabc\r\n", "0\r\n\r\n", "0\r\n", "ffffffffffffffff\r\n", "10\r\n", " ", "\t", ":", "/", "%0d%0a", "\u{e9}",
        String(repeating: "x", count: 64), String(repeating: "y", count: 1_000), "a: " + String(repeating: "z", count: 256) + "\r\n",
    ].map { Array($0.utf8) }
}
