import Access
import RTMP
import Relay
package import Streaming

extension RTMPConnection {
    package func snapshot() -> SessionSnapshot {
        SessionSnapshot(
            id: self.id, remote: self.remote, transport: self.isTLS ? .rtmps : .rtmp,
            app: self.connect.map { String($0.app.prefix { $0 != "?" }) },
            client: self.connect?.flashVersion, user: self.user, bytesIn: self.bytesReceived, bytesOut: self.writer?.bytesWritten ?? 0,
            seconds: (self.nowMs - self.openedMs) / 1_000, publishing: self.publishings.map(\.stream.path),
            viewers: self.plays.map { self.loop.relay.snapshot(of: $0.viewer) })
    }

    private var user: String? {
        let passes = self.publishings.map(\.admission.pass) + self.plays.map(\.session.pass)
        return passes.lazy.compactMap(\.user).first
    }

    package func count(into figures: inout LoopFigures) {
        figures.connected(by: self.isTLS ? .rtmps : .rtmp)
        for publishing in self.publishings where publishing.token != nil { figures.received(publishing.bytes, of: publishing.stream) }
        for play in self.plays { figures.sent(play.viewer.bytesSent, of: play.session.stream) }
    }
}
