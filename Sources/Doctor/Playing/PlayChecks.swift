import LinkTransport
import Media
import NIOCore
import Synchronization

/// Plays the doctor's stream over each protocol, and judges the received media.
struct PlayChecks: Sendable {
    let clip: DoctorClip
    let http: DoctorHTTP

    /// Time limit for each check, in seconds.
    static let limit: Int64 = 10
    private static let advice = "see the session's trace (earshot sessions trace ID) and the server's log"

    // MARK: RTMP

    func rtmp(_ name: String, _ url: String, caFile: String? = nil) async -> DoctorResult {
        let judge = SharedJudge(self.clip)
        let task: LinkClient
        do throws(LinkError) {
            var options = DoctorLink.options()
            options.caFile = caFile
            task = LinkClient.pull(try LinkURL(parsing: url), options: options, name: "doctor-play") { event in judge.receive(event) }
        } catch {
            return .fail(name, "the URL that the server hands out cannot be used: \(error)", "correct urls.rtmp or urls.rtmps")
        }
        task.start()
        defer { task.stop() }
        let end = ContinuousClock.now + .seconds(Self.limit)
        var why: String?
        while !judge.isDone, ContinuousClock.now < end, !Task.isCancelled {
            if case .failed = task.state {
                why = DoctorLink.reason(task)
                break
            }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return judge.verdict(name, why, advice: Self.advice(why))
    }

    private final class SharedJudge: Sendable {
        private let state: Mutex<FrameJudge>
        init(_ clip: DoctorClip) { self.state = Mutex(FrameJudge(clip)) }

        func receive(_ event: PullEvent) {
            if case .frame(let frame) = event { self.state.withLock { $0.receive(frame.kind, ms: frame.timestamp, frame.payload) } }
        }
        var isDone: Bool { self.state.withLock { $0.isDone } }
        func verdict(_ name: String, _ why: String?, advice: String) -> DoctorResult {
            self.state.withLock { $0 }.verdict(name, why, advice: advice)
        }
    }

    // MARK: HTTP

    func flv(_ name: String, _ url: String) async -> DoctorResult {
        var reader = FLVReader()
        var judge = FrameJudge(self.clip)
        let why = await self.http.stream(url, within: Self.limit) { bytes in
            reader.append(&bytes)
            while let tag = reader.next() { judge.receive(tag.kind, ms: tag.ms, tag.payload) }
            return !judge.isDone && reader.problem == nil
        }
        return judge.verdict(name, reader.problem ?? why, advice: Self.advice(why))
    }

    func webSocketFLV(_ name: String, _ url: String) async -> DoctorResult {
        var reader = FLVReader()
        var judge = FrameJudge(self.clip)
        let why = await self.webSocket(url) { bytes in
            reader.append(&bytes)
            while let tag = reader.next() { judge.receive(tag.kind, ms: tag.ms, tag.payload) }
            return !judge.isDone && reader.problem == nil
        }
        return judge.verdict(name, reader.problem ?? why, advice: Self.advice(why))
    }

    func mp4(_ name: String, _ url: String) async -> DoctorResult {
        var judge = MP4Judge(self.clip)
        let why = await self.http.stream(url, within: Self.limit) { judge.needsMore(after: &$0) }
        return judge.verdict(name, why)
    }

    /// As ``mp4(_:_:)``; the text messages between say which tracks come.
    func webSocketMP4(_ name: String, _ url: String) async -> DoctorResult {
        var judge = MP4Judge(self.clip)
        let why = await self.webSocket(url) { judge.needsMore(after: &$0) }
        return judge.verdict(name, why)
    }

    private func webSocket(_ url: String, _ receive: (inout ByteBuffer) -> Bool) async -> String? {
        let why = await WebSocketStream.read(url, within: Self.limit, receive)
        // A failed upgrade gives no reason; the same address over HTTP does.
        guard why == WebSocketStream.refused else { return why }
        return await self.http.stream(url, within: 3) { _ in false } ?? why
    }

    /// Advice for the server's reason, which stands in brackets.
    static func advice(_ why: String?) -> String {
        guard let why else { return Self.advice }
        if why.contains("no TLS") || why.contains("certificate") {
            return "see the certificate's own lines; a self-signed one must be installed on each client"
        }
        if why.contains("hook_denied") || why.contains("hook_unavailable") {
            return "the back end behind hooks.onPlay or hooks.onPublish refuses or does not answer: look there"
        }
        if why.contains("credential") {
            return "the server refuses what it has signed: are the clocks right, and is credentials.playKey the server's?"
        }
        if why.contains("disk_full") { return "free some disk space: below data.minFree nothing new begins" }
        if why.contains("too_many") { return "a limit is reached: see limits in the settings, and earshot sessions list" }
        if why.contains("no such host") || why.contains("refused") || why.contains("no answer") || why.contains("no address")
            || why.contains("check host")
        {
            return "is this the address that clients can reach? It comes from urls.rtmp, urls.rtmps or urls.http"
        }
        return Self.advice
    }
}

extension MP4Judge {
    private static let wanted = 5

    fileprivate mutating func needsMore(after bytes: inout ByteBuffer) -> Bool {
        self.append(&bytes)
        return self.problem == nil && self.missing(fragments: Self.wanted) != nil
    }

    fileprivate func verdict(_ name: String, _ why: String?) -> DoctorResult {
        guard let missing = self.missing(fragments: Self.wanted) else {
            return .pass(name, "\(self.fragments) fragments with the pushed picture, times rise")
        }
        return .fail(name, why.map { "\(missing): \($0)" } ?? missing, PlayChecks.advice(why))
    }
}
