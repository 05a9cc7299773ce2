import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

@testable import HTTPServer

/// Stands where the router is: notes each request and answers one after the other, as Hummingbird does. Loop-bound.
final class HTTPResponder: ChannelInboundHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundOut = HTTPResponsePart

    struct Request: Equatable {
        var method: String
        var target: String
        var authority: String
        var scheme: String
        var fields: [String]
        /// As ``HTTPLimits/headBytes`` counts them: target, host, names and values.
        var headBytes: Int
        /// The client's last request, by RFC 9112 section 9.6.
        var asksToClose: Bool
        /// The same, as Hummingbird sees it.
        var ends: Bool
        var expectsContinue: Bool
        /// Bytes of the body; nil until the request's end.
        var bodyBytes: Int?

        init(_ head: HTTPRequest) {
            self.method = head.method.rawValue
            self.target = head.path ?? ""
            self.authority = head.authority ?? ""
            self.scheme = head.scheme ?? ""
            self.fields = head.headerFields.map { "\($0.name): \($0.value)" }
            let texts = head.headerFields.flatMap { [$0.name.rawName, $0.value] } + [self.target, self.authority]
            self.headBytes = texts.reduce(0) { $0 + Self.bytes($1) }
            let options = head.headerFields[values: .connection].joined(separator: ",").lowercased().split(separator: ",")
            self.asksToClose = options.contains { option in
                option.utf8.drop { $0 == 32 || $0 == 9 }.reversed().drop { $0 == 32 || $0 == 9 }.elementsEqual("esolc".utf8)
            }
            self.ends = head.headerFields[.connection] == "close"
            self.expectsContinue = head.headerFields[values: .expect].contains { $0.lowercased().contains("100-continue") }
        }

        /// The bytes that the client sent, at least: each that is not UTF-8 has become three.
        private static func bytes(_ text: String) -> Int { text.utf8.count - 2 * text.unicodeScalars.count { $0 == "\u{FFFD}" } }

        /// How many fields have this name, in lower case.
        func count(of name: String) -> Int { self.fields.count { $0.lowercased().hasPrefix("\(name):") } }
    }

    struct Habits {
        /// Answers at the request's head, as to one without a valid token; else at its end.
        var answersEarly = false
        /// Answers on a later turn of the loop.
        var waits = false
        /// Sends the answer in two parts, on two turns.
        var pauses = false
        /// Does not announce the answer's length.
        var isStreamed = false
        var bodyBytes = 4
    }

    private enum Stage {
        case idle
        case reading
        /// `isRead`: the request's end has arrived.
        case due(isRead: Bool)
        case halfway(isRead: Bool)
        case skipping
        case finished
    }

    /// The number of the request that an answer belongs to.
    static let number = HTTPField.Name("X-Number")
    /// The request's target, as in a redirect.
    static let echo = HTTPField.Name("X-Echo")

    private(set) var requests: [Request] = []
    /// Numbers of the requests whose answers were sent to their end.
    private(set) var answered: [Int] = []
    private let habits: Habits
    private var stage = Stage.idle
    private var parts: [HTTPRequestPart] = []
    private var next = 0
    private var error: (any Error)?
    private var isInputClosed = false
    private var context: ChannelHandlerContext?
    /// An answer is written to its end.
    private(set) var hasAnswered = false
    private let first: Int
    private let closesOutput: Bool

    /// `first`: the number of the first request. `closesOutput`: the connection is the responder's, to end when there are no more requests.
    init(_ habits: Habits, first: Int = 0, closesOutput: Bool = true) {
        self.habits = habits
        self.first = first
        self.closesOutput = closesOutput
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.parts.append(self.unwrapInboundIn(data))
        self.work(context, isTurn: false)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed as ChannelEvent = event else { return }
        self.isInputClosed = true
        self.work(context, isTurn: false)
    }

    func channelInactive(context: ChannelHandlerContext) { self.stage = .finished }

    /// An error ends the requests; those that have arrived before it are answered.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.error = self.error ?? error
        self.work(context, isTurn: false)
    }

    var bodyBytes: Int { self.habits.bodyBytes }

    /// A request's end has not come.
    var isReading: Bool { if case .reading = self.stage { true } else { false } }

    /// One more turn of the loop. Returns whether something is left to do.
    func turn() -> Bool {
        guard let context = self.context else { return false }
        self.work(context, isTurn: true)
        switch self.stage {
        case .due, .halfway: return true
        case .idle, .reading, .skipping, .finished: return false
        }
    }

    private func work(_ context: ChannelHandlerContext, isTurn: Bool) {
        var mayAnswer = isTurn
        while true {
            switch self.stage {
            case .finished: return
            case .idle:
                guard let part = self.pop() else { return self.ended(context) }
                guard case .head(let head) = part else { fatalError("a part without a head: \(part)") }
                self.requests.append(Request(head))
                if !self.habits.answersEarly { context.triggerUserOutboundEvent(HTTPBodyWanted(), promise: nil) }
                self.stage = self.habits.answersEarly ? .due(isRead: false) : .reading
            case .reading, .skipping:
                guard let part = self.pop() else { return self.ended(context) }
                self.read(part)
            case .due(let isRead):
                guard mayAnswer || !self.habits.waits else { return }
                self.stage = .halfway(isRead: isRead)
                self.begin(context)
                mayAnswer = false
            case .halfway(let isRead):
                guard mayAnswer || !self.habits.pauses else { return }
                // The answer may close the connection, and the stage with that.
                self.stage = isRead ? .idle : .skipping
                self.end(context)
                mayAnswer = false
            }
        }
    }

    private func pop() -> HTTPRequestPart? {
        guard self.next < self.parts.count else { return nil }
        defer { self.next += 1 }
        return self.parts[self.next]
    }

    private func read(_ part: HTTPRequestPart) {
        let last = self.requests.count - 1
        switch part {
        case .head: fatalError("a head in another request's body")
        case .body(let bytes): self.requests[last].bodyBytes = (self.requests[last].bodyBytes ?? 0) + bytes.readableBytes
        case .end:
            self.requests[last].bodyBytes = self.requests[last].bodyBytes ?? 0
            if case .reading = self.stage { self.stage = .due(isRead: true) } else { self.stage = .idle }
        }
    }

    /// No part is left. Nothing happens until the input has ended, or failed.
    private func ended(_ context: ChannelHandlerContext) {
        if let error = self.error {
            self.stage = .finished
            guard error is HTTPParserError else { return context.close(promise: nil) }
            let head = HTTPResponse(status: .badRequest, headerFields: [.connection: "close", .contentLength: "0"])
            context.write(self.wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: nil)
            context.close(mode: .output, promise: nil)
        } else if self.isInputClosed {
            // Half a request is answered like a whole one.
            if case .reading = self.stage { self.stage = .due(isRead: true) } else { self.finish(context) }
        }
    }

    private func finish(_ context: ChannelHandlerContext) {
        self.stage = .finished
        if self.closesOutput { context.close(mode: .output, promise: nil) }
    }

    private var isBodiless: Bool { self.requests.last?.method == "HEAD" || self.habits.bodyBytes == 0 }

    private func begin(_ context: ChannelHandlerContext) {
        let request = self.requests[self.requests.count - 1]
        var head = HTTPResponse(status: .ok)
        if self.isBodiless {
            head.headerFields[.contentLength] = "0"
        } else if !self.habits.isStreamed {
            head.headerFields[.contentLength] = "\(self.habits.bodyBytes)"
        }
        if let number = Self.number { head.headerFields[number] = "\(self.first + self.requests.count - 1)" }
        if let echo = Self.echo { head.headerFields[echo] = request.target }
        context.writeAndFlush(self.wrapOutboundOut(.head(head)), promise: nil)
    }

    private func end(_ context: ChannelHandlerContext) {
        let index = self.requests.count - 1
        let number = self.first + index
        if !self.isBodiless {
            let bytes = ByteBuffer(repeating: Self.letter(number), count: self.habits.bodyBytes)
            context.write(self.wrapOutboundOut(.body(bytes)), promise: nil)
        }
        let done = context.eventLoop.makePromise(of: Void.self)
        done.futureResult.assumeIsolated().whenSuccess { self.answered.append(number) }
        self.hasAnswered = true
        context.writeAndFlush(self.wrapOutboundOut(.end(nil)), promise: done)
        if self.requests[index].ends { self.finish(context) }
    }

    /// The letter that the body of this request's answer is made of.
    static func letter(_ number: Int) -> UInt8 { UInt8(ascii: "a") + UInt8(number % 26) }
}
