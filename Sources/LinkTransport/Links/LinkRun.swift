internal import RTMP

/// The common part of pulling and pushing: from the socket to "started". On the link's thread.
struct LinkRun {
    let url: LinkURL
    let options: LinkOptions
    let control: LinkControl
    let counters: LinkCounters

    static let wordless = "the server may have refused app, stream name or key without saying so"

    /// A connection on which the server accepted publish or play.
    struct Opened {
        let wire: ClientConnection
        let streamID: UInt32
    }

    func open(publishes: Bool) throws(LinkError) -> Opened {
        let wire = try ClientConnection(self.url, self.options, publishes: publishes, control: self.control, counters: self.counters)
        self.counters.connected(wire.remote, tls: wire.tls)
        let end = System.nowMs() + Int64(self.options.handshakeTimeoutMs)
        try wire.announceChunkSize()
        var streamID: UInt32?
        while true {
            let step = streamID == nil ? "the answer to connect" : publishes ? "the answer to publish" : "the answer to play"
            guard let output = try wire.nextOutput() else {
                if try !wire.fill("before \(step) came; \(Self.wordless)") {
                    try wire.wait(until: end, orElse: .silent(waitingFor: step, ms: self.options.handshakeTimeoutMs))
                }
                continue
            }
            switch output {
            case .connected(let information):
                if let status = Status(information), status.level == .error { throw self.refusal("connect", status) }
                wire.session.createStream()
            case .streamCreated(let id):
                guard streamID == nil else { break }
                streamID = id
                if publishes {
                    wire.session.publish(self.url.stream, on: id)
                } else {
                    wire.session.play(self.url.stream, on: id, bufferMs: UInt32(clamping: self.options.bufferMs))
                }
            case .publishStarted where publishes: return Opened(wire: wire, streamID: streamID ?? 0)
            case .playStarted where !publishes: return Opened(wire: wire, streamID: streamID ?? 0)
            // Some servers start to play without a status.
            case .media where !publishes && streamID != nil: return Opened(wire: wire, streamID: streamID ?? 0)
            default:
                if let error = self.ending(output, isStarted: false) { throw error }
            }
        }
    }

    /// The error of an output that ends the link; nil for others. A server may send these at any time.
    func ending(_ output: ClientSessionOutput, isStarted: Bool) -> LinkError? {
        switch output {
        case .refused(let command, let status):
            // Servers refuse unknown commands, above all FCPublish, and continue.
            let matters = ["connect", "createStream", "publish", "play"].contains(command) || (command == "a call" && !isStarted)
            return matters ? self.refusal(command, status) : nil
        case .status(_, let status):
            switch status.code {
            case "NetStream.Play.Complete", StatusCode.playStop, StatusCode.playUnpublishNotify, StatusCode.unpublishSuccess,
                StatusCode.connectClosed, StatusCode.connectAppShutdown:
                return .ended(code: self.url.scrub(status.code))
            default: return status.level == .error ? self.refusal("the stream", status) : nil
            }
        case .streamEOF: return .ended(code: "StreamEOF")
        default: return nil
        }
    }

    private func refusal(_ command: String, _ status: Status) -> LinkError {
        let description = self.url.scrub(status.description)
        if status.code == StatusCode.playStreamNotFound { return .notFound(description: description) }
        return .refused(command: command, code: self.url.scrub(status.code), description: description)
    }
}
