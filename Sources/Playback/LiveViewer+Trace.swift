import Access
import Listening
import Packaging
import RTMP
import Relay
import Streaming
import Support
import Trace

extension LiveViewer {
    /// Records the request's address as sent, and the status of the answer.
    func traceRequest() {
        let address = self.play.request.asked
        let query = address.query.isEmpty ? "" : "?" + TraceRedaction.query(address.query)
        let ending = self.play.isOfPieces ? "mp4" : "flv"
        let text = "\(TraceRedaction.address("/" + address.path)).\(ending)\(query), \(self.play.isWebSocket ? 101 : 200)"
        self.record(.received, .request, "GET", text)
    }

    /// Adds an entry to the trace. An entry that does not last (`lasts` is false), such as a ping, begins no trace.
    func record(_ direction: TraceDirection, _ kind: TraceKind, _ name: String, _ text: String = "", lasts: Bool = true) {
        guard let nowMs = self.loop?.relay.nowMs else { return }
        if self.trace == nil, lasts { self.trace = self.services.connections.traces.begin(nowMs: nowMs) }
        self.trace?.add(TraceEntry(atMs: nowMs, direction, kind, name, text), lasts: lasts)
    }

    func endTrace(_ reason: CloseReason, _ loop: LoopContext) {
        guard let trace = self.trace else { return }
        self.trace = nil
        let end = SessionTraces.End(id: self.id, reason: reason, hadRole: true, isPublisher: false, nowMs: loop.relay.nowMs)
        self.services.connections.traces.ended(trace, end, self.log)
    }
}
