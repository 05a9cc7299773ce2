import NIOCore
import Relay
import Sockets
import Streaming
import Support
import WebRTC

/// One client's datagrams, on its loop: from the port to its ``PeerConnection`` and back, where its media goes, and its deadlines. Loop-bound; owned by its
/// client.
final class WebRTCTransport {
    let peer: PeerConnection
    private let inbox: WebRTCInbox
    private let port: WebRTCPort
    private let run: DatagramRun
    private let loop: LoopContext
    private unowned(unsafe) let client: any WebRTCClient
    @exclusivity(unchecked) private(set) var isOver = false
    private(set) var bytesReceived: UInt64 = 0
    private var known: Set<DatagramAddress> = []
    /// Where what came from each of them came to.
    private var locals: [DatagramAddress: DatagramAddress] = [:]
    /// Where media goes, and from where, if this machine has several addresses.
    @exclusivity(unchecked) private var target: (address: DatagramAddress, local: DatagramAddress?)?
    /// The TCP connection by which media goes, if it does.
    @exclusivity(unchecked) private var stream: WebRTCStream?
    private var sender: DatagramSender?
    private var timer: Scheduled<Void>?

    /// `client`: owns this.
    init(_ peer: PeerConnection, _ inbox: WebRTCInbox, _ port: WebRTCPort, _ run: DatagramRun, of client: any WebRTCClient) {
        self.peer = peer
        self.inbox = inbox
        self.port = port
        self.run = run
        self.loop = inbox.loop
        self.client = client
    }

    private var nowMs: Int64 { self.loop.relay.nowMs }

    // MARK: In

    func receive(_ datagram: ByteBuffer, from address: DatagramAddress, at local: DatagramAddress?) {
        guard !self.isOver else { return }
        self.bytesReceived &+= UInt64(datagram.readableBytes)
        let nowMs = self.nowMs
        let isTheirs = datagram.withUnsafeReadableBytes { self.peer.receive($0, from: address, nowMs: nowMs) }
        self.followAddresses()
        if isTheirs, let local, self.known.contains(address) { self.locals[address] = local }
        self.followTarget()
        self.client.follow(nowMs: nowMs)
    }

    /// Tells the port from where the client's datagrams come.
    private func followAddresses() {
        let addresses = self.peer.addresses
        guard addresses.count != self.known.count || !addresses.allSatisfy({ self.known.contains($0) }) else { return }
        let now = Set(addresses)
        for address in now.subtracting(self.known) {
            self.port.add(self.inbox, address: address)
            self.client.wasChecked(from: address)
        }
        for address in self.known.subtracting(now) {
            self.port.remove(self.inbox, address: address)
            self.locals[address] = nil
        }
        self.known = now
    }

    /// Looks up where media goes. Call after all that may change it.
    private func followTarget() {
        let address = self.peer.address
        let stream = address.flatMap { self.port.stream($0) }
        if self.stream !== stream { self.stream = stream }
        guard let address, address.connection == 0 || stream != nil else { return self.target = nil }
        self.target = (address, self.locals[address])
        if self.sender == nil { self.sender = self.port.sender }
    }

    /// One of its TCP connections has closed.
    func lost(_ address: DatagramAddress) {
        guard !self.isOver else { return }
        self.peer.lost(address, nowMs: self.nowMs)
        self.followAddresses()
        self.followTarget()
    }

    // MARK: Out

    /// Media goes by TCP.
    var isStream: Bool { self.stream != nil }

    /// Media may be sent. Whether the TCP connection by which it goes has not taken what it got, the client is told when it has.
    var isReady: Bool { !self.isOver && self.target != nil && self.stream?.isFull != true }

    /// Sends what the peer has to say.
    func sendWaiting() {
        for (address, bytes) in self.peer.popDatagrams() { self.send(bytes, to: address) }
    }

    /// Sends to where media goes.
    func send(_ bytes: [UInt8]) { if let address = self.peer.address { self.send(bytes, to: address) } }

    private func send(_ bytes: [UInt8], to address: DatagramAddress) {
        bytes.withUnsafeBytes { self.port.send($0, to: address, from: self.locals[address]) }
    }

    /// Points the loop's run at this client. Returns false if nothing may be sent.
    func aim() -> Bool {
        guard let target = self.target else { return false }
        if let stream = self.stream {
            self.run.begin(stream)
        } else {
            guard let sender = self.sender else { return false }
            self.run.begin(sender, to: target.address, from: target.local)
        }
        return true
    }

    // MARK: Deadlines

    /// Plans the next deadline, and all after it.
    func plan() {
        let nowMs = self.nowMs
        let waitMs = max(1, self.peer.nextMs(nowMs: nowMs) - nowMs)
        self.timer = self.loop.relay.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(waitMs)) { [inbox = self.inbox] in
            guard let transport = inbox.current?.transport, !transport.isOver else { return }
            transport.tick()
            if !transport.isOver { transport.plan() }
        }
    }

    private func tick() {
        let nowMs = self.nowMs
        self.peer.tick(nowMs: nowMs)
        self.followTarget()
        self.client.follow(nowMs: nowMs)
        guard !self.isOver else { return }
        if let report = self.peer.reportsDue(nowMs: nowMs, wallMs: WallClock.ms) { self.send(report) }
        if let answer = self.peer.answersDue(nowMs: nowMs) { self.send(answer) }
    }

    /// Says goodbye, and leaves the port.
    func close() {
        guard !self.isOver else { return }
        self.isOver = true
        self.timer?.cancel()
        self.peer.close()
        self.sendWaiting()
        self.port.remove(self.inbox, user: self.inbox.user)
        for address in self.known { self.port.remove(self.inbox, address: address) }
        self.inbox.set(nil)
    }
}
