import NIOCore
import NIOEmbedded

@testable import HTTPServer

extension FuzzTarget {
    /// A client of the HTTP port. Cuts make no difference; each request that gets through is answered once, in order, and names one host.
    static let http1 = FuzzTarget("http1", maxLength: 4_096) { input in
        var input = input
        let answersEarly = input.byte() & 1 == 1
        let cuts = Cuts(input.byte())
        let bytes = input.rest
        let whole = HTTP1Run(bytes, .none, answersEarly)
        let pieces = HTTP1Run(bytes, cuts, answersEarly)
        expect(whole == pieces, "cuts show: \(pieces), at once \(whole)")
        for request in whole.requests {
            // HTTP/1.0 needs no host.
            expect(HTTPConnectionHandler.isHost(request.authority), "a request to the host \(request.authority)")
            expect(request.target.utf8.count <= FuzzHTTP.headBytes, "a target of \(request.target.utf8.count) bytes")
        }
        let fine = whole.statuses.count { $0 == 200 }
        let begun = answersEarly ? whole.requests.count : whole.requests.count { $0.bodyBytes != nil }
        expect(fine == begun, "\(begun) requests to answer, \(fine) answers")
        // At most one request is refused, and the connection ends with that.
        let refused = whole.statuses.firstIndex { $0 >= 400 }
        expect(refused.map { $0 == whole.statuses.count - 1 && !whole.isOpen } ?? true, "answers after \(whole.statuses)")
    }
}

private struct HTTP1Run: Equatable {
    var requests: [HTTPResponder.Request] = []
    /// Of all answers, 100 (Continue) left out.
    var statuses: [Int] = []
    var isOpen = false

    init(_ bytes: [UInt8], _ cuts: Cuts, _ answersEarly: Bool) {
        let loop = EmbeddedEventLoop()
        let channel = EmbeddedChannel(loop: loop)
        channel.remoteAddress = FuzzHTTP.proxy
        let responder = HTTPResponder(answersEarly: answersEarly)
        do {
            let shared = FuzzHTTP.shared(on: loop)
            try shared.addHTTP1(to: channel, since: 0, shared.admit(channel), isSecure: false)
            try channel.pipeline.syncOperations.addHandler(responder)
        } catch {
            fatalError("\(error)")
        }
        channel.pipeline.fireChannelActive()
        for piece in cuts.pieces(of: bytes) where channel.isActive { _ = try? channel.writeInbound(piece) }
        loop.run()
        self.isOpen = channel.isActive
        self.requests = responder.requests
        var sent: [UInt8] = []
        while let buffer = try? channel.readOutbound(as: ByteBuffer.self) { sent += buffer.readableBytesView }
        self.statuses = Self.statuses(sent)
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }

    /// Reads answers one after the other; ends the process unless each is whole.
    private static func statuses(_ sent: [UInt8]) -> [Int] {
        var statuses: [Int] = []
        var rest = sent[...]
        while !rest.isEmpty {
            guard let end = rest.indices.first(where: { rest[$0...].starts(with: [13, 10, 13, 10]) }) else {
                fatalError("half an answer: \(String(decoding: rest, as: UTF8.self))")
            }
            let lines = String(decoding: rest[..<end], as: UTF8.self).split(separator: "\r\n")
            let words = lines.first?.split(separator: " ") ?? []
            guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { fatalError("no status: \(lines)") }
            rest = rest[(end + 4)...]
            guard status != 100 else { continue }
            let length = lines.lazy.compactMap { line -> Int? in
                let field = line.split(separator: ":", maxSplits: 1)
                return field.first?.lowercased() == "content-length" ? field.last.flatMap { Int($0.filter { $0 != " " }) } : nil
            }.first
            guard let length, rest.count >= length else { fatalError("an answer without its length: \(lines)") }
            rest = rest.dropFirst(length)
            statuses.append(status)
        }
        return statuses
    }
}
