import COpenSSL
import Support
import Testing

@testable import DTLSSRTP
@testable import WebRTC

/// The other side of a connection in memory: a full ICE agent that nominates, a DTLS client, SRTP, a depacketizer. By libssl's client, so that the
/// handshake is not the server's own idea of one.
final class FakeBrowser {
    private let context: OpaquePointer
    private let ssl: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer
    let fingerprint: Fingerprint
    let user = "brws"
    let password = "0123456789012345678901"
    /// The server's side, from its answer.
    var serverUser = ""
    var serverPassword = ""
    var address: DatagramAddress
    private var transaction = [UInt8](repeating: 7, count: 12)
    private var mapped: [DatagramAddress] = []
    private(set) var isConnected = false
    private(set) var hasChecked = false
    private var receiver: SRTPReceiver?
    private var sender: SRTPSender?
    /// Whether its offer has a format for repeats.
    var offersRepeats = true
    /// Whether it reports when each packet comes.
    var reportsArrivals = false
    /// Whether it sends media instead of receiving it.
    var publishes = false
    /// Whether it can hold pictures back.
    var knowsDelay = false
    /// Whether it answers checks.
    var answersChecks = true
    /// Sent to the server next.
    var outgoing: [[UInt8]] = []
    /// Clear packets by synchronization source, in order of arrival.
    private(set) var packets: [UInt32: [(index: UInt64, packet: [UInt8])]] = [:]
    private(set) var control: [[UInt8]] = []
    /// Datagrams that were not the server's.
    private(set) var refused = 0

    init(profiles: String = "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80", port: UInt16 = 5_000) throws {
        self.address = DatagramAddress(ipv4: 0x7F00_0001, port: port)
        self.context = try #require(SSL_CTX_new(DTLS_client_method()))
        // A certificate of its own, made as the server's.
        let own = try DTLSContext()
        let certificate = try #require(SSL_CTX_get0_certificate(own.context))
        let key = try #require(SSL_CTX_get0_privatekey(own.context))
        #expect(SSL_CTX_use_certificate(self.context, certificate) == 1 && SSL_CTX_use_PrivateKey(self.context, key) == 1)
        #expect(profiles.isEmpty || SSL_CTX_set_tlsext_use_srtp(self.context, profiles) == 0)
        self.fingerprint = own.fingerprint
        self.ssl = try #require(SSL_new(self.context))
        self.input = try #require(BIO_new(BIO_s_mem()))
        self.output = try #require(BIO_new(BIO_s_mem()))
        SSL_set_bio(self.ssl, self.input, self.output)
        SSL_set_connect_state(self.ssl)
        earshot_dtls_set_mtu(self.ssl, 1_200)
        // A second at first, otherwise.
        DTLS_set_timer_cb(self.ssl) { _, lastUs in lastUs == 0 ? 50_000 : min(lastUs * 2, 1_000_000) }
    }

    deinit {
        SSL_free(self.ssl)
        SSL_CTX_free(self.context)
    }

    var offer: String {
        """
        v=0\r
        o=- 1 2 IN IP4 127.0.0.1\r
        s=-\r
        t=0 0\r
        a=group:BUNDLE 0 1\r
        a=fingerprint:\(self.fingerprint.text)\r
        a=setup:actpass\r
        a=ice-ufrag:\(self.user)\r
        a=ice-pwd:\(self.password)\r
        m=video 9 UDP/TLS/RTP/SAVPF 102 103\r
        c=IN IP4 0.0.0.0\r
        a=mid:0\r
        a=\(self.publishes ? "sendonly" : "recvonly")\r
        a=rtcp-mux\r
        a=rtpmap:102 H264/90000\r
        a=rtcp-fb:102 nack\r
        a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r
        \(self.reportsArrivals ? "a=extmap:4 \(SessionOffer.transportNumberURI)\r\na=rtcp-fb:102 transport-cc" : "a=x")\r
        \(self.knowsDelay ? "a=extmap:5/recvonly \(SessionOffer.delayURI)" : "a=x")\r
        \(self.offersRepeats ? "a=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102" : "a=x")\r
        m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r
        c=IN IP4 0.0.0.0\r
        a=mid:1\r
        a=\(self.publishes ? "sendonly" : "recvonly")\r
        a=rtcp-mux\r
        a=rtpmap:111 opus/48000/2\r

        """
    }

