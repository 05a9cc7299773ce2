import DTLSSRTP
import NIOCore
import Support

@testable import WebRTC

extension FuzzTarget {
    /// A datagram as STUN: what is read can be written and read again; nobody's integrity is right by accident.
    static let stun = FuzzTarget("stun", maxLength: 1_500) { input in
        let bytes = input.rest
        guard let message = bytes.withUnsafeBytes({ STUNMessage($0) }) else { return }
        expect(bytes.count >= STUNMessage.headerBytes && bytes.count % 4 == 0, "a message of \(bytes.count) bytes")
        let password = Array("a password of the fuzz target".utf8)
        expect(!bytes.withUnsafeBytes { message.isIntact($0, password: password) }, "the integrity of a password that nobody has")
        let own = STUNMessage(message.kind, transaction: message.transaction, message.attributes.filter { $0.type != 0x0008 }).bytes(
            password: password)
        guard own.count <= 1_500, let again = own.withUnsafeBytes({ STUNMessage($0) }) else { return }
        expect(again.transaction == message.transaction && again.kind == message.kind, "another message when written and read")
        expect(own.withUnsafeBytes { again.isIntact($0, password: password) }, "integrity lost")
    }

    /// An offer: within the limits, and with an answer that has a section for each of its own.
    static let sessionOffer = FuzzTarget("session-offer", maxLength: 8 << 10, allocationMiB: 8) { input in
        let text = String(decoding: input.rest, as: UTF8.self)
        do throws(SessionDescriptionError) {
            let offer = try SessionOffer(text)
            expect(offer.media.count <= 16 && offer.media.allSatisfy { $0.formats.count <= 128 }, "more than the limits allow")
            guard let own else { return }
            do throws(SessionDescriptionError) {
                let answer = try PublishNegotiation(offer).answer(own.transport, session: 1)
                expect(answer.split(separator: "\r\n").filter { $0.hasPrefix("m=") }.count == offer.media.count, "m-lines lost: \(answer)")
            } catch {
                expect(!"\(error)".isEmpty, "an error without words")
            }
            var negotiation = try Negotiation(offer)
            let answer = negotiation.answer(own, session: 1)
            expect(answer.split(separator: "\r\n").filter { $0.hasPrefix("m=") }.count == offer.media.count, "m-lines lost: \(answer)")
            expect(!answer.contains("\n\n"), "an empty line")
            for kind in [UInt8(66), 77, 100, 244, 0, 255] {
                let format = negotiation.format(for: .h264(H264Profile(idc: kind, constraints: 0xE0)))
                expect((format == nil) == !negotiation.video.contains { $0.profile.codec == .h264 }, "no format of H.264")
            }
            for profile in [VideoProfile.h265(1), .vp9(0), .av1(0)] {
                let format = negotiation.format(for: profile)
                guard negotiation.narrow(to: profile) else {
                    expect(format == nil, "a format that the answer would not have")
                    continue
                }
                expect(negotiation.video.allSatisfy { $0.profile.codec == profile.codec } && format != nil, "another codec")
            }
        } catch {
            expect(!"\(error)".isEmpty, "an error without words")
        }
    }

    private static let own: Negotiation.Own? = Fingerprint("sha-256 " + Array(repeating: "00", count: 32).joined(separator: ":")).map {
        Negotiation.Own(
            OwnTransport(user: "abcdefgh", password: "01234567890123456789abcdef", fingerprint: $0, candidates: [("192.0.2.1", 8_080)]),
            videoSource: 1, repeatSource: 2, soundSource: 3)
    }

    /// A viewer's RTCP: bounded, whatever it says of its lengths.
    static let controlPackets = FuzzTarget("control-packets", maxLength: 4_096) { input in
        let packets = ControlPacket.parse(input.rest)
        expect(packets.count <= 32 * 512, "\(packets.count) packets")
        for case .missing(_, let numbers) in packets { expect(numbers.count < 600, "\(numbers.count) numbers") }
    }

    /// NAL units of a device, in packets: what a client puts together are the slices that went in.
    static let packets = FuzzTarget("packets", maxLength: 16 << 10) { input in
        var input = input
        var units: [ByteBuffer] = []
        while !input.isEmpty, units.count < 64 { units.append(ByteBuffer(bytes: input.pop(Int(input.word() & 0x3FFF)))) }
        _ = H264Packetizer.order(of: units)
        var packetizer = H264Packetizer()
        guard let bundle = packetizer.bundle(units, time: 1) else { return }
        bundle.withUnsafeReadableBytes { bytes in
            guard let read = PacketBundle(bytes) else { return expect(false, "a bundle that cannot be read") }
            var bodies: [UInt8] = []
            var count = 0
            read.forEach { payload, isLast in
                count += 1
                expect(
                    payload.count <= Payload.longest && (count == read.count) == isLast,
                    "packet \(count) of \(payload.count) bytes")
                guard let first = payload.first else { return expect(false, "an empty packet") }
                if first & 0x1F == 28 { bodies += payload.dropFirst(2) } else if first & 0x1F != 24 { bodies += payload.dropFirst() }
            }
            let sent = units.filter { $0.getInteger(at: 0, as: UInt8.self).map { (1...5).contains($0 & 0x1F) } ?? false }
            let wanted = sent.reduce(0) { $0 + $1.readableBytes - 1 }
            // Sets that do not fit an aggregate go by themselves.
            expect(bodies.count >= wanted, "\(bodies.count) of \(wanted) bytes")
        }
    }

