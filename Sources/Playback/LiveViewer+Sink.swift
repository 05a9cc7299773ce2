import Access
import NIOCore
import Packaging
import RTMP
import Relay
import ServerConfiguration
import Streaming
import Support
import Trace

extension LiveViewer: ViewerSink {
    var isReady: Bool { self.writer?.isReady == true }
    package var line: DirectLine? { self.writer?.line }

    package func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int { self.writer?.write(vectors, bytes: bytes) ?? 0 }

    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        self.writer?.finish(message, header: header, from: offset)
    }

    func notify(_ viewer: Viewer, _ change: StreamChange) {
        // A channel that is over ends its listeners itself, with its own reason.
        if self.play.grant.listening?.isOver == true { return }
        // The only change that a player over HTTP understands is the end.
        if change == .left { self.close(self.services.admission.endOfPlay(self.play.request.address.path), detail: nil) }
        // An HTTP body keeps the one type named in its head, so the player must send a new request.
        if change == .changed { self.close(.streamEnded, detail: "its tracks or codecs changed") }
    }

    func skipped(_ viewer: Viewer, behindMs: Int64) {
        self.record(.here, .state, "skipped", "to a keyframe, \(behindMs) ms behind live")
    }

    func fellTooFarBehind(_ viewer: Viewer, ms: Int64) {
        self.record(.here, .state, "behind", "\(ms) ms")
        self.close(.tooSlow, detail: "\(ms) ms behind live; the limit is \(self.services.config.relay.maxBehindMs) ms (relay.maxBehind)")
    }

    func shed(_ viewer: Viewer) { self.close(.overloaded, detail: "the event loop has more viewers than it can serve") }

    func unsentBytes() -> Int { self.writer?.unsentBytes() ?? 0 }
    func setLowWater(_ bytes: Int) { self.writer?.setLowWater(bytes) }
}
