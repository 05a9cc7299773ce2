package import Media
internal import NIOCore
internal import RTMP

/// Events of a pulling link, in order, on the link's thread.
package enum PullEvent: Sendable {
    /// A connection delivers media; its first frame follows.
    case started
    /// Timestamps continue within one connection, with wraps removed; a new connection starts anew.
    case frame(Frame)
    /// The connection ended for this reason.
    case ended(LinkError)
}

/// One connection that plays a stream. On the link's thread.
struct PullLink {
    let run: LinkRun

    /// Runs until the connection ends, which always throws. Reports `ended` first if it reported `started`.
    func runToEnd(onRunning: () -> Void, onEvent: (PullEvent) -> Void) throws(LinkError) {
        let opened = try self.run.open(publishes: false)
        let wire = opened.wire
        self.run.control.allowPoliteEnd(true)
        defer { self.run.control.allowPoliteEnd(false) }
        var isStarted = false
        do throws(LinkError) {
            try self.deliver(wire, &isStarted, onRunning, onEvent)
        } catch {
            if isStarted { onEvent(.ended(error)) }
            if error == .cancelled {
                wire.session.deleteStream(opened.streamID)
                wire.finish()
            }
            throw error
        }
    }

    private func deliver(
        _ wire: ClientConnection, _ isStarted: inout Bool, _ onRunning: () -> Void, _ onEvent: (PullEvent) -> Void
    ) throws(LinkError) -> Never {
        var unwrapper = TimestampUnwrapper()
        var silenceEnd = System.nowMs() + Int64(self.run.options.silenceMs)
        let silence = LinkError.noMedia(ms: self.run.options.silenceMs)
        while true {
            guard let output = try wire.nextOutput() else {
                if try !wire.fill(isStarted ? "while playing" : "before the first frame; \(LinkRun.wordless)") {
                    try wire.wait(until: silenceEnd, orElse: silence)
                }
                guard System.nowMs() < silenceEnd else { throw silence }
                guard !self.run.control.isStopping else { throw .cancelled }
                continue
            }
            if let error = self.run.ending(output, isStarted: true) { throw error }
            guard case .media(let message) = output, let media = try self.media(message) else { continue }
            if media.kind != .data { silenceEnd = System.nowMs() + Int64(self.run.options.silenceMs) }
            do throws(MediaError) {
                let frame = try Frame(kind: media.kind, timestamp: unwrapper.peek(message.timestamp), payload: media.payload)
                if frame.tag.flags.contains(.coded) { _ = unwrapper.unwrap(message.timestamp) }
                if !isStarted {
                    isStarted = true
                    onRunning()
                    onEvent(.started)
                }
                self.run.counters.receivedFrame()
                onEvent(.frame(frame))
            } catch {
                // Skip one unreadable message; the stream continues.
                self.run.counters.receivedMalformed()
            }
        }
    }

    /// The message as a relay frame. nil for messages about the stream that are not part of it.
    private func media(_ message: Message) throws(LinkError) -> (kind: Frame.Kind, payload: ByteBuffer)? {
        switch message.type {
        case .audio: return (.audio, message.payload)
        case .video: return (.video, message.payload)
        case .dataAMF0, .dataAMF3:
            let payload = message.amf0Payload
            var decoder = AMF0Decoder(payload)
            var name: String?
            var code: String?
            do throws(AMFError) {
                name = try decoder.next()?.string
                if name == "onPlayStatus" { code = try decoder.next()?["code"]?.string }
            } catch {
                self.run.counters.receivedMalformed()
                return nil
            }
            if code == "NetStream.Play.Complete" { throw .ended(code: "NetStream.Play.Complete") }
            return TagInfo.parseData(payload).flags.contains(.notForPlayers) ? nil : (.data, payload)
        default: return nil
        }
    }
}
