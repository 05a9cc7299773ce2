import Foundation
import NIOCore
import NIOPosix
import RTMPTestSupport
import ServerTestSupport
import Sockets
import Support
import Synchronization
import TestSupport
import Testing
import WebRTC

extension Hostile {
    /// Attacks on the port of WebRTC and on its offers, beside a viewer who must not notice.
    @Suite struct WebRTC {
        /// Offers of one address whose connections never come up, and bodies that no offer has: few are let in, all others are told so.
        @Test func offersWithoutAHandshake() async throws {
            try await Self.besideAViewer { server, url in
                let before = try server.residentBytes()
                let begin = ContinuousClock.now
                let offer = try Data(WatchingClient().offer.utf8)
                let statuses = try await Self.repeated(1_000) { _ in
                    try await HTTPAnswer.call("POST", url, body: offer, headers: ["Content-Type": "application/sdp"]).status
                }
                let opened = statuses.count { $0 == 201 }
                // Who has not connected after 30 s makes room for others.
                let most = 100 * (1 + Int((.now - begin) / .seconds(30)))
                #expect((90...most).contains(opened) && statuses.allSatisfy { $0 == 201 || $0 == 503 }, "\(opened) of \(statuses.count)")
                // As many as are let in cost 90 KiB each; debug builds and answers under way, some more.
                let grown = try server.residentBytes() - before
                #expect(grown < 40 << 20, "grew by \(grown >> 10) KiB")
                let long = try await HTTPAnswer.call(
                    "POST", url, body: Data(repeating: 0x61, count: 1 << 20), headers: ["Content-Type": "application/sdp"])
                #expect(long.status == 413, "\(long.status) \(long.text.prefix(200))")
            }
        }

        /// What comes to the UDP port without a right password gets no answer, and is counted.
        @Test(.seeded) func floods() async throws {
            try await Self.besideAViewer { server, url in
                let client = try WatchingClient()
                let answer = try await HTTPAnswer.call(
                    "POST", url, body: Data(client.offer.utf8), headers: ["Content-Type": "application/sdp"])
                let candidate = try client.read(answer: answer.text).first.orThrow()
                let user = try answer.text.firstMatch(of: /a=ice-ufrag:(\S+)/).orThrow().1
                let target = try SocketAddress(ipAddress: candidate.address, port: candidate.port)
                let answers = Answers()
                let flooder = try await Self.socket(answers)
                var generator = TestRandom()
                let before = try await Self.strange(server)
                let count = 20_000
                for number in 0..<count {
                    let bytes: [UInt8]
                    switch number % 4 {
                    // A check with another's password, for a session that is there; its own noise; DTLS records cut short; RTCP.
                    case 0:
                        bytes = STUNMessage.check("\(user):watch", transaction: Self.noise(12, &generator)).bytes(
                            password: Self.noise(32, &generator))
                    case 1: bytes = Self.noise(Int.random(in: 0...1_400, using: &generator), &generator)
                    case 2: bytes = [22, 0xFE, 0xFD, 0, 0] + Self.noise(Int.random(in: 0...80, using: &generator), &generator)
                    default: bytes = [0x81, 206] + Self.noise(30, &generator)
                    }
                    flooder.write(AddressedEnvelope(remoteAddress: target, data: ByteBuffer(bytes: bytes)), promise: nil)
                    // Loopback's buffers are small; the flood is to arrive.
                    if number % 100 == 99 {
                        flooder.flush()
                        try await Task.sleep(for: .milliseconds(5))
                    }
                }
                try await eventually("the flood") {
                    try await Self.strange(server) - before > Double(count) / 4
                }
                #expect(answers.count == 0)
                try await flooder.close()
            }
        }

        /// Checks of a session that were seen on the way and are sent again from elsewhere: nobody else gets its media.
        @Test func replayedChecks() async throws {
            try await Self.besideAViewer { server, url in
                let client = try WatchingClient()
                let answer = try await HTTPAnswer.call(
                    "POST", url, body: Data(client.offer.utf8), headers: ["Content-Type": "application/sdp"])
                let candidate = try client.read(answer: answer.text).first.orThrow()
                let target = try SocketAddress(ipAddress: candidate.address, port: candidate.port)
                client.begin(with: try DatagramAddress(target).orThrow())
                client.tick(nowMs: 1_000)
                let check = try client.popDatagrams().first.orThrow()
                let answers = Answers()
                let other = try await Self.socket(answers)
                for _ in 0..<300 {
                    try await other.writeAndFlush(AddressedEnvelope(remoteAddress: target, data: ByteBuffer(bytes: check)))
                    try await Task.sleep(for: .milliseconds(10))
                }
                // An answer for each, and the server's own checks, ten at most: none is media.
                #expect((200...311).contains(answers.count), "\(answers.count)")
                try await other.close()
            }
        }

        // MARK: Support

        /// Runs the deed on a server of its own beside an RTMP canary and a viewer by WebRTC, whose pictures must go on.
        private static func besideAViewer(_ deed: @Sendable (ServerProcess, String) async throws -> Void) async throws {
            let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 3)
            try await ServerProcess.run { server in
                let push = try ClientProcess(FFmpeg.pushForEver(source, to: "rtmp://127.0.0.1:\(server.port)/live/cam"))
                defer { push.send(SIGKILL) }
                let url = "http://127.0.0.1:\(server.http)/whep/live/cam"
                var viewer: WHEPViewer?
                try await eventually("the stream") {
                    viewer = try? await WHEPViewer.open(url)
                    return viewer != nil
                }
                let watching = try viewer.orThrow()
                try await eventually("pictures and sound") { watching.units.count > 30 && watching.sounds > 30 }
                let start = StallMeter.pool.start()
                try await Canary.during(server.port, loops: try server.loops()) { try await deed(server, url) }
                let end = ContinuousClock.now
                let gap = watching.longestGap(since: start)
                let stalled = try await StallMeter.pool.stalled(from: start, to: end)
                #expect(watching.problem == nil && gap - stalled < .seconds(2) * Patience.factor, "\(gap) without a picture")
                watching.close()
            }
        }

        /// Does it so often, eight at a time.
        private static func repeated<Result: Sendable>(
            _ count: Int, _ deed: @escaping @Sendable (Int) async throws -> Result
        ) async throws -> [Result] {
            try await withThrowingTaskGroup(of: Result.self) { group in
                var results: [Result] = []
                for number in 0..<count {
                    if number >= 8, let result = try await group.next() { results.append(result) }
                    group.addTask { try await deed(number) }
                }
                for try await result in group { results.append(result) }
                return results
            }
        }

        private static func noise(_ count: Int, _ generator: inout some RandomNumberGenerator) -> [UInt8] {
            (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        }

        /// Datagrams of nobody, so far.
        private static func strange(_ server: ServerProcess) async throws -> Double {
            let page = try await HTTPAnswer.get("http://127.0.0.1:\(server.http)/metrics", token: TokenFile.read(server.data)).text
            return try MetricsPage.values(of: page[...])["earshot_webrtc_strange_datagrams_total"].orThrow()
        }

        private static func socket(_ answers: Answers) async throws -> any Channel {
            try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { $0.pipeline.addHandler(answers) }
                .bind(host: "127.0.0.1", port: 0).get()
        }

        /// Counts what comes back.
        private final class Answers: ChannelInboundHandler, Sendable {
            typealias InboundIn = AddressedEnvelope<ByteBuffer>
            private let counted = Atomic<Int>(0)
            var count: Int { self.counted.load(ordering: .relaxed) }

            func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.counted.add(1, ordering: .relaxed) }
        }
    }
}
