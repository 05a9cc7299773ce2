import EarshotServer
import Foundation
import NIOCore
import NIOPosix
import RTMP
import Rooms
import ServerTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Support

/// Players that read the cached group of pictures at their own pace, through small buffers.
@Suite struct BurstReadersTests {
    /// About 140 kB a second, with a keyframe every ten seconds.
    private static let video = [
        "-c:v", "libx264", "-preset", "ultrafast", "-g", "250", "-keyint_min", "250", "-sc_threshold", "0", "-b:v", "1000k", "-minrate",
        "1000k", "-maxrate", "1000k", "-bufsize", "500k", "-x264-params", "nal-hrd=cbr:force-cfr=1",
    ]

    /// The bytes of each read, 66 times a second: about 3.6 times the stream's rate.
    private static let readBytes = 8 << 10
    private static let pause = TimeAmount.milliseconds(15)
    private static let receiveBuffer = 16 << 10
    /// The number of players of each kind.
    private static let count = 12

    /// Players join when eight seconds are cached. None that reads is cut, in any format; one of each format reads nothing and is cut.
    @Test func nobodyIsCutForItsBurst() async throws {
        let source = try await Fixture.flv(video: Self.video, audio: Fixture.aac, seconds: 40, size: "640x360")
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > 8 * 125_000 }
                var readers: [SteadyReader] = []
                var players: [RawClient] = []
                var options = RawClient.Options()
                options.receiveBuffer = Self.receiveBuffer
                options.readBytes = Self.readBytes
                for index in 0...Self.count {
                    // The last of each kind reads nothing.
                    let reads = index < Self.count
                    for form in ["flv", "mp4"] {
                        readers.append(
                            try await SteadyReader.get(
                                server.addresses.http.port, "/live/cam1.\(form)", receiveBuffer: Self.receiveBuffer,
                                readBytes: Self.readBytes, every: reads ? Self.pause : nil))
                    }
                    let player = try await RawClient.playing(server.addresses.rtmp.port, "cam1", options)
                    if reads { try await player.readSlowly(every: Self.pause) } else { try await player.stopReading() }
                    players.append(player)
                }
                try await eventually("three are cut") { try await server.api("counters")["closed"]["too_slow"].int ?? 0 >= 3 }
                // Readers get more than the cache held, and in time.
                try? await eventually("as much for all") {
                    readers.dropLast(2).allSatisfy { $0.isClosed || $0.bytes > 8 * 125_000 }
                        && players.dropLast().allSatisfy { $0.isClosed || $0.bytesReceived > 8 * 125_000 }
                }
                for (index, reader) in readers.dropLast(2).enumerated() {
                    #expect(!reader.isClosed && reader.bytes > 8 * 125_000, "\(index): \(reader.bytes) bytes")
                }
                for (index, player) in players.dropLast().enumerated() {
                    #expect(!player.isClosed && player.bytesReceived > 8 * 125_000, "\(index): \(player.bytesReceived) bytes")
                }
                #expect(try await server.api("counters")["closed"]["too_slow"].int == 3, "\(server.lines.all)")
                for reader in readers { await reader.close() }
                for player in players { await player.close() }
            }
        }
    }

    /// A stock ffmpeg that reads `.mp4` at playback speed.
    @Test func aPlayerAtItsOwnPace() async throws {
        let source = try await Fixture.flv(video: Self.video, audio: Fixture.aac, seconds: 40, size: "640x360")
        try await TestServer.run { server in
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("streams") { ($0["list"][0]["bytesIn"].int ?? 0) > 8 * 125_000 }
                let played = try await ClientProcess.run(
                    [
                        "ffmpeg", "-v", "warning", "-re", "-recv_buffer_size", "16384", "-i", "\(server.http)/live/cam1.mp4", "-t", "10",
                        "-c",
                        "copy", "-f", "null", "-",
                    ])
                #expect(played.status == 0 && played.errors.isEmpty, "\(played.errors)")
                #expect(try await server.api("counters")["closed"]["too_slow"].int ?? 0 == 0, "\(server.lines.all)")
            }
        }
    }
}

/// Reads an HTTP answer's bytes in even steps and counts them. Any thread.
private final class SteadyReader: Sendable {
    private struct State {
        var bytes = 0
        var isClosed = false
    }

    private final class Handler: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        let state = Mutex(State())

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let count = self.unwrapInboundIn(data).readableBytes
            self.state.withLock { $0.bytes += count }
        }

        func channelInactive(context: ChannelHandlerContext) { self.state.withLock { $0.isClosed = true } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private let channel: any Channel
    private let handler: Handler

    private init(_ channel: any Channel, _ handler: Handler) {
        self.channel = channel
        self.handler = handler
    }

    /// Opens a reader. A nil pause reads nothing.
    static func get(
        _ port: Int, _ path: String, receiveBuffer: Int, readBytes: Int, every pause: TimeAmount?
    ) async throws -> SteadyReader {
        let handler = Handler()
        let channel = try await ClientBootstrap(group: RawClient.group)
            .channelOption(.autoRead, value: false)
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: readBytes))
            .channelOption(.socketOption(.so_rcvbuf), value: numericCast(receiveBuffer))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(handler) }
            }
            .connect(host: "127.0.0.1", port: port).get()
        try await channel.writeAndFlush(ByteBuffer(string: "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
        if let pause {
            channel.eventLoop.scheduleRepeatedTask(initialDelay: pause, delay: pause) { task in
                if channel.isActive { channel.read() } else { task.cancel() }
            }
        }
        return SteadyReader(channel, handler)
    }

    var bytes: Int { self.handler.state.withLock { $0.bytes } }
    var isClosed: Bool { self.handler.state.withLock { $0.isClosed } }
    func close() async { _ = try? await self.channel.close() }
}
