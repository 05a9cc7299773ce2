import Listening
import Media
import RTMP
import Streaming
import Support
import Trace

/// The connection's flight recorder: messages in both directions, and how the connection ended.
extension RTMPConnection {
    /// Its trace, created now if there is none; nil if the traces' memory is used up.
    private var startedTrace: SessionTrace? {
        if let trace = self.trace { return trace }
        self.trace = self.services.connections.traces.begin(nowMs: self.nowMs)
        return self.trace
    }

    /// Records a message, other than a publisher's audio and video. Pings and acknowledgements alone begin no trace.
    func trace(_ message: Message, _ direction: TraceDirection) {
        let lasts = !TraceEntry.isHousekeeping(message)
        guard let trace = lasts ? self.startedTrace : self.trace else { return }
        let nowMs = self.nowMs
        guard !trace.isFull(nowMs: nowMs) else { return }
        trace.add(.message(message, direction, atMs: nowMs), lasts: lasts)
    }

    func traceState(_ name: String, _ text: String = "") {
        self.startedTrace?.add(TraceEntry(atMs: self.nowMs, .here, .state, name, text))
    }

    /// Records that a publish was accepted; the headers of its media follow.
    func tracePublisher() {
        guard let trace = self.startedTrace else { return }
        trace.becomePublisher()
        self.mediaTrace = trace.recorder
    }

    /// Records a publisher's audio or video message. Per message: a header in a ring.
    func traceMedia(_ kind: Frame.Kind, _ timestamp: UInt32, _ length: Int, _ streamID: UInt32, _ flags: TracedHeader.Flags) {
        guard kind != .data, let recorder = self.mediaTrace else { return }
        recorder.add(type: kind.rawValue, timestamp: timestamp, length: length, streamID: streamID, flags: flags)
    }

    /// Records the end. A normal end, or that of a silent peer, begins no trace.
    func traceClose(_ reason: CloseReason, _ detail: String?) {
        if self.trace == nil, self.bytesReceived > 0, reason.isAbnormal(isPublisher: self.isPublisher) {
            self.traceState("opened", "\(self.bytesReceived) bytes received, handshake \(self.handshake == nil ? "done" : "not done")")
        }
        guard let trace = self.trace else { return }
        let text = detail.map { "\(reason.rawValue): \(TraceRedaction.clean($0))" } ?? reason.rawValue
        trace.add(TraceEntry(atMs: self.nowMs, .here, .state, "closed", text))
    }

    /// Passes on the trace of an ended connection; it is kept and logged if the end was abnormal.
    func endTrace(_ reason: CloseReason) {
        guard let trace = self.trace else { return }
        self.trace = nil
        let end = SessionTraces.End(
            id: self.id, reason: reason, hadRole: self.lastRole != nil, isPublisher: self.isPublisher, nowMs: self.nowMs)
        self.services.connections.traces.ended(trace, end, self.log)
    }
}
