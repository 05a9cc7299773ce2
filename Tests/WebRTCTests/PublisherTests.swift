import DTLSSRTP
import Support
import Testing

@testable import WebRTC

/// A publisher's connection in memory.
@Suite struct PublisherTests {
    /// Both ends, and what the server got.
    private final class Push {
        let browser: FakeBrowser
        let peer: PeerConnection
        var nowMs: Int64 = 1_000
        var output: [MediaReceiver.Output] = []
        /// Packets of the browser that do not arrive, by their number in the order of sending.
        var lost: Set<Int> = []
        private var sent = 0
        private let address = DatagramAddress(ipv4: 0x7F00_0001, port: 5_000)

        init() throws {
            self.browser = try FakeBrowser()
            self.browser.publishes = true
            self.browser.reportsArrivals = true
            let negotiation = try PublishNegotiation(SessionOffer(self.browser.offer))
            let context = try DTLSContext()
            let own = OwnTransport(
                user: "abcdefgh", password: "01234567890123456789abcdef", fingerprint: context.fingerprint,
                candidates: [("127.0.0.1", 8_189)])
            self.browser.serverUser = own.user
            self.browser.serverPassword = own.password
            self.peer = PeerConnection(negotiation, own, context, nowMs: self.nowMs)
        }

        func step(ms: Int64 = 1) {
            self.nowMs += ms
            for bytes in self.browser.outgoing {
                let isMedia = bytes.count > 1 && bytes[0] >> 6 == 2 && !(192...223).contains(bytes[1])
                if isMedia { self.sent += 1 }
                guard !isMedia || !self.lost.contains(self.sent) else { continue }
                bytes.withUnsafeBytes { _ = self.peer.receive($0, from: self.address, nowMs: self.nowMs) }
            }
            self.browser.outgoing = []
            self.peer.tick(nowMs: self.nowMs)
            self.peer.publisher?.tick(nowMs: self.nowMs)
            self.output += self.peer.publisher?.popOutput() ?? []
            for (_, bytes) in self.peer.popDatagrams() { self.browser.receive(bytes) }
            if let answer = self.peer.answersDue(nowMs: self.nowMs) { self.browser.receive(answer) }
        }

        func connect() {
            for round in 0..<20_000 where self.peer.state != .connected || !self.browser.isConnected {
                if round % 50 == 0 { self.browser.check() }
                self.browser.shake()
                self.step()
            }
        }

        /// A picture of one slice that begins with its number, in three packets.
        func picture(_ number: UInt8, first: UInt64, isKeyframe: Bool = false) {
            let type: UInt8 = isKeyframe ? 5 : 1
            for piece in UInt8(0)..<3 {
                let header = [0x7C, type | (piece == 0 ? 0x80 : 0) | (piece == 2 ? 0x40 : 0), piece == 0 ? 0x80 : 0, number]
                self.browser.send(
                    header, type: 102, source: 7, index: first + UInt64(piece), time: 3_600 * UInt32(number), isMarked: piece == 2,
                    number: UInt16(first) + UInt16(piece))
            }
            self.step(ms: 40)
        }

        /// The types of RTCP that the browser got: (packet type, format).
        var answers: [(UInt8, UInt8)] {
            self.browser.control.flatMap { compound in
                var found: [(UInt8, UInt8)] = []
                var at = 0
                while at + 4 <= compound.count {
                    found.append((compound[at + 1], compound[at] & 0x1F))
                    at += 4 * (Int(compound[at + 2]) << 8 + Int(compound[at + 3]) + 1)
                }
                return found
            }
        }
    }

    private static func pictures(_ output: [MediaReceiver.Output]) -> [(number: UInt8?, isKeyframe: Bool, ms: Int64)] {
        output.compactMap { if case .picture(let units, let isKeyframe, let ms) = $0 { (units.first?.last, isKeyframe, ms) } else { nil } }
    }

    /// Pictures and sound come out in order, with times; the publisher is told how they arrive and, by its own wish, when.
    @Test func mediaArrives() throws {
        let push = try Push()
        push.connect()
        #expect(push.peer.state == .connected)
        for number in UInt8(1)...20 {
            push.browser.send([1, 2, number], type: 111, source: 8, index: UInt64(number), time: 960 * UInt32(number))
            push.picture(number, first: 100 + 3 * UInt64(number), isKeyframe: number == 1)
        }
        let pictures = Self.pictures(push.output)
        #expect(pictures.map(\.number) == (1...20).map { $0 } && pictures.map(\.isKeyframe) == [true] + Array(repeating: false, count: 19))
        #expect(pictures.last.map { $0.ms - pictures[0].ms } == 760)
        let sounds = push.output.compactMap { if case .sound(let bytes, let ms) = $0 { (bytes.last, ms) } else { nil } }
        #expect(sounds.count == 20 && sounds.last?.0 == 20 && sounds[19].1 - sounds[0].1 == 380)
        let answers = push.answers
        #expect(answers.contains { $0 == (201, 2) } && answers.contains { $0 == (205, 15) }, "\(answers)")
        // The keyframe came by itself.
        #expect(!answers.contains { $0.0 == 205 && $0.1 == 1 })
    }

