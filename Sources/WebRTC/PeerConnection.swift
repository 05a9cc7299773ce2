package import DTLSSRTP
package import Support

/// One client's transport: ICE-lite, DTLS, SRTP over one UDP port that is shared with others. No socket, no clock: datagrams and the time come in,
/// datagrams go out. Used by one thread at a time.
///
/// ```
/// checking --a check with our password--> handshaking --DTLS done, an address proven--> connected --> over(why)
/// ```
/// Media goes to an address only once the peer has answered a check of ours from there: a client cannot aim it at others (RFC 8445 §19.5.1).
package final class PeerConnection {
    package enum State: Sendable, Equatable {
        case checking, handshaking, connected
        case over(End)
    }

    package enum End: Sendable, Equatable {
        /// The peer said goodbye.
        case goodbye
        /// No check came, or none that was ours.
        case neverChecked
        /// Checks came, but our own got no answer.
        case neverProven
        /// The handshake failed, or did not end in time.
        case handshake(DTLSError?)
        /// The peer no longer answers.
        case consentExpired
    }

    /// An address from which right checks come.
    private struct Path {
        let address: DatagramAddress
        var transaction: [UInt8]
        var sentMs: Int64 = .min / 2
        var tries = 0
        /// When the peer last answered a check of ours from there.
        var answeredMs: Int64?
        var isNominated = false
        /// The peer's first flight, which is answered only once the address is proven: an answer is larger than what a forger sends.
        var held: [[UInt8]] = []

        /// The peer wants what is sent there.
        func isProven(nowMs: Int64) -> Bool { self.answeredMs.map { nowMs - $0 < PeerConnection.consentMs } ?? false }
    }

    /// What a viewer gets.
    private let watched: (negotiation: Negotiation, own: Negotiation.Own)?
    /// What a publisher sends.
    private let published: PublishNegotiation?
    private let remote: RemoteTransport
    private let own: OwnTransport
    private let context: DTLSContext
    private let password: [UInt8]
    private let peerPassword: [UInt8]
    private let bornMs: Int64
    private var paths: [Path] = []
    private var selected: DatagramAddress? { didSet { self.followAddress() } }
    /// When a publisher's last right packet came. To a client that sends, nothing is sent that needs its consent, and some answer no checks.
    private var heardMs: Int64?
    /// When the address in use went away, if no other has taken its place.
    private var lostMs: Int64?
    private var dtls: DTLSAssociation?
    private var dtlsAddress: DatagramAddress?
    private var receiver: SRTPReceiver?
    private var handshakeMs: Int64?
    private var outgoing: [(DatagramAddress, [UInt8])] = []

    package private(set) var state = State.checking { didSet { self.followAddress() } }
    /// Where media goes; nil until it may.
    package private(set) var address: DatagramAddress?
    /// There once the keys are.
    package private(set) var media: MediaSender?
    /// A publisher's, there once the keys are.
    package private(set) var publisher: MediaReceiver?
    /// Protects what is said to a publisher.
    private var reports: SRTPSender?
    /// What the peer's RTCP has said since the last ``popControlPackets()``.
    private var controlPackets: [ControlPacket] = []
    /// Milliseconds from the first check to the connection.
    package private(set) var connectedAfterMs: Int64?
    /// Checks with the right password, for messages about what does not connect.
    package private(set) var checks = 0

    /// A browser has one address, or two when it moves.
    private static let mostPaths = 8
    private static let checkMs: Int64 = 5_000
    private static let firstCheckMs: Int64 = 100
    private static let firstChecks = 10
    private static let mostHeld = 4
    private static let longestHeld = 2_048
    private static let mostControlPackets = 256
    private static let connectMs: Int64 = 30_000
    private static let publisherMs: Int64 = 20
    /// RFC 7675 §5.1.
    private static let consentMs: Int64 = 30_000

    /// Of a viewer.
    package convenience init(_ negotiation: Negotiation, _ own: Negotiation.Own, _ context: DTLSContext, nowMs: Int64) {
        self.init(negotiation.remote, own.transport, context, watched: (negotiation, own), published: nil, nowMs: nowMs)
    }

    /// Of a publisher.
    package convenience init(_ negotiation: PublishNegotiation, _ own: OwnTransport, _ context: DTLSContext, nowMs: Int64) {
        self.init(negotiation.remote, own, context, watched: nil, published: negotiation, nowMs: nowMs)
    }

    private init(
        _ remote: RemoteTransport, _ own: OwnTransport, _ context: DTLSContext, watched: (Negotiation, Negotiation.Own)?,
        published: PublishNegotiation?, nowMs: Int64
    ) {
        self.watched = watched
        self.published = published
        self.remote = remote
        self.own = own
        self.context = context
        self.password = Array(own.password.utf8)
        self.peerPassword = Array(remote.password.utf8)
        self.bornMs = nowMs
    }

    private func followAddress() { self.address = self.state == .connected ? self.selected : nil }

    /// The addresses from which right checks came.
    package var addresses: [DatagramAddress] { self.paths.map(\.address) }

    package var isOver: Bool { if case .over = self.state { true } else { false } }

    /// What is to be sent now.
    package func popDatagrams() -> [(to: DatagramAddress, bytes: [UInt8])] {
        defer { self.outgoing = [] }
        return self.outgoing.map { (to: $0.0, bytes: $0.1) }
    }

    package func popControlPackets() -> [ControlPacket] {
        defer { self.controlPackets = [] }
        return self.controlPackets
    }

    // MARK: In

    /// Takes in a datagram. One that is nobody's here is dropped without a word. Returns whether it proved to be the peer's.
    @discardableResult
    package func receive(_ datagram: UnsafeRawBufferPointer, from address: DatagramAddress, nowMs: Int64) -> Bool {
        guard !self.isOver, let first = datagram.first else { return false }
        if STUNMessage.isMessage(first) {
            return self.receiveSTUN(datagram, from: address, nowMs: nowMs)
        } else if DTLSAssociation.isRecord(first) {
            self.receiveDTLS(datagram, from: address, nowMs: nowMs)
        } else if datagram.count > 1, first >> 6 == 2, (192...223).contains(datagram[1]), self.knows(address) {
            // RFC 5761 §4: RTCP by its packet type.
            guard self.state == .connected, self.controlPackets.count < Self.mostControlPackets,
                let clear = self.receiver?.openControl(datagram)
            else { return false }
            let packets = ControlPacket.parse(clear)
            if let publisher = self.publisher {
                publisher.receive(packets, nowMs: nowMs)
                self.heardMs = nowMs
            }
            self.controlPackets += packets
            return true
        } else if let publisher = self.publisher, self.state == .connected, self.knows(address),
            let header = RTPPacket.headerBytes(datagram), let opened = self.receiver?.open(datagram, header: header),
            let packet = RTPPacket(opened.packet, header: header, index: opened.index)
        {
            let number = self.published?.formats.number.flatMap { RTPPacket.number($0, in: datagram) }
            publisher.receive(packet, number: number, nowMs: nowMs)
            self.heardMs = nowMs
            return true
        }
        return false
    }

    private func knows(_ address: DatagramAddress) -> Bool { self.paths.contains { $0.address == address } }

    // MARK: ICE

    private func receiveSTUN(_ bytes: UnsafeRawBufferPointer, from address: DatagramAddress, nowMs: Int64) -> Bool {
        guard let message = STUNMessage(bytes) else { return false }
        switch message.kind {
        case .request:
            guard message.username == "\(self.own.user):\(self.remote.user)", message.isIntact(bytes, password: self.password) else {
                return false
            }
            self.check(message, from: address, nowMs: nowMs)
            return true
        case .success: return self.answered(message, bytes, from: address, nowMs: nowMs)
        case .indication, .failure: return false
        }
    }

    /// `message`: with our password.
    private func check(_ message: STUNMessage, from address: DatagramAddress, nowMs: Int64) {
        guard !message.saysControlled else {
            return self.send(STUNMessage.roleConflict(message).bytes(password: self.password), to: address)
        }
        self.checks += 1
        if self.state == .checking {
            self.state = .handshaking
            self.handshakeMs = nowMs
        }
        self.send(STUNMessage.success(message, to: address).bytes(password: self.password), to: address)
        if !self.knows(address) {
            // The oldest that is not in use makes room.
            if self.paths.count >= Self.mostPaths, let index = self.paths.firstIndex(where: { $0.address != self.selected }) {
                self.paths.remove(at: index)
            }
            self.paths.append(Path(address: address, transaction: MessageIntegrity.random(STUNMessage.transactionBytes)))
        }
        guard let index = self.paths.firstIndex(where: { $0.address == address }) else { return }
        if message.usesCandidate, !self.paths[index].isNominated {
            for other in self.paths.indices { self.paths[other].isNominated = other == index }
        }
        // An address that has not answered lately is asked (again) before media goes there; one that never has, ten times.
        let path = self.paths[index]
        let isDue = path.answeredMs.map { nowMs - $0 >= Self.checkMs } ?? (path.tries < Self.firstChecks)
        if isDue, nowMs - path.sentMs >= Self.firstCheckMs { self.sendCheck(index, nowMs: nowMs) }
        self.select(nowMs: nowMs)
    }

    private func sendCheck(_ index: Int, nowMs: Int64) {
        self.paths[index].sentMs = nowMs
        self.paths[index].tries += 1
        let check = STUNMessage.check("\(self.remote.user):\(self.own.user)", transaction: self.paths[index].transaction)
        self.send(check.bytes(password: self.peerPassword), to: self.paths[index].address)
    }

    private func answered(_ message: STUNMessage, _ bytes: UnsafeRawBufferPointer, from address: DatagramAddress, nowMs: Int64) -> Bool {
        guard let index = self.paths.firstIndex(where: { $0.address == address }), message.transaction == self.paths[index].transaction,
            message.isIntact(bytes, password: self.peerPassword)
        else { return false }
        self.paths[index].answeredMs = nowMs
        self.paths[index].tries = 0
        // The next check has a number of its own.
        self.paths[index].transaction = MessageIntegrity.random(STUNMessage.transactionBytes)
        self.select(nowMs: nowMs)
        if self.remote.isPassive, self.dtls == nil { self.beginDTLS(with: address, nowMs: nowMs) }
        let held = self.paths[index].held
        self.paths[index].held = []
        for datagram in held { datagram.withUnsafeBytes { self.receiveDTLS($0, from: address, nowMs: nowMs) } }
        return true
    }

    /// Chooses the proven address that the client nominated, or the only one.
    private func select(nowMs: Int64) {
        let proven = self.paths.filter { $0.isProven(nowMs: nowMs) }
        guard let chosen = proven.first(where: \.isNominated) ?? proven.first(where: { $0.address == self.selected }) ?? proven.first else {
            return
        }
        self.selected = chosen.address
        self.lostMs = nil
        self.connectIfReady()
    }

    /// The address is gone: it was a TCP connection, which has closed. Another one takes its place, now or when the peer connects again.
    package func lost(_ address: DatagramAddress, nowMs: Int64) {
        self.paths.removeAll { $0.address == address }
        guard self.selected == address else { return }
        self.selected = nil
        self.lostMs = nowMs
        self.select(nowMs: nowMs)
    }

    // MARK: DTLS

    /// Begins the handshake with a client that waits for it.
    private func beginDTLS(with address: DatagramAddress, nowMs: Int64) {
        do throws(DTLSError) {
            let dtls = try DTLSAssociation(self.context, .active, expected: self.remote.fingerprints)
            dtls.begin()
            self.dtls = dtls
        } catch {
            return self.end(.handshake(error))
        }
        self.dtlsAddress = address
        self.followDTLS(nowMs: nowMs)
    }

    private func receiveDTLS(_ datagram: UnsafeRawBufferPointer, from address: DatagramAddress, nowMs: Int64) {
        // No state before a check with our password has come from there, and no answer before one of ours was answered.
        guard let index = self.paths.firstIndex(where: { $0.address == address }) else { return }
        guard self.paths[index].answeredMs != nil else {
            if self.paths[index].held.count < Self.mostHeld, datagram.count <= Self.longestHeld {
                self.paths[index].held.append([UInt8](datagram))
            }
            return
        }
        do throws(DTLSError) {
            if self.dtls == nil { self.dtls = try DTLSAssociation(self.context, expected: self.remote.fingerprints) }
        } catch {
            return self.end(.handshake(error))
        }
        self.dtlsAddress = address
        self.dtls?.receive(datagram)
        self.followDTLS(nowMs: nowMs)
    }

    private func followDTLS(nowMs: Int64) {
        guard let dtls = self.dtls, let address = self.dtlsAddress else { return }
        for datagram in dtls.popDatagrams() { self.send(datagram, to: address) }
        switch dtls.state {
        case .handshaking: break
        case .connected(let keys):
            guard self.receiver == nil else { return }
            do throws(DTLSError) {
                if let (negotiation, own) = self.watched { self.media = try MediaSender(negotiation, own, keys) }
                if let published = self.published {
                    self.reports = try SRTPSender(keys)
                    self.publisher = MediaReceiver(published.formats, source: UInt32.random(in: 1...UInt32.max))
                }
                self.receiver = try SRTPReceiver(keys)
                self.connectedAfterMs = nowMs - (self.handshakeMs ?? nowMs)
                self.connectIfReady()
            } catch {
                self.end(.handshake(error))
            }
        case .closed: self.end(.goodbye)
        case .failed(let error): self.end(.handshake(error))
        }
    }

    private func connectIfReady() {
        guard self.state == .handshaking, self.receiver != nil, self.selected != nil else { return }
        self.state = .connected
    }

    // MARK: Time

    /// Applies deadlines; call it at ``nextMs(nowMs:)``, or more often.
    package func tick(nowMs: Int64) {
        guard !self.isOver else { return }
        if self.state == .connected {
            let answeredMs = self.paths.first { $0.address == self.selected }?.answeredMs ?? self.lostMs
            guard let answeredMs, nowMs - max(answeredMs, self.heardMs ?? answeredMs) < Self.consentMs else {
                return self.end(.consentExpired)
            }
        } else if nowMs - self.bornMs >= Self.connectMs {
            if self.paths.isEmpty { return self.end(.neverChecked) }
            return self.end(self.selected == nil ? .neverProven : .handshake(nil))
        }
        if let dtls = self.dtls, dtls.state == .handshaking, let retryMs = dtls.retryMs, retryMs == 0 {
            dtls.timeout()
            self.followDTLS(nowMs: nowMs)
        }
        for index in self.paths.indices {
            let path = self.paths[index]
            let isNews = !path.isProven(nowMs: nowMs)
            // An address that does not answer is asked ten times, one that did for as long as it is in use.
            guard isNews ? path.tries < Self.firstChecks : path.address == self.selected else { continue }
            let waitMs = isNews || path.tries > 0 && path.tries < Self.firstChecks ? Self.firstCheckMs << min(path.tries, 4) : Self.checkMs
            if nowMs - path.sentMs >= waitMs { self.sendCheck(index, nowMs: nowMs) }
        }
    }

    /// When ``tick(nowMs:)`` is due at the latest.
    package func nextMs(nowMs: Int64) -> Int64 {
        if self.state == .connected {
            // What a publisher lacks is asked for soon, and given up in time.
            return nowMs + (self.publisher == nil ? self.media?.reportIntervalMs ?? 1_000 : Self.publisherMs)
        }
        return nowMs + min(self.dtls?.retryMs ?? 50, 50)
    }

    /// Says goodbye, if there is anybody to say it to.
    package func close() {
        guard !self.isOver else { return }
        if let goodbye = self.media?.goodbye() ?? self.publisherGoodbye, let address = self.address { self.send(goodbye, to: address) }
        self.dtls?.close()
        if let dtls = self.dtls, let address = self.selected ?? self.dtlsAddress {
            for datagram in dtls.popDatagrams() { self.send(datagram, to: address) }
        }
        self.state = .over(.goodbye)
    }

    /// Protected RTCP that is due: reports of what was sent. `wallMs`: since 1970.
    package func reportsDue(nowMs: Int64, wallMs: Int64) -> [UInt8]? {
        guard self.state == .connected else { return nil }
        return self.media?.reportsDue(nowMs: nowMs, wallMs: wallMs)
    }

    /// Protected RTCP that a publisher is to get now: what is missing, how its tracks arrive.
    package func answersDue(nowMs: Int64) -> [UInt8]? {
        guard self.state == .connected, let publisher = self.publisher else { return nil }
        let reports = publisher.popReports(nowMs: nowMs)
        return reports.isEmpty ? nil : self.reports?.protectControl(reports)
    }

    private var publisherGoodbye: [UInt8]? {
        self.publisher.flatMap { self.reports?.protectControl($0.goodbye) }
    }

    private func end(_ end: End) {
        if self.isOver { return }
        self.state = .over(end)
    }

    private func send(_ bytes: [UInt8], to address: DatagramAddress) { self.outgoing.append((address, bytes)) }
}
