import NIOCore
import Support
import Testing

@testable import DTLSSRTP
@testable import WebRTC

/// The client of our own checks, against the server's side in memory.
@Suite struct WatchingClientTests {
    @Test func itWatches() throws {
        let client = try WatchingClient()
        let negotiation = try Negotiation(SessionOffer(client.offer))
        let context = try DTLSContext()
        let transport = OwnTransport(
            user: "abcdefgh", password: "01234567890123456789abcdef", fingerprint: context.fingerprint, candidates: [("192.0.2.1", 8_080)])
        let own = Negotiation.Own(transport, videoSource: 1, repeatSource: 2, soundSource: 3)
        let peer = PeerConnection(negotiation, own, context, nowMs: 0)
        let candidates = try client.read(answer: negotiation.answer(own, session: 1))
        #expect(candidates.map(\.address) == ["192.0.2.1"] && candidates.map(\.port) == [8_080])
        let address = DatagramAddress(ipv4: 0x7F00_0001, port: 9)
        client.begin(with: address)
        let output = Link.Sent()
        func exchange(_ nowMs: Int64) {
            client.tick(nowMs: nowMs)
            for bytes in client.popDatagrams() { bytes.withUnsafeBytes { _ = peer.receive($0, from: address, nowMs: nowMs) } }
            peer.tick(nowMs: nowMs)
            for (_, bytes) in peer.popDatagrams() { bytes.withUnsafeBytes { client.receive($0) } }
            for bytes in output.packets { bytes.withUnsafeBytes { client.receive($0) } }
            output.packets = []
        }
        for nowMs in Int64(1)...200 where peer.state != .connected || !client.isConnected { exchange(nowMs) }
        #expect(peer.state == .connected && client.isConnected && client.wasAnswered && client.problem == nil)
        let (picture, sound) = (Link.picture(7, 5_000, time: 0, isKeyframe: true), Link.sound(8, time: 0))
        for kept in [picture, sound] {
            let bundle = try #require(PacketBundle(UnsafeRawBufferPointer(kept.bytes)))
            try #require(peer.media).send(bundle, owner: kept, nowMs: 201, to: output)
        }
        exchange(202)
        let got = client.popMedia()
        let units = got.compactMap { if case .unit(let unit) = $0 { unit } else { nil } }
        #expect(units.map { $0[0] & 0x1F } == [7, 8, 5] && units.last?.count == 5_006)
        #expect(got.last == .sound([0, 0, 0, 8] + [UInt8](repeating: 9, count: 60)))
        peer.close()
        exchange(203)
        #expect(client.problem == "the server said goodbye")
    }

    @Test func answersThatCannotBeUsed() throws {
        let client = try WatchingClient()
        for answer in ["", "v=0\r\nm=audio 0 UDP/TLS/RTP/SAVPF 0\r\n", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=ice-ufrag:abcd\r\n"] {
            #expect(throws: SessionDescriptionError.self) { _ = try client.read(answer: answer) }
        }
    }

    /// Fragments without a beginning, aggregates cut short, kinds that nobody sends.
    @Test func payloadsThatAreNone() {
        var depacketizer = H264Depacketizer()
        for payload in [[], [28], [28, 0x05], [28, 0x05, 1], [24], [24, 0, 9, 1], [24, 0, 0], [25, 1, 2], [0, 1]] as [[UInt8]] {
            #expect(depacketizer.append(payload[...]).isEmpty, "\(payload)")
        }
        #expect(depacketizer.append([0x7C, 0x85, 1][...]).isEmpty)
        #expect(depacketizer.append([0x7C, 0x45, 2][...]) == [[0x65, 1, 2]])
        #expect(depacketizer.append([24, 0, 1, 0x67, 0, 2, 0x68, 5][...]) == [[0x67], [0x68, 5]])
    }
}