    // MARK: Out

    func check(nominates: Bool = true, password: String? = nil, user: String? = nil) {
        var check = STUNMessage.check(user ?? "\(self.serverUser):\(self.user)", transaction: self.transaction)
        check.attributes.removeAll { $0.type == 0x8029 }
        check.attributes.append(STUNMessage.Attribute(type: 0x802A, value: [0, 0, 0, 0, 0, 0, 0, 1]))
        if nominates { check.attributes.append(STUNMessage.Attribute(type: 0x0025, value: [])) }
        self.outgoing.append(check.bytes(password: Array((password ?? self.serverPassword).utf8)))
    }

    /// Continues the handshake, and repeats a flight whose answer is overdue.
    func shake() {
        if earshot_dtls_timeout_us(self.ssl) == 0 { _ = earshot_dtls_handle_timeout(self.ssl) }
        if !self.isConnected, SSL_do_handshake(self.ssl) == 1 { self.connected() }
        self.collect()
    }

    /// An RTP packet under this index. `number`: the transport-wide one, in the header extension 4.
    func send(
        _ payload: [UInt8], type: UInt8, source: UInt32, index: UInt64, time: UInt32, isMarked: Bool = false, number: UInt16? = nil
    ) {
        var packet: [UInt8] = [number == nil ? 0x80 : 0x90, isMarked ? 0x80 | type : type]
        packet.append16(UInt16(truncatingIfNeeded: index))
        packet.append32(time)
        packet.append32(source)
        if let number {
            packet += [0xBE, 0xDE, 0, 1, 0x41]
            packet.append16(number)
            packet.append(0)
        }
        let header = packet.count
        packet += [UInt8](repeating: 0, count: payload.count + 32)
        let count = packet.withUnsafeMutableBytes { output in
            payload.withUnsafeBytes { self.sender?.protect(header: header, payload: $0, ssrc: source, index: index, into: output) ?? 0 }
        }
        if count > 0 { self.outgoing.append(Array(packet.prefix(count))) }
    }

    func sendControl(_ packet: [UInt8]) {
        if let sealed = self.sender?.protectControl(packet) { self.outgoing.append(sealed) }
    }

    /// RFC 4585 §6.2.1.
    func reportMissing(_ numbers: [UInt16], of source: UInt32) {
        var packet: [UInt8] = [0x81, 205, 0, UInt8(2 + numbers.count), 0, 0, 0, 1]
        packet.append32(source)
        for number in numbers {
            packet.append16(number)
            packet.append16(0)
        }
        self.sendControl(packet)
    }

    /// RFC 3550 §6.4.2. `fractionLost`: in 256ths.
    func reportReception(of source: UInt32, fractionLost: UInt8) {
        var packet: [UInt8] = [0x81, 201, 0, 7, 0, 0, 0, 1]
        packet.append32(source)
        packet += [fractionLost] + [UInt8](repeating: 0, count: 19)
        self.sendControl(packet)
    }

