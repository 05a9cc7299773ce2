import LibC
import Media
import NIOCore
import NIOEmbedded
import RTMP
import Relay
import Synchronization
import Trace

/// Sends frames to viewers while a tool counts instructions or allocations. See ../budget.sh and ../share.sh.
///
/// All code is the server's own, from the chunks of the publisher's read to the viewers' `send`. Exceptions are NIO's selector and reads, and
/// the other end, a datagram socket that drops what it is sent.
@main
enum Budget {
    struct Load {
        var frames: Int
        var viewers: Int
        /// Bytes of a frame's tag body.
        var bytes: Int
        /// Whether the viewers are on another loop than the stream.
        var isApart: Bool
        /// Whether the stream has a verdict, as a device's has.
        var isJudged: Bool
    }

    static func main() throws {
        var words = CommandLine.arguments.dropFirst()
        if words.count == 4, words.first == "remux", let rounds = Int(Array(words)[2]), (1...1_000).contains(rounds),
            let format = words.last.flatMap(Remux.format)
        {
            return try Remux.run(Array(words)[1], rounds: rounds, format)
        }
        if words.count == 3, words.first == "loop", let frames = Int(Array(words)[1]), let bytes = Int(Array(words)[2]),
            (1...100_000).contains(frames), (10...60_000).contains(bytes)
        {
            return try LockStep.run(frames: frames, bytes: bytes)
        }
        let isJudged = words.last == "judged"
        if isJudged { words.removeLast() }
        let numbers = words.compactMap { Int($0) }
        guard words.count == 4, numbers.count == 3, numbers.allSatisfy({ (1...100_000).contains($0) }),
            let loop = words.last, ["home", "apart"].contains(loop)
        else {
            print("usage: earshot-budget FRAMES VIEWERS BYTES home|apart [judged]")
            print("       earshot-budget loop FRAMES BYTES")
            print("       earshot-budget remux FILE.flv ROUNDS \(Remux.formatNames)")
            exit(2)
        }
        try Self.run(Load(frames: numbers[0], viewers: numbers[1], bytes: numbers[2], isApart: loop == "apart", isJudged: isJudged))
    }

    private static let frameMs: Int64 = 20
    private static let framesPerGroup = 50
    /// The relay sweeps every 100 ms.
    private static let framesPerSweep = 5

    private static func run(_ load: Load) throws {
        let clock = Clock()
        let loops = [EmbeddedEventLoop(), EmbeddedEventLoop()]
        let relays = loops.map { RelayLoop(eventLoop: $0, encoder: RTMPEncoder()) { clock.nowMs } }
        let registry = StreamRegistry()
        let stream = registry.acquire("live/budget", on: relays[0])
        let token = try relays[0].claim(stream, identity: PublisherIdentity("budget"), delegate: Nobody(isJudged: load.isJudged))
        let drain = try Drain()

        let loop = load.isApart ? 1 : 0
        var players: [Player] = []
        for _ in 0..<load.viewers {
            let player = Player(relays[loop], descriptor: drain.descriptor)
            try player.connect(loops[loop])
            player.play(stream)
            players.append(player)
        }
        for loop in loops + loops { loop.run() }

        var publisher = Publisher(bytes: load.bytes)
        RelayLoop.publish(try publisher.header(ms: clock.nowMs), to: stream, token: token)
        for number in 0..<load.frames {
            clock.advance(Self.frameMs)
            // One frame a read, as devices send them.
            for frame in try publisher.read(isKeyframe: number % Self.framesPerGroup == 0, ms: clock.nowMs) {
                RelayLoop.publish(frame, to: stream, token: token)
            }
            for loop in loops { loop.run() }
            drain.waitUntilTaken()
            if number % Self.framesPerSweep == 0 { for relay in relays { relay.sweep() } }
        }

        let sent = players.map(\.sent)
        // The sequence header is one more.
        guard sent.allSatisfy({ $0 == UInt64(load.frames + 1) }) else {
            print("expected \(load.frames + 1) messages for every viewer, sent \(sent.min() ?? 0) to \(sent.max() ?? 0)")
            exit(1)
        }
        for player in players { player.stop() }
    }
}

