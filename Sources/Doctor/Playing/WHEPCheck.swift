import CommandSupport
import DTLSSRTP
import NIOCore
import NIOHTTP1
import NIOPosix
import Sockets
import Support
import Synchronization
import WebRTC

/// Plays the doctor's stream by WebRTC, with a client of its own: whether the UDP port is within reach, and whether what was pushed comes.
struct WHEPCheck: Sendable {
    let clip: DoctorClip
    let http: DoctorHTTP

    private static let enoughPictures = 22
    /// Packets of 20 ms.
    private static let enoughSound = 90
    private static let unreachable =
        "open the UDP port in the firewall, or set webrtc.addresses to the address at which clients reach it (docs/webrtc.md)"

    func run(_ name: String, _ url: String) async -> DoctorResult {
        let client: WatchingClient
        do throws(DTLSError) { client = try WatchingClient() } catch {
            return .fail(name, "\(error)", "is libssl whole? See the package libssl3")
        }
        let answer: DoctorHTTP.Answer
        do {
            answer = try await self.http.send(.POST, url, type: "application/sdp", body: client.offer)
        } catch {
            return .fail(name, "\(DoctorHTTP.words(error)) (\(DoctorHTTP.origin(url)))", PlayChecks.advice(nil))
        }
        guard answer.status == 201 else { return .fail(name, answer.refusal, Self.advice(answer.refusal)) }
        let result = await self.play(name, client, String(buffer: answer.body))
        if let session = answer.headers.first(name: "Location") { _ = try? await self.http.send(.DELETE, session) }
        return result
    }

    private static func advice(_ why: String) -> String {
        why.contains("webrtc.addresses") ? self.unreachable : PlayChecks.advice(why)
    }

    private func play(_ name: String, _ client: WatchingClient, _ answer: String) async -> DoctorResult {
        let candidates: [SessionOffer.Candidate]
        do throws(SessionDescriptionError) {
            candidates = try client.read(answer: answer)
        } catch {
            return .fail(name, "the answer cannot be read: \(error)", PlayChecks.advice(nil))
        }
        guard let first = candidates.first, let socket = try? SocketAddress(ipAddress: first.address, port: first.port),
            let target = DatagramAddress(socket)
        else { return .fail(name, "the answer names no address", Self.unreachable) }
        client.begin(with: target)
        let inbox = Inbox()
        let channel: any Channel
        do {
            channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Receiver(inbox)) }
                }
                .bind(host: target.isIPv4 ? "0.0.0.0" : "::", port: 0).get()
        } catch {
            return .fail(name, "no UDP socket: \(error)", "see the system's limits")
        }
        let judge = await self.exchange(client, inbox, channel, socket)
        try? await channel.close()
        let place = "\(first.address):\(first.port)"
        if judge.isDone { return .pass(name, "\(judge.pictures) pictures, \(judge.sound) packets of sound, by UDP from \(place)") }
        if let problem = client.problem ?? judge.problem { return .fail(name, problem, PlayChecks.advice(nil)) }
        if !client.wasAnswered { return .fail(name, "nothing comes back from \(place) by UDP", Self.unreachable) }
        guard client.isConnected else { return .fail(name, "no DTLS connection with \(place)", PlayChecks.advice(nil)) }
        return .fail(
            name, "\(judge.pictures) pictures and \(judge.sound) packets of sound in \(PlayChecks.limit) s", PlayChecks.advice(nil))
    }

    private func exchange(_ client: WatchingClient, _ inbox: Inbox, _ channel: any Channel, _ target: SocketAddress) async -> Judge {
        var judge = Judge(self.clip)
        let end = ContinuousClock.now + .seconds(PlayChecks.limit)
        while !judge.isDone, judge.problem == nil, client.problem == nil, ContinuousClock.now < end, !Task.isCancelled {
            for datagram in inbox.popAll() { datagram.withUnsafeReadableBytes { client.receive($0) } }
            client.tick(nowMs: LoopSweeper.nowMs)
            for bytes in client.popDatagrams() {
                channel.writeAndFlush(AddressedEnvelope(remoteAddress: target, data: ByteBuffer(bytes: bytes)), promise: nil)
            }
            for media in client.popMedia() { judge.receive(media) }
            try? await Task.sleep(for: .milliseconds(5))
        }
        return judge
    }

    /// What came, until somebody looks.
    private final class Inbox: Sendable {
        private let datagrams = Mutex<[ByteBuffer]>([])
        private static let most = 4_096

        func add(_ datagram: ByteBuffer) { self.datagrams.withLock { if $0.count < Self.most { $0.append(datagram) } } }

        func popAll() -> [ByteBuffer] {
            self.datagrams.withLock { datagrams in
                defer { datagrams = [] }
                return datagrams
            }
        }
    }

    private final class Receiver: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        private let inbox: Inbox

        init(_ inbox: Inbox) { self.inbox = inbox }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.inbox.add(self.unwrapInboundIn(data).data) }
        // A closed port shows by silence.
        func errorCaught(context: ChannelHandlerContext, error: any Error) {}
    }

    /// Judges what comes back. A plain value.
    private struct Judge {
        private let slices: Set<[UInt8]>
        private(set) var pictures = 0
        private(set) var sound = 0
        private(set) var problem: String?

        var isDone: Bool { self.pictures >= WHEPCheck.enoughPictures && self.sound >= WHEPCheck.enoughSound }

        init(_ clip: DoctorClip) {
            self.slices = Set(clip.pictures.flatMap { Self.units($0) })
        }

        /// The units of a message, behind their lengths (FLV 10.1 §E.4.3.1, ISO/IEC 14496-15 §5.3.4.2).
        private static func units(_ message: ByteBuffer) -> [[UInt8]] {
            var rest = message
            rest.moveReaderIndex(forwardBy: min(5, rest.readableBytes))
            var units: [[UInt8]] = []
            while let length = rest.readInteger(as: UInt32.self), let unit = rest.readBytes(length: Int(length)) { units.append(unit) }
            return units
        }

        mutating func receive(_ media: WatchingClient.Media) {
            switch media {
            case .sound: self.sound += 1
            case .unit(let unit):
                guard let type = unit.first.map({ $0 & 0x1F }), (1...5).contains(type) else { return }
                guard self.slices.contains(unit) else {
                    self.problem = "a picture of \(unit.count) bytes that was not pushed"
                    return
                }
                if self.pictures == 0, type != 5 { self.problem = "the first picture is no keyframe" }
                self.pictures += 1
            }
        }
    }
}