    /// Pictures of the other codecs, in packets: bounded in size, and not much more of them than of the picture.
    static let otherPackets = FuzzTarget("other-packets", maxLength: 16 << 10) { input in
        var input = input
        let (codec, isKeyframe) = (input.byte(), input.byte() & 1 == 1)
        let picture = ByteBuffer(bytes: input.pop(Int(input.word() & 0x3FFF)))
        let rest = ByteBuffer(bytes: input.rest)
        var packetizer: any VideoPacketizer =
            switch codec % 3 {
            case 0: H265Packetizer(H265Packetizer.Sets(video: [rest], sequence: [rest], picture: []), profile: codec)
            case 1: VP9Packetizer()
            default: AV1Packetizer(rest, profile: codec)
            }
        _ = H265Packetizer.isReference([rest, picture], layers: Int(codec & 7))
        guard let bundle = packetizer.bundle([picture], time: 1, isKeyframe: isKeyframe) else { return }
        bundle.withUnsafeReadableBytes { bytes in
            guard let read = PacketBundle(bytes) else { return expect(false, "a bundle that cannot be read") }
            expect(read.profile.codec == packetizer.profile.codec, "\(read.profile)")
            expect(bytes.count <= 1_024 + 3 * (picture.readableBytes + 2 * rest.readableBytes), "\(bytes.count) bytes")
            read.forEach { payload, _ in expect((1...Payload.longest).contains(payload.count), "a packet of \(payload.count) bytes") }
        }
    }

    /// A publisher's packets in any order, of any time, with gaps: what comes out is in order and no more than went in, what is held is bounded.
    static let publishedPackets = FuzzTarget("published-packets", maxLength: 16 << 10, allocationMiB: 8) { input in
        var input = input
        let formats = PublishFormats(video: 96, repeats: 97, sound: 111, repeatsOnRequest: true, number: 1)
        let receiver = MediaReceiver(formats, source: 1)
        var nowMs: Int64 = 0
        var indices: [UInt8: UInt64] = [:]
        var (given, got) = (0, 0)
        while !input.isEmpty {
            let options = input.byte()
            let type: UInt8 = [96, 96, 97, 111][Int(options & 3)]
            let step = options & 4 == 0 ? 1 : Int64(Int16(bitPattern: input.word()))
            let index = UInt64(max(0, Int64(clamping: indices[type] ?? 100) + step))
            indices[type] = index
            let time = options & 8 == 0 ? UInt32(truncatingIfNeeded: nowMs * 90) : UInt32(input.word()) << 16 | UInt32(input.word())
            let payload = input.pop(Int(input.byte()))
            given += payload.count
            let packet = RTPPacket(
                payloadType: type, isMarked: options & 16 != 0, index: index, time: time, source: options & 32 == 0 ? 7 : 8,
                payload: payload[...])
            receiver.receive(packet, number: options & 64 == 0 ? nil : UInt16(truncatingIfNeeded: index), nowMs: nowMs)
            nowMs += Int64(input.byte())
            receiver.tick(nowMs: nowMs)
            for output in receiver.popOutput() {
                switch output {
                case .picture(let units, _, _): got += units.reduce(0) { $0 + $1.count }
                case .sound(let bytes, _): got += bytes.count
                }
            }
            let reports = receiver.popReports(nowMs: nowMs)
            expect(reports.count <= 4_096 && reports.count % 4 == 0, "a report of \(reports.count) bytes")
            expect(ControlPacket.parse(reports).count <= 64, "unreadable reports")
        }
        expect(got <= given, "\(got) bytes out of \(given)")
        expect(receiver.heldBytes <= given, "\(receiver.heldBytes) bytes held of \(given)")
    }

    /// Datagrams at a viewer's connection: its own checks, then anything. Nothing is sent to who has not the password, and not much to who has.
    static let webRTCPeer = FuzzTarget("webrtc-peer", maxLength: 8 << 10, allocationMiB: 8, timeoutSeconds: 20) { input in
        guard let shared = Peer.shared, let own, let negotiation = Peer.negotiation else { return }
        var input = input
        let options = input.byte()
        let peer = PeerConnection(negotiation, own, shared, nowMs: 0)
        let (friend, stranger) = (DatagramAddress(ipv4: 0x7F00_0001, port: 5_000), DatagramAddress(ipv4: 0xC000_0201, port: 9))
        var nowMs: Int64 = 0
        func give(_ bytes: [UInt8], _ address: DatagramAddress) {
            bytes.withUnsafeBytes { _ = peer.receive($0, from: address, nowMs: nowMs) }
        }
        if options & 1 != 0 {
            let check = STUNMessage.check("\(own.transport.user):\(negotiation.remote.user)", transaction: [UInt8](repeating: 1, count: 12))
            var mine = check
            mine.attributes.removeAll { $0.type == 0x8029 }
            give(mine.bytes(password: Array(own.transport.password.utf8)), friend)
        }
        var sent = 0
        while !input.isEmpty {
            let bytes = input.pop(Int(input.word() & 0x0FFF))
            give(bytes, input.byte() & 1 == 0 ? friend : stranger)
            nowMs += Int64(input.byte())
            peer.tick(nowMs: nowMs)
            for (to, datagram) in peer.popDatagrams() {
                expect(to == friend, "a stranger was sent \(datagram.count) bytes")
                expect(datagram.count <= 1_500, "a datagram of \(datagram.count) bytes")
                sent += datagram.count
            }
        }
        expect(options & 1 != 0 || sent == 0, "sent without a check")
        expect(peer.media == nil, "keys without a handshake")
    }

    private enum Peer {
        static let shared: DTLSContext? = { do throws(DTLSError) { return try DTLSContext() } catch { return nil } }()
        static let negotiation: Negotiation? = {
            let offer =
                "v=0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=fingerprint:sha-256 "
                + Array(repeating: "00", count: 32).joined(separator: ":")
                + "\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=recvonly\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\n"
            do throws(SessionDescriptionError) { return try Negotiation(try SessionOffer(offer)) } catch { return nil }
        }()
    }
}
