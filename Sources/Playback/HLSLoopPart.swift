import Access
import HLS
package import HTTPServer
import HTTPTypes
import NIOCore
import NIOHTTP1
import Packaging

/// Answers players of HLS on their connections' loops: playlists with directives, segments, parts, initialization sections. All that a low-latency
/// player asks for again and again. The rest, and what must be refused, is the endpoint's.
package struct HLSLoopPart: HTTPLoopPart {
    private let endpoint: HLSEndpoint

    package init(_ endpoint: HLSEndpoint) { self.endpoint = endpoint }

    package func mayAnswer(_ uri: String) -> Bool {
        // A token follows the name, at the end.
        let ending = LivePath.folderEnding.utf8
        var rest = uri.utf8[...]
        guard rest.count > HLSSession.tokenLength else { return false }
        while let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
            if rest[..<slash].suffix(ending.count).elementsEqual(ending) { return true }
            rest = rest[rest.index(after: slash)...]
        }
        return false
    }

    package func answer(_ request: HTTPLoopRequest) -> HTTPLoopReply? {
        let query = request.head.query ?? ""
        do throws(APIError) {
            let parameters = QueryParameters(String(query))
            let (session, name) = try self.endpoint.file(request.head.path, parameters)
            let access = try self.endpoint.access(PageRequest(request.head, request.channel), session)
            guard let remuxer = self.endpoint.services.remuxers.running(session.path, as: session.container) else { return nil }
            let asked = Asked(request: request, session: session, access: access)
            let reply =
                name == HLSEndpoint.mediaName(session.container)
                ? self.playlist(try HLSEndpoint.directives(parameters), remuxer, asked) : self.resource(name, remuxer, asked)
            if reply != nil { session.touch() }
            return reply
        } catch {
            // The endpoint finds the same, and says so.
            return nil
        }
    }

    private struct Asked {
        let request: HTTPLoopRequest
        let session: HLSSession
        let access: [(HTTPField.Name, String)]

        var loop: any EventLoop { self.request.channel.eventLoop }

        func answer(_ fields: [(name: HTTPField.Name, value: String)], _ body: [ByteBuffer]) -> HTTPLoopAnswer {
            var answer = HTTPLoopAnswer(.ok, fields, body: body)
            self.finish(&answer)
            self.session.touch(bytes: body.reduce(0) { $0 + $1.readableBytes })
            return answer
        }

        func answer(_ error: APIError) -> HTTPLoopAnswer {
            var answer = HTTPLoopAnswer(error)
            self.finish(&answer)
            return answer
        }

        private func finish(_ answer: inout HTTPLoopAnswer) {
            for (name, value) in self.access { answer.fields.append((name, value)) }
            answer.fields.append((.vary, "Origin"))
            self.session.trace("GET", self.request.head.uri, answer.status.code)
        }
    }

    private func resource(_ name: String, _ remuxer: StreamRemuxer, _ asked: Asked) -> HTTPLoopReply? {
        let loop = asked.loop
        switch remuxer.resource(name, on: loop) {
        case .now(let resource): return .now(asked.answer(HLSEndpoint.fields(of: resource, name), resource.pieces))
        case .elsewhere: return nil
        case .later(let comes):
            let answer = comes.assumeIsolated().map { _ -> HTTPLoopAnswer in
                if let refusal = self.refusal(asked) { return refusal }
                guard case .now(let resource) = remuxer.resource(name, on: loop) else { return asked.answer(HLSEndpoint.partPending) }
                return asked.answer(HLSEndpoint.fields(of: resource, name), resource.pieces)
            }
            return .later(answer.nonisolated())
        }
    }

    private func playlist(_ directives: PlaylistRequest, _ remuxer: StreamRemuxer, _ asked: Asked) -> HTTPLoopReply? {
        let loop = asked.loop
        switch remuxer.playlist(directives, hasStart: asked.session.hasStart, on: loop) {
        case .now(let reply): return .now(self.answer(reply, asked))
        case .elsewhere: return nil
        case .later(let comes):
            let answer = comes.assumeIsolated().map { _ -> HTTPLoopAnswer in
                if let refusal = self.refusal(asked) { return refusal }
                guard case .now(let reply) = remuxer.playlist(directives, hasStart: asked.session.hasStart, on: loop) else {
                    return asked.answer(HLSEndpoint.paused)
                }
                return self.answer(reply, asked)
            }
            return .later(answer.nonisolated())
        }
    }

    /// The session may have ended while the player waited.
    private func refusal(_ asked: Asked) -> HTTPLoopAnswer? {
        do throws(APIError) {
            try self.endpoint.check(asked.session)
            return nil
        } catch {
            return asked.answer(error)
        }
    }

    private func answer(_ reply: StreamRemuxer.PlaylistReply, _ asked: Asked) -> HTTPLoopAnswer {
        guard case .playlist(let text, let cache, last: _, let isFinal, let hasStart) = reply else {
            return asked.answer(HLSEndpoint.paused)
        }
        asked.session.gotPlaylist(hasStart: hasStart, isFinal: isFinal)
        return asked.answer(
            [(.contentType, MediaWindow.playlistContentType), (.cacheControl, cache.directives)],
            [text.bytes(query: "s=\(asked.session.token)")])
    }
}
