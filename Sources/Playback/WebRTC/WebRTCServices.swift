import Access
import DTLSSRTP
import HTTPServer
import HTTPTypes
import Listening
import Logging
import NIOCore
package import Packaging
import Relay
import ServerConfiguration
import Sockets
import Streaming
package import Support
import Synchronization
import WebRTC

/// What viewers by WebRTC share: the port, the certificate of this run, the streams of packets, the sessions. Any thread.
package final class WebRTCServices: Sendable {
    let playback: PlaybackServices
    package let port: WebRTCPort
    package let packets: PacketTable
    private let context: Result<DTLSContext, DTLSError>
    private let sessions = Mutex(Sessions())
    private let opening = Mutex(PlaceTable(WebRTCServices.openingLimits, choice: .lowest))
    private let counts = Mutex(Counts())
    /// Requests at other nodes' sessions that are under way.
    let asked = Atomic<Int>(0)
    private struct Sessions {
        var inboxes: [String: WebRTCInbox] = [:]
        /// How many each loop has.
        var onLoop: [ObjectIdentifier: Int] = [:]
    }

    /// The buffers of the loops.
    private let runs = Mutex<[ObjectIdentifier: LoopBuffer]>([:])

    /// `@unchecked Sendable`: the buffer is touched on its loop only.
    private struct LoopBuffer: @unchecked Sendable { let run: DatagramRun }

    /// Viewers whose connection is not up yet, in all and of one host.
    private static let openingLimits = PlaceTable.Limits(total: 2_000, perHost: 100)

    package struct Counts: Sendable, Equatable {
        package var offers: UInt64 = 0
        package var connected: UInt64 = 0
        /// Viewers whose connection never came up, by the reason's word.
        package var failed: [String: UInt64] = [:]
        package var keyframeRequests: UInt64 = 0
        package var repeats: UInt64 = 0
    }

    package init(_ playback: PlaybackServices, _ packets: PacketTable) {
        self.playback = playback
        self.packets = packets
        // A port of -1 stands for that of http.listen, known once that is bound.
        self.port = WebRTCPort(playback.config.webrtc.listen ?? HostPort(host: "", port: -1), packets.ledger, log: playback.log)
        do throws(DTLSError) {
            self.context = .success(try DTLSContext())
        } catch {
            self.context = .failure(error)
        }
    }

    var ledger: MemoryLedger { self.packets.ledger }
    package var isOn: Bool { self.playback.config.webrtc.isEnabled }
    package var figures: Counts { self.counts.withLock { $0 } }
    package var viewers: Int { self.sessions.withLock { $0.inboxes.values.count(where: \.isViewer) } }
    package var publishers: Int { self.sessions.withLock { $0.inboxes.values.count { !$0.isViewer } } }

    func count(_ change: (inout Counts) -> Void) { self.counts.withLock { change(&$0) } }

    func dtls() throws(APIError) -> DTLSContext {
        do throws(DTLSError) {
            return try self.context.get()
        } catch {
            throw APIError(.internalServerError, .internal, "WebRTC has no certificate: \(error).")
        }
    }

    // MARK: Sessions

    func session(_ token: String) -> WebRTCInbox? { self.sessions.withLock { $0.inboxes[token] } }

    func add(_ inbox: WebRTCInbox, _ token: String) {
        self.sessions.withLock { sessions in
            sessions.inboxes[token] = inbox
            sessions.onLoop[ObjectIdentifier(inbox.loop), default: 0] += 1
        }
    }

    func remove(_ token: String) {
        self.sessions.withLock { sessions in
            guard let inbox = sessions.inboxes.removeValue(forKey: token) else { return }
            sessions.onLoop[ObjectIdentifier(inbox.loop), default: 0] -= 1
        }
    }

    /// Takes a place among those that are connecting; pair with ``opened(_:)``.
    func open(_ id: UInt64, _ host: HostKey) -> PlaceTable.Refusal? {
        self.opening.withLock { $0.enter(id, host, as: .loose(rank: 0), sheddingUpTo: .min).refusal }
    }

    func opened(_ id: UInt64) { self.opening.withLock { $0.leave(id) } }

    /// The buffer of all viewers on a loop. On that loop.
    func run(of loop: LoopContext) -> DatagramRun {
        self.runs.withLock { runs in
            let key = ObjectIdentifier(loop)
            let buffer = runs[key] ?? LoopBuffer(run: DatagramRun())
            runs[key] = buffer
            return buffer
        }.run
    }

    /// The loop for a new viewer: the calmest with the fewest of them.
    func loop() -> LoopContext? {
        let loops = self.playback.streams.allLoops
        let counts = self.sessions.withLock { $0.onLoop }
        return loops.min { left, right in
            let (a, b) = (left.relay.pressure.level, right.relay.pressure.level)
            if a != b { return a < b }
            return counts[ObjectIdentifier(left), default: 0] < counts[ObjectIdentifier(right), default: 0]
        }
    }

    /// How many viewers of a stream have a line that does not take it.
    package func badLines(_ path: String) -> Int {
        self.sessions.withLock { sessions in sessions.inboxes.values.count { $0.hasBadLine && $0.path.exact == path.exact } }
    }

    /// The addresses to offer to a client: those of the settings, or else the one at which its request came, if the client can reach that. `arrived`:
    /// the server's address on the request's connection. `client`: from where the client came.
    func candidates(arrived: SocketAddress?, client: SocketAddress?) -> [(address: String, port: Int)] {
        guard let port = self.port.port else { return [] }
        let named = self.playback.config.webrtc.addresses
        if !named.isEmpty { return named.map { ($0, port) } }
        let host = self.port.host
        if let bytes = IPText.v4(host) ?? IPText.v6(host), bytes.contains(where: { $0 != 0 }) { return [(host, port)] }
        if host == "localhost" { return [("127.0.0.1", port)] }
        guard let arrived, let text = arrived.ipAddress?.split(separator: "%").first.map(String.init) else { return [] }
        // A private address serves those alone who have one too; a client behind a proxy on this machine does not reach this machine's loopback.
        if CIDR.loopback.contains(address: arrived) {
            return client.map { CIDR.loopback.contains(address: $0) } == true ? [(text, port)] : []
        }
        if Self.isPrivate(arrived), client.map(Self.isPrivate) != true { return [] }
        return [(Self.plain(text), port)]
    }

    private static func isPrivate(_ address: SocketAddress) -> Bool { PageRules.local.contains(address: address) }

    /// IPv4 in its mapped form is IPv4.
    private static func plain(_ text: String) -> String { text.lowercased().hasPrefix("::ffff:") ? String(text.dropFirst(7)) : text }

    /// Ends all viewers of a stream, each on its loop.
    package func end(_ path: String, _ reason: CloseReason) {
        for inbox in self.sessions.withLock({ sessions in sessions.inboxes.values.filter { $0.isViewer && $0.path.exact == path.exact } }) {
            inbox.end(reason)
        }
    }
}