/// A millisecond clock that only the caller advances.
private final class Clock: Sendable {
    private let ms = Atomic<Int64>(1_000)
    var nowMs: Int64 { self.ms.load(ordering: .relaxed) }
    func advance(_ by: Int64) { self.ms.add(by, ordering: .relaxed) }
}

final class Nobody: PublisherDelegate {
    let isJudged: Bool
    init(isJudged: Bool) { self.isJudged = isJudged }
    func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {}
}

/// The media path of a publisher's connection: bytes of a read in, frames out.
struct Publisher {
    private static let chunkSize = 60_000
    private var decoder = ChunkDecoder()
    private let encoder = ChunkEncoder(chunkSize: Publisher.chunkSize)
    private var unwrapper = TimestampUnwrapper()
    /// A keyframe and an inter picture, made once: only the server's own work counts.
    private let bodies: (key: ByteBuffer, inter: ByteBuffer)
    /// The connection's flight recorder.
    private let trace = SessionTrace(TraceStore(), nowMs: 0)

    init(bytes: Int) {
        self.bodies = (Self.body(bytes, isKeyframe: true), Self.body(bytes, isKeyframe: false))
        var first = ByteBuffer()
        ChunkEncoder().encode(ControlMessage.setChunkSize(UInt32(Self.chunkSize)).message, chunkStream: 2, into: &first)
        self.decoder.append(first)
        self.trace?.becomePublisher()
    }

    mutating func read(isKeyframe: Bool, ms: Int64) throws -> [Frame] {
        try self.read(isKeyframe ? self.bodies.key : self.bodies.inter, ms: ms)
    }

    /// One NAL unit, an IDR or an inter picture: the relay looks at the form of each frame.
    private static func body(_ bytes: Int, isKeyframe: Bool) -> ByteBuffer {
        var body = ByteBuffer(repeating: 0x55, count: bytes)
        body.setBytes([isKeyframe ? 0x17 : 0x27, 1, 0, 0, 0], at: 0)
        body.setInteger(UInt32(bytes - 9), at: 5)
        body.setInteger(isKeyframe ? 0x65 : 0x41, at: 9, as: UInt8.self)
        return body
    }

    /// libx264's record of 640 × 360.
    mutating func header(ms: Int64) throws -> [Frame] {
        let sps: [UInt8] = [
            0x67, 0x42, 0xC0, 0x1E, 0xDA, 0x02, 0x80, 0xBF, 0xE5, 0xC0, 0x44, 0, 0, 3, 0, 4, 0, 0, 3, 0, 0xC8, 0x3C, 0x58, 0xBA, 0x80,
        ]
        let record = [1, 0x42, 0xC0, 0x1E, 0xFF, 0xE1, 0, UInt8(sps.count)] + sps + [1, 0, 4, 0x68, 0xCE, 0x0F, 0xC8]
        return try self.read(ByteBuffer(bytes: [0x17, 0, 0, 0, 0] + record), ms: ms)
    }

    private mutating func read(_ payload: ByteBuffer, ms: Int64) throws -> [Frame] {
        try self.receive(self.chunks(payload, ms: ms), ms: ms)
    }

    /// What a device sends for a picture.
    func chunks(isKeyframe: Bool, ms: Int64) -> ByteBuffer { self.chunks(isKeyframe ? self.bodies.key : self.bodies.inter, ms: ms) }

    private func chunks(_ payload: ByteBuffer, ms: Int64) -> ByteBuffer {
        var bytes = ByteBuffer()
        let message = Message(type: .video, streamID: 1, timestamp: UInt32(truncatingIfNeeded: ms), payload: payload)
        self.encoder.encode(message, chunkStream: 6, into: &bytes)
        return bytes
    }

