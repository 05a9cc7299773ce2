package import DTLSSRTP
package import Support

/// A client that watches a stream by WHEP: makes an offer, reads the answer, connects, and puts pictures and sound together. No socket, no clock. Used by
/// one thread at a time.
///
/// For checks of a server: it neither repairs losses nor decodes.
package final class WatchingClient {
    /// A unit of H.264, or a packet of sound.
    package enum Media: Sendable, Equatable {
        case unit([UInt8])
        case sound([UInt8])
    }

    package private(set) var isConnected = false
    /// Why it cannot go on.
    package private(set) var problem: String?
    package private(set) var media: [Media] = []
    /// Whether any check was answered: the server's port is within reach.
    package private(set) var wasAnswered = false

    private let context: DTLSContext
    private let user = "watch"
    private let password: String
    private var server: (user: String, password: [UInt8], fingerprints: [Fingerprint])?
    private var target: DatagramAddress?
    private var transaction: [UInt8] = []
    private var checkedMs: Int64 = .min / 2
    private var dtls: DTLSAssociation?
    private var receiver: SRTPReceiver?
    private var videoIndex: UInt64?
    private var depacketizer = H264Depacketizer()
    private var outgoing: [[UInt8]] = []

    package static let videoType: UInt8 = 102
    private static let soundType: UInt8 = 111
    private static let checkMs: Int64 = 50
    private static let keepMs: Int64 = 2_000

    package init() throws(DTLSError) {
        self.context = try DTLSContext()
        self.password = MessageIntegrity.random(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    package var offer: String {
        let transport = [
            "a=ice-ufrag:\(self.user)", "a=ice-pwd:\(self.password)", "a=fingerprint:\(self.context.fingerprint.text)", "a=setup:active",
        ]
        let lines =
            ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0 1"] + transport + [
                "m=video 9 UDP/TLS/RTP/SAVPF \(Self.videoType)", "c=IN IP4 0.0.0.0", "a=mid:0", "a=recvonly", "a=rtcp-mux",
                "a=rtpmap:\(Self.videoType) H264/90000", "a=fmtp:\(Self.videoType) packetization-mode=1;profile-level-id=64001f",
                "m=audio 9 UDP/TLS/RTP/SAVPF \(Self.soundType)", "c=IN IP4 0.0.0.0", "a=mid:1", "a=recvonly", "a=rtcp-mux",
                "a=rtpmap:\(Self.soundType) opus/48000/2",
            ]
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    /// Reads the answer. Returns the addresses that it names, of which one is to be given to ``begin(with:)``.
    package func read(answer: String) throws(SessionDescriptionError) -> [SessionOffer.Candidate] {
        let answer = try SessionOffer(answer)
        guard let media = answer.media.first(where: { $0.port != 0 && $0.user ?? answer.user != nil }),
            let user = media.user ?? answer.user, let password = media.password ?? answer.password
        else { throw .missing("a=ice-ufrag and a=ice-pwd") }
        let fingerprints = media.fingerprints.isEmpty ? answer.fingerprints : media.fingerprints
        guard !fingerprints.isEmpty else { throw .missing("a=fingerprint") }
        self.server = (user, Array(password.utf8), fingerprints)
        return answer.media.flatMap(\.candidates)
    }

    package func begin(with target: DatagramAddress) { self.target = target }

    /// What is to be sent to the target now.
    package func popDatagrams() -> [[UInt8]] {
        defer { self.outgoing = [] }
        return self.outgoing
    }

    package func popMedia() -> [Media] {
        defer { self.media = [] }
        return self.media
    }

    /// Call it every 20 ms or so.
    package func tick(nowMs: Int64) {
        guard let server = self.server, self.target != nil, self.problem == nil else { return }
        if nowMs - self.checkedMs >= (self.wasAnswered ? Self.keepMs : Self.checkMs) {
            self.checkedMs = nowMs
            self.transaction = MessageIntegrity.random(STUNMessage.transactionBytes)
            var check = STUNMessage.check("\(server.user):\(self.user)", transaction: self.transaction)
            // The controlling side, which nominates at once (RFC 8445 §7.1.2).
            check.attributes.removeAll { $0.type == STUNMessage.AttributeType.iceControlled }
            check.attributes.append(STUNMessage.Attribute(type: 0x802A, value: MessageIntegrity.random(8)))
            check.attributes.append(STUNMessage.Attribute(type: STUNMessage.AttributeType.useCandidate, value: []))
            self.outgoing.append(check.bytes(password: server.password))
        }
        if let dtls = self.dtls, dtls.retryMs == 0 {
            dtls.timeout()
            self.followDTLS()
        }
    }

    package func receive(_ datagram: UnsafeRawBufferPointer) {
        guard let server = self.server, self.problem == nil, let first = datagram.first else { return }
        if STUNMessage.isMessage(first) {
            guard let message = STUNMessage(datagram) else { return }
            if message.kind == .request, message.isIntact(datagram, password: Array(self.password.utf8)), let target = self.target {
                self.outgoing.append(STUNMessage.success(message, to: target).bytes(password: Array(self.password.utf8)))
            } else if message.kind == .success, message.isIntact(datagram, password: server.password) {
                self.answered(server.fingerprints)
            }
        } else if DTLSAssociation.isRecord(first) {
            self.dtls?.receive(datagram)
            self.followDTLS()
        } else if datagram.count > 12, !(192...223).contains(datagram[1]), let opened = self.receiver?.open(datagram, header: 12) {
            let payload = opened.packet.dropFirst(12)
            if opened.packet[1] & 0x7F == Self.soundType {
                self.media.append(.sound(Array(payload)))
            } else {
                // Of a unit that lacks a piece, nothing is made.
                if let last = self.videoIndex, opened.index != last + 1 { self.depacketizer = H264Depacketizer() }
                self.videoIndex = opened.index
                self.media += self.depacketizer.append(payload).map { .unit($0) }
            }
        }
    }

    private func answered(_ fingerprints: [Fingerprint]) {
        self.wasAnswered = true
        guard self.dtls == nil else { return }
        do throws(DTLSError) {
            self.dtls = try DTLSAssociation(self.context, .active, expected: fingerprints)
            self.dtls?.begin()
            self.followDTLS()
        } catch {
            self.problem = "\(error)"
        }
    }

    private func followDTLS() {
        guard let dtls = self.dtls else { return }
        self.outgoing += dtls.popDatagrams()
        switch dtls.state {
        case .handshaking: break
        case .connected(let keys):
            guard self.receiver == nil else { return }
            do throws(DTLSError) {
                self.receiver = try SRTPReceiver(keys)
                self.isConnected = true
            } catch {
                self.problem = "\(error)"
            }
        case .closed: self.problem = "the server said goodbye"
        case .failed(let error): self.problem = "\(error)"
        }
    }
}
