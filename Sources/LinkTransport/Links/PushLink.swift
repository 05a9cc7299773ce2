internal import Media
internal import NIOCore
internal import RTMP

/// One connection that publishes a queue's frames. On the link's thread.
struct PushLink {
    let run: LinkRun
    let queue: PushQueue

    /// An hour: an idle stream is no reason to end.
    private static let idleMs: Int64 = 3_600_000
    /// A connection lost this soon after the server's consent counts as refused, not as broken. nginx refuses this way.
    private static let doubtMs: Int64 = 2_000

    /// Runs until the connection ends, which always throws.
    func runToEnd(onRunning: () -> Void) throws(LinkError) {
        let opened = try self.run.open(publishes: true)
        self.run.control.allowPoliteEnd(true)
        defer { self.run.control.allowPoliteEnd(false) }
        self.queue.attach(self.run.control, nowMs: System.nowMs())
        defer { self.queue.detach() }
        onRunning()
        do throws(LinkError) {
            try self.publish(opened)
        } catch {
            if error == .cancelled {
                opened.wire.session.unpublish(self.run.url.stream, on: opened.streamID)
                opened.wire.finish()
            }
            throw error
        }
    }

    private func publish(_ opened: LinkRun.Opened) throws(LinkError) -> Never {
        let wire = opened.wire
        let doubtEnd = System.nowMs() + Self.doubtMs
        var clock = PushClock(fromZero: self.run.options.timestampsFromZero)
        var keepAlive = KeepAlive(intervalMs: self.run.options.keepAliveMs, nowMs: System.nowMs())
        while true {
            while let output = try wire.nextOutput() {
                if let error = self.run.ending(output, isStarted: true) { throw error }
            }
            guard !self.run.control.isStopping else { throw .cancelled }
            let isYoung = System.nowMs() < doubtEnd
            if try wire.fill(isYoung ? "just after the server accepted publish; \(LinkRun.wordless)" : "while publishing") { continue }
            guard let frame = self.queue.next(nowMs: System.nowMs()) else {
                for message in keepAlive.due(nowMs: System.nowMs()) {
                    try wire.send(Self.message(message.kind, message.payload, at: keepAlive.lastMs, on: opened.streamID))
                }
                try self.wait(wire, until: keepAlive.dueMs)
                continue
            }
            let ms = clock.time(of: frame)
            try wire.send(Self.message(frame.kind, Self.payload(frame), at: ms, on: opened.streamID))
            self.run.counters.sentFrame()
            keepAlive.sent(frame, at: ms, nowMs: System.nowMs())
        }
    }

    private func wait(_ wire: ClientConnection, until dueMs: Int64) throws(LinkError) {
        let endMs = System.nowMs() + Self.idleMs
        guard dueMs >= endMs else { return try wire.wait(until: dueMs) }
        try wire.wait(until: endMs, orElse: .silent(waitingFor: "a frame to send", ms: Int(Self.idleMs)))
    }

    private static func message(_ kind: Frame.Kind, _ payload: ByteBuffer, at ms: Int64, on streamID: UInt32) -> Message {
        Message(type: MessageType(rawValue: kind.rawValue), streamID: streamID, timestamp: TimestampUnwrapper.wrap(ms), payload: payload)
    }

    /// Sends metadata with `@setDataFrame` in front, which makes servers keep it for later viewers.
    private static func payload(_ frame: Frame) -> ByteBuffer {
        guard frame.kind == .data, frame.tag.flags.contains(.metadata), frame.tag.bodyOffset == 0 else { return frame.payload }
        var payload = ByteBuffer()
        payload.writeAMF0(.string("@setDataFrame"))
        payload.writeImmutableBuffer(frame.payload)
        return payload
    }
}

/// Computes the timestamps of one publish. A plain value.
struct PushClock {
    private let fromZero: Bool
    private var base: Int64?

    init(fromZero: Bool) { self.fromZero = fromZero }

    /// Milliseconds on the wire, not wrapped. The first media frame sets zero; earlier headers are at zero too, and so is all metadata.
    mutating func time(of frame: Frame) -> Int64 {
        guard frame.wireTimestamp != 0 || frame.kind != .data else { return 0 }
        guard self.fromZero else { return frame.timestamp }
        if self.base == nil, frame.tag.flags.contains(.coded) { self.base = frame.timestamp }
        guard let base else { return 0 }
        return max(frame.timestamp &- base, 0)
    }
}