    mutating func receive(_ bytes: ByteBuffer, ms: Int64) throws -> [Frame] {
        self.decoder.append(bytes)
        self.trace?.recorder?.begin(nowMs: ms)
        var frames: [Frame] = []
        while let message = try self.decoder.nextMessage() {
            guard let kind = Frame.Kind(rawValue: message.type.rawValue) else { continue }
            let frame = try Frame(kind: kind, timestamp: self.unwrapper.unwrap(message.timestamp), payload: message.payload)
            self.trace?.recorder?.add(
                type: kind.rawValue, timestamp: message.timestamp, length: message.payload.readableBytes, streamID: message.streamID,
                flags: TracedHeader.Flags(tag: frame.tag.flags.rawValue))
            frames.append(frame)
        }
        return frames
    }
}

/// The media path of a player's connection.
final class Player: ChannelInboundHandler, ViewerSink, SocketWriterOwner {
    typealias InboundIn = ByteBuffer

    private let relay: RelayLoop
    private let descriptor: CInt
    private var channel: EmbeddedChannel?
    private var writer: SocketWriter?
    private var viewer: Viewer?

    init(_ relay: RelayLoop, descriptor: CInt) {
        self.relay = relay
        self.descriptor = descriptor
    }

    var sent: UInt64 { self.viewer?.messagesSent ?? 0 }

    func connect(_ loop: EmbeddedEventLoop) throws {
        self.channel = EmbeddedChannel(handler: self, loop: loop)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.writer = SocketWriter(owner: self, context: context, descriptor: self.descriptor)
    }

    func play(_ stream: Relay.Stream) {
        let viewer = Viewer(stream: stream, streamID: 1, sink: self, nowMs: self.relay.nowMs)
        self.viewer = viewer
        self.relay.attach(viewer)
    }

    func stop() {
        if let viewer = self.viewer { self.relay.detach(viewer) }
        self.writer?.invalidate()
    }

    func writerBecameReady() {}
    func writeFailed() { fatalError("the datagram socket takes everything") }
    func writerOverflowed() {}

    var isReady: Bool { self.writer?.isReady == true }
    var line: DirectLine? { self.writer?.line }
    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int { self.writer?.write(vectors, bytes: bytes) ?? 0 }
    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        self.writer?.finish(message, header: header, from: offset)
    }
    func notify(_ viewer: Viewer, _ change: StreamChange) {}
    func fellTooFarBehind(_ viewer: Viewer, ms: Int64) {}
    func shed(_ viewer: Viewer) {}
    func unsentBytes() -> Int { self.writer?.unsentBytes() ?? 0 }
    func setLowWater(_ bytes: Int) { self.writer?.setLowWater(bytes) }
}

/// A socket that accepts everything: a datagram receiver that does not read loses the data.
///
/// The kernel charges a datagram to the sender until the receiver's side has looked at it, which a busy machine delays. So the buffer is
/// large, and each frame waits for the one before.
private struct Drain {
    struct Failure: Error { let call: String, code: CInt }

    private static let sendBufferBytes: CInt = 4 << 20

    let descriptor: CInt
    private let receiver: CInt

    init() throws {
        self.receiver = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
        self.descriptor = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
        guard self.receiver >= 0, self.descriptor >= 0 else { throw Failure(call: "socket", code: errno) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let receiver = self.receiver
        let descriptor = self.descriptor
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(receiver, address, length) == 0, getsockname(receiver, address, &length) == 0 else { return errno }
                return connect(descriptor, address, length) == 0 ? 0 : errno
            }
        }
        guard code == 0 else { throw Failure(call: "bind or connect", code: code) }
        // Beyond the system's limit where permitted, otherwise up to it.
        var bytes = Self.sendBufferBytes
        let size = socklen_t(MemoryLayout<CInt>.size)
        if setsockopt(self.descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, size) != 0 {
            guard setsockopt(self.descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, size) == 0 else {
                throw Failure(call: "setsockopt", code: errno)
            }
        }
    }

    /// Returns when the kernel charges nothing to the sender any more.
    func waitUntilTaken() {
        var waiting: CInt = 0
        while ioctl(self.descriptor, UInt(TIOCOUTQ), &waiting) == 0, waiting > 0 { usleep(100) }
    }
}
