import NIOCore
import Relay
import Streaming
import Support
import Synchronization
import WebRTC

/// A client by WebRTC, on its loop: a viewer or a publisher.
protocol WebRTCClient: AnyObject {
    var transport: WebRTCTransport { get }
    /// Does what the transport's state asks for, after a datagram or a deadline.
    func follow(nowMs: Int64)
    /// A right check has come from this address.
    func wasChecked(from address: DatagramAddress)
    /// Its TCP connection has taken what was to be sent.
    func hasRoom()
    func close(_ reason: CloseReason, detail: String?)
}

/// A client as other threads know it.
final class WebRTCInbox: Sendable {
    let loop: LoopContext
    let path: String
    /// The user name of this server's side of its ICE, and of the client's.
    let user: String
    let remoteUser: String
    /// It plays; otherwise it pushes.
    let isViewer: Bool
    private let client: NIOLoopBoundBox<(any WebRTCClient)?>

    init(_ loop: LoopContext, _ path: String, user: String, remoteUser: String, isViewer: Bool) {
        self.loop = loop
        self.path = path
        self.user = user
        self.remoteUser = remoteUser
        self.isViewer = isViewer
        self.client = NIOLoopBoundBox.makeEmptyBox(valueType: (any WebRTCClient).self, eventLoop: loop.relay.eventLoop)
    }

    /// On the loop. Timers and tasks ask here for their client: a weak reference would make each use of it cost twice as much.
    var current: (any WebRTCClient)? { self.client.value }
    func set(_ client: (any WebRTCClient)?) { self.client.value = client }

    private let badLine = Atomic<Bool>(false)
    /// What was last found of the client's line. Any thread.
    var hasBadLine: Bool { self.badLine.load(ordering: .relaxed) }
    func note(badLine: Bool) { self.badLine.store(badLine, ordering: .relaxed) }

    /// Datagrams on their way to the client's loop. A viewer sends a few a second, a publisher its pictures.
    private let waiting = Atomic<Int>(0)
    private var mostWaiting: Int { self.isViewer ? 64 : 4_096 }

    /// `local`: where it came to, if this machine has several addresses. Returns false for a datagram that is dropped: the client sends faster than it
    /// is read.
    func give(_ datagram: ByteBuffer, from address: DatagramAddress, at local: DatagramAddress?) -> Bool {
        guard self.waiting.load(ordering: .relaxed) < self.mostWaiting else { return false }
        self.waiting.add(1, ordering: .relaxed)
        self.loop.relay.eventLoop.execute {
            self.waiting.subtract(1, ordering: .relaxed)
            guard let client = self.client.value else { return }
            client.transport.receive(datagram, from: address, at: local)
        }
        return true
    }

    /// A TCP connection of the client's has closed.
    func lost(_ address: DatagramAddress) { self.call { $0.transport.lost(address) } }

    func call(_ body: @escaping @Sendable (any WebRTCClient) -> Void) {
        self.loop.relay.eventLoop.execute { self.client.value.map(body) }
    }

    func end(_ reason: CloseReason) { self.loop.relay.eventLoop.execute { self.client.value?.close(reason, detail: nil) } }
}