    /// A lost packet is asked for, and the pictures wait for it.
    @Test func aLostPacketComesAgain() throws {
        let push = try Push()
        push.connect()
        push.lost = [5]
        push.picture(1, first: 100, isKeyframe: true)
        push.picture(2, first: 103)
        push.picture(3, first: 106)
        #expect(Self.pictures(push.output).map(\.number) == [1])
        #expect(push.answers.contains { $0 == (205, 1) })
        push.browser.send([0x7C, 1, 0, 2], type: 102, source: 7, index: 104, time: 7_200, number: 50)
        push.step()
        #expect(Self.pictures(push.output).map(\.number) == [1, 2, 3])
    }

    /// One that never comes costs its picture and those behind it; the publisher is asked for a keyframe, with which pictures go on.
    @Test func aLostPacketThatNeverComes() throws {
        let push = try Push()
        push.connect()
        push.lost = [5]
        push.picture(1, first: 100, isKeyframe: true)
        for number in UInt8(2)...12 { push.picture(number, first: 97 + 3 * UInt64(number)) }
        #expect(Self.pictures(push.output).map(\.number) == [1] && push.peer.publisher?.lost == 1)
        #expect(push.answers.contains { $0 == (206, 1) })
        push.picture(13, first: 136, isKeyframe: true)
        push.picture(14, first: 139)
        #expect(Self.pictures(push.output).map(\.number) == [1, 13, 14])
    }

    /// What comes from elsewhere, or is not the publisher's, changes nothing.
    @Test func strangers() throws {
        let push = try Push()
        push.connect()
        var generator = Link.SplitMix(state: 3)
        for _ in 0..<2_000 {
            var noise = (0..<Int.random(in: 0...60, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            if !noise.isEmpty { noise[0] = 0x80 | noise[0] & 0x3F }
            noise.withUnsafeBytes { bytes in
                #expect(!push.peer.receive(bytes, from: DatagramAddress(ipv4: 0x7F00_0001, port: 5_000), nowMs: push.nowMs))
                #expect(!push.peer.receive(bytes, from: DatagramAddress(ipv4: 0x7F00_0002, port: 6), nowMs: push.nowMs))
            }
        }
        push.picture(1, first: 100, isKeyframe: true)
        #expect(Self.pictures(push.output).count == 1)
    }

    // MARK: Offers

    private static let offer = """
        v=0\r
        o=FFmpeg 1 2 IN IP4 127.0.0.1\r
        s=FFmpegPublishSession\r
        t=0 0\r
        a=group:BUNDLE 0 1\r
        m=audio 9 UDP/TLS/RTP/SAVPF 111\r
        c=IN IP4 0.0.0.0\r
        a=ice-ufrag:abcd\r
        a=ice-pwd:0123456789012345678901\r
        a=fingerprint:sha-256 \(Array(repeating: "48", count: 32).joined(separator: ":"))\r
        a=setup:passive\r
        a=mid:0\r
        a=sendonly\r
        a=rtcp-mux\r
        a=rtpmap:111 opus/48000/2\r
        m=video 9 UDP/TLS/RTP/SAVPF 106 105\r
        c=IN IP4 0.0.0.0\r
        a=ice-ufrag:abcd\r
        a=ice-pwd:0123456789012345678901\r
        a=fingerprint:sha-256 \(Array(repeating: "48", count: 32).joined(separator: ":"))\r
        a=setup:passive\r
        a=mid:1\r
        a=sendonly\r
        a=rtcp-mux\r
        a=rtpmap:106 H264/90000\r
        a=fmtp:106 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42c01e\r
        a=rtcp-fb:106 nack\r
        a=rtpmap:105 rtx/90000\r
        a=fmtp:105 apt=106\r

        """

    /// A client that waits for the handshake, as ffmpeg does, gets a server that begins it.
    @Test func anOfferThatWaits() throws {
        let negotiation = try PublishNegotiation(SessionOffer(Self.offer))
        #expect(negotiation.remote.isPassive && negotiation.hasVideo && negotiation.hasSound)
        #expect(negotiation.formats == PublishFormats(video: 106, repeats: 105, sound: 111, repeatsOnRequest: true))
        let own = OwnTransport(
            user: "abcdefgh", password: "01234567890123456789abcdef", fingerprint: try DTLSContext().fingerprint,
            candidates: [("192.0.2.1", 8_189)])
        let lines = negotiation.answer(own, session: 7).split(separator: "\r\n").map(String.init)
        #expect(lines.filter { $0 == "a=setup:active" }.count == 2 && lines.filter { $0 == "a=recvonly" }.count == 2)
        #expect(lines.filter { $0.hasPrefix("m=") } == ["m=audio 8189 UDP/TLS/RTP/SAVPF 111", "m=video 9 UDP/TLS/RTP/SAVPF 106 105"])
        #expect(lines.filter { $0.hasPrefix("a=candidate:") } == ["a=candidate:1 1 udp 2130706431 192.0.2.1 8189 typ host"])
        #expect(!lines.contains { $0.contains("transport-cc") })
    }

    @Test func refusals() throws {
        func refusal(_ offer: String) -> String? {
            do throws(SessionDescriptionError) {
                _ = try PublishNegotiation(try SessionOffer(offer))
                return nil
            } catch {
                return "\(error)"
            }
        }
        #expect(refusal(Self.offer.replacing("sendonly", with: "recvonly"))?.contains("a=sendonly") == true)
        #expect(refusal(Self.offer.replacing("opus", with: "isac").replacing("H264", with: "VP8"))?.contains("H.264 and Opus") == true)
        // Sound alone, and pictures alone.
        #expect(refusal(Self.offer.replacing("opus", with: "isac")) == nil && refusal(Self.offer.replacing("H264", with: "VP8")) == nil)
    }
}
