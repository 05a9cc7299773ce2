import LibC
import Media
import NIOCore
import Relay
import Sockets

/// One publisher and one viewer on a real event loop, in lock step: each frame is sent once the one before has come. What a tool counts below the loop's thread
/// is the whole way of a frame, from epoll and recv to send, but for RTMP's sessions.
enum LockStep {
    private struct Failure: Error { let call: String, code: CInt }

    private static let frameMs: Int64 = 20
    private static let framesPerGroup = 50
    /// Of a message on its way out: RTMP 1.0 §5.3.1, format 0.
    private static let headerBytes = 12

    static func run(frames: Int, bytes: Int) throws {
        let loop = try SocketLoop(name: "budget")
        let relay = RelayLoop(eventLoop: loop, encoder: RTMPEncoder())
        let (device, input) = try Self.pair()
        let (player, output) = try Self.pair()
        let stream = try loop.submit { StreamRegistry().acquire("live/budget", on: relay) }.wait()
        let reader = SocketChannel(input, on: loop)
        reader.start { channel in
            channel.eventLoop.makeCompletedFuture {
                reader.lendsInput = true
                try channel.pipeline.syncOperations.addHandler(Reader(relay, stream, bytes: bytes))
            }
        }
        SocketChannel(output, on: loop).start { channel in
            channel.eventLoop.makeCompletedFuture {
                let viewer = Player(relay, descriptor: output)
                try channel.pipeline.syncOperations.addHandler(viewer)
                viewer.play(stream)
            }
        }
        let publisher = Publisher(bytes: bytes)
        var came = [UInt8](repeating: 0, count: Self.headerBytes + bytes)
        for number in 0..<frames {
            let picture = publisher.chunks(isKeyframe: number % Self.framesPerGroup == 0, ms: Int64(number + 1) * Self.frameMs)
            try picture.withUnsafeReadableBytes { raw in
                guard write(device, raw.baseAddress, raw.count) == raw.count else { throw Failure(call: "write", code: errno) }
            }
            try came.withUnsafeMutableBytes { raw in
                var count = 0
                while count < raw.count {
                    let got = LibC.read(player, raw.baseAddress?.advanced(by: count), raw.count - count)
                    guard got > 0 else { throw Failure(call: "read", code: errno) }
                    count += got
                }
            }
        }
    }

    private static func pair() throws -> (ours: CInt, loops: CInt) {
        var ends: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0 else { throw Failure(call: "socketpair", code: errno) }
        return (ends[0], ends[1])
    }

    /// The device's connection.
    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let relay: RelayLoop
        private let stream: Relay.Stream
        private var publisher: Publisher
        private var token: StreamState.Token?
        private var batch: [Frame] = []

        init(_ relay: RelayLoop, _ stream: Relay.Stream, bytes: Int) {
            self.relay = relay
            self.stream = stream
            self.publisher = Publisher(bytes: bytes)
        }

        func channelActive(context: ChannelHandlerContext) {
            self.token = try? self.relay.claim(self.stream, identity: PublisherIdentity("budget"), delegate: Nobody(isJudged: false))
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            do {
                self.batch += try self.publisher.receive(self.unwrapInboundIn(data), ms: self.relay.nowMs)
            } catch {
                context.close(promise: nil)
            }
        }

        func channelReadComplete(context: ChannelHandlerContext) {
            guard let token = self.token else { return }
            while let frame = self.batch.popLast() { RelayLoop.publish(frame, to: self.stream, token: token) }
            context.fireChannelReadComplete()
        }
    }
}