    /// draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1, each packet as one that came with a difference of two bytes, or as none. `arrived`: ms on
    /// the browser's clock.
    func reportArrivals(_ first: UInt16, _ arrived: [Int64?]) {
        var packet: [UInt8] = [0x8F, 205, 0, 0, 0, 0, 0, 1, 0, 0, 0x11, 0x11]
        packet.append16(first)
        packet.append16(UInt16(arrived.count))
        let reference = (arrived.compactMap { $0 }.first ?? 0) / 64
        packet += [
            UInt8(truncatingIfNeeded: reference >> 16), UInt8(truncatingIfNeeded: reference >> 8), UInt8(truncatingIfNeeded: reference), 0,
        ]
        for start in stride(from: 0, to: arrived.count, by: 7) {
            var chunk: UInt16 = 0xC000
            for (place, time) in arrived[start..<min(start + 7, arrived.count)].enumerated() where time != nil {
                chunk |= 2 << UInt16(12 - 2 * place)
            }
            packet.append16(chunk)
        }
        var before = reference * 64
        for case let time? in arrived {
            packet.append16(UInt16(bitPattern: Int16((time - before) * 4)))
            before = time
        }
        while packet.count % 4 != 0 { packet.append(0) }
        packet[3] = UInt8(packet.count / 4 - 1)
        self.sendControl(packet)
    }

    func askForKeyframe(of source: UInt32) {
        var packet: [UInt8] = [0x81, 206, 0, 2, 0, 0, 0, 1]
        packet.append32(source)
        self.sendControl(packet)
    }

    func close() {
        _ = SSL_shutdown(self.ssl)
        self.collect()
    }

    private func collect() {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let count = BIO_read(self.output, &buffer, CInt(buffer.count))
        guard count > 0 else { return }
        var start = 0
        while start + 13 <= Int(count) {
            let record = 13 + Int(buffer[start + 11]) << 8 + Int(buffer[start + 12])
            self.outgoing.append(Array(buffer[start..<min(start + record, Int(count))]))
            start += record
        }
    }

    private func connected() {
        self.isConnected = true
        guard let profile = SSL_get_selected_srtp_profile(self.ssl).flatMap({ SRTPProfile(rawValue: UInt($0.pointee.id)) }) else { return }
        let label = "EXTRACTOR-dtls_srtp"
        var bytes = [UInt8](repeating: 0, count: 2 * (16 + profile.saltBytes))
        _ = SSL_export_keying_material(self.ssl, &bytes, bytes.count, label, label.utf8.count, nil, 0, 0)
        let salts = bytes[32...]
        let client = SRTPKeys.Master(key: Array(bytes[..<16]), salt: Array(salts.prefix(profile.saltBytes)))
        let server = SRTPKeys.Master(key: Array(bytes[16..<32]), salt: Array(salts.suffix(profile.saltBytes)))
        let keys = SRTPKeys(profile: profile, peer: server, own: client)
        self.receiver = try? SRTPReceiver(keys)
        self.sender = try? SRTPSender(keys)
    }

    // MARK: In

    func receive(_ datagram: [UInt8]) {
        guard let first = datagram.first else { return }
        if STUNMessage.isMessage(first) {
            guard let message = datagram.withUnsafeBytes({ STUNMessage($0) }) else { return }
            switch message.kind {
            case .success: self.hasChecked = true
            case .request where self.answersChecks:
                guard datagram.withUnsafeBytes({ message.isIntact($0, password: Array(self.password.utf8)) }) else { return }
                self.outgoing.append(STUNMessage.success(message, to: self.address).bytes(password: Array(self.password.utf8)))
            default: break
            }
        } else if DTLSAssociation.isRecord(first) {
            _ = datagram.withUnsafeBytes { BIO_write(self.input, $0.baseAddress, CInt($0.count)) }
            self.shake()
        } else if datagram.count > 1, (192...223).contains(datagram[1]) {
            if let clear = datagram.withUnsafeBytes({ self.receiver?.openControl($0) }) {
                self.control.append(clear)
            } else {
                self.refused += 1
            }
        } else {
            // RFC 3550 §5.3.1: an extension, in words behind its first.
            let header = first & 0x10 != 0 && datagram.count > 16 ? 16 + 4 * (Int(datagram[14]) << 8 | Int(datagram[15])) : 12
            guard let opened = datagram.withUnsafeBytes({ self.receiver?.open($0, header: header) }) else {
                self.refused += 1
                return
            }
            let source = opened.packet[8..<12].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            self.packets[source, default: []].append((opened.index, opened.packet))
        }
    }
}
