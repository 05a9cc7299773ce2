import LibC
import Media
import NIOCore
import Testing

@testable import Relay

/// A viewer's connection over a real socket pair, written to as by the socket writer. The far end reads when the test says so. Only its
/// owner holds it, so any memory that the relay touches after a viewer has gone is freed memory.
///
/// Loop-bound.
final class SocketSink: ViewerSink {
    private let loop: RelayLoop
    private let near: CInt
    private let far: CInt
    private(set) var viewer: Viewer?
    /// Every other connection has one, so that both paths are tested.
    let line: DirectLine?
    private(set) var isOpen = true {
        didSet { self.settle() }
    }
    private(set) var wasTooSlow = false
    /// Messages that the kernel accepted only in part.
    private(set) var cuts = 0
    /// The rest of a started message, which goes before the next one.
    private var rest: (message: EncodedMessage, header: [UInt8], offset: Int)? {
        didSet { self.settle() }
    }
    private(set) var isBlocked = false {
        didSet { self.settle() }
    }
    var isReading = true
    /// Whether it stays long enough to be found too slow if it does not read.
    var stays = false
    var check: StreamCheck

    private static let noWait = CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)
    /// Kernel buffer size: small, so that most writes are short when nobody reads.
    private static let kernelBytes: CInt = 4 << 10

    init?(_ loop: RelayLoop, hasLine: Bool, check: StreamCheck) {
        self.loop = loop
        self.line = hasLine ? DirectLine() : nil
        self.check = check
        var ends: [CInt] = [0, 0]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else { return nil }
        self.near = ends[0]
        self.far = ends[1]
        var bytes = Self.kernelBytes
        _ = setsockopt(self.near, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<CInt>.size))
        self.settle()
    }

    /// Opens the line while a message may be started, and shuts it otherwise.
    private func settle() {
        if self.isReady { self.line?.open(self.near) } else { self.line?.shut() }
    }

    deinit {
        #expect(!self.isOpen, "a connection is closed before it goes")
    }

    func play(_ stream: Relay.Stream, streamID: UInt32) {
        let viewer = Viewer(stream: stream, streamID: streamID, sink: self, nowMs: self.loop.nowMs)
        self.viewer = viewer
        #expect(stream.enterViewer(limit: .max))
        self.loop.attach(viewer)
    }

    /// Closes the descriptors at once: the next connection gets the same numbers.
    func close() {
        guard self.isOpen else { return }
        self.isOpen = false
        if let viewer = self.viewer {
            self.loop.detach(viewer)
            viewer.stream.leaveViewer()
        }
        self.rest = nil
        _ = shutdown(self.near, CInt(SHUT_RDWR))
        closeDescriptor(self.near)
        closeDescriptor(self.far)
    }

    // MARK: ViewerSink

    var isReady: Bool { self.isOpen && self.rest == nil && !self.isBlocked }

    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int {
        #expect(self.isReady)
        var header = msghdr()
        header.msg_iov = UnsafeMutablePointer(mutating: vectors.baseAddress)
        header.msg_iovlen = numericCast(vectors.count)
        let sent = max(0, sendmsg(self.near, &header, Self.noWait))
        if sent < bytes { self.isBlocked = true }
        return sent
    }

    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        #expect(self.rest == nil && offset < message.length)
        self.cuts += 1
        self.rest = (message, Array(header), offset)
    }

    func notify(_ viewer: Viewer, _ change: StreamChange) { #expect(viewer === self.viewer) }

    func fellTooFarBehind(_ viewer: Viewer, ms: Int64) {
        self.wasTooSlow = true
        self.close()
    }

    func shed(_ viewer: Viewer) { self.close() }

    func unsentBytes() -> Int { 0 }
    func setLowWater(_ bytes: Int) {}

    // MARK: Peer

    /// Reads and checks what has arrived, then lets the writing side continue.
    func turn(_ buffer: UnsafeMutableRawBufferPointer) throws {
        if self.isReading {
            while self.isOpen {
                let count = recv(self.far, buffer.baseAddress, buffer.count, CInt(MSG_DONTWAIT))
                guard count > 0 else { break }
                try self.check.read(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                self.proceed()
            }
        }
        self.proceed()
    }

    private func proceed() {
        guard self.isOpen else { return }
        self.isBlocked = false
        if var rest = self.rest, let start = rest.message.start {
            while rest.offset < rest.message.length {
                let sent =
                    rest.offset < rest.header.count
                    ? rest.header.withUnsafeBytes {
                        send(self.near, $0.baseAddress.map { $0 + rest.offset }, $0.count - rest.offset, Self.noWait)
                    }
                    : send(self.near, start + rest.offset, rest.message.length - rest.offset, Self.noWait)
                guard sent > 0 else { break }
                rest.offset += sent
            }
            self.rest = rest.offset < rest.message.length ? rest : nil
        }
        if self.isReady, let viewer = self.viewer { self.loop.pump(viewer) }
    }
}

/// Calls the C function `close`, which the class's own method hides.
private func closeDescriptor(_ descriptor: CInt) {
    #expect(close(descriptor) == 0, "closed once only")
}

/// Decodes one viewer's bytes and checks each message against its stream. Ids are `n × streams + stream`.
struct StreamCheck {
    let stream: Int
    let streams: Int
    let streamID: UInt32
    private var bytes = ByteBuffer()
    private var lastID = -1
    private var lastVideo: Int?
    private var lastTimestamp: Int64 = -1
    private(set) var messages = 0
    /// Times that video was skipped.
    private(set) var skips = 0

    init(stream: Int, of streams: Int, streamID: UInt32) {
        self.stream = stream
        self.streams = streams
        self.streamID = streamID
    }

    mutating func read(_ piece: UnsafeRawBufferPointer) throws {
        self.bytes.discardReadBytes()
        self.bytes.writeBytes(piece)
        while true {
            var rest = self.bytes
            guard let message = try Received(from: &rest) else { return }
            self.bytes = rest
            self.judge(message)
        }
    }

    private mutating func judge(_ message: Received) {
        self.messages += 1
        let id = message.id
        guard message.streamID == self.streamID, id % self.streams == self.stream, message.isIntact else {
            Issue.record("stream \(self.stream), message stream \(self.streamID) was sent \(message)")
            return
        }
        // Headers repeat at joins and skips, in front of the frames that need them.
        guard !message.isHeader else { return }
        if id <= self.lastID || message.timestamp < self.lastTimestamp { Issue.record("\(message) behind \(self.lastID)") }
        self.lastID = id
        self.lastTimestamp = message.timestamp
        guard message.kind == .video else { return }
        if message.isKeyframe {
            if let last = self.lastVideo, id > last + Load.videoStep * self.streams { self.skips += 1 }
        } else if id != self.lastVideo.map({ $0 + Load.videoStep * self.streams }) {
            Issue.record("\(message) does not follow \(self.lastVideo ?? -1): pictures are left out up to a keyframe only")
        }
        self.lastVideo = id
    }

    /// The frames of the load, in publishing order.
    enum Load {
        /// Every other frame is video.
        static let videoStep = 2
        static let framesPerGroup = 40

        static func headers(stream: Int) throws -> [Frame] {
            [try Make.videoHeader(stream), try Make.audioHeader(stream)]
        }

        /// Frame `number`, counted from 1.
        static func frame(_ number: Int, stream: Int, of streams: Int) throws -> Frame {
            let id = number * streams + stream
            let timestamp = Int64(number) * 5
            switch number % Self.framesPerGroup {
            case 1: return try Make.key(id, at: timestamp, bytes: 3_000)
            case let position where position % 2 == 1: return try Make.inter(id, at: timestamp, bytes: 400)
            default: return try Make.audio(id, at: timestamp, bytes: 60)
            }
        }
    }
}

extension Received {
    private var prefix: Int { self.kind == .audio ? 2 : 5 }
    /// Packet type 0, in AVC and AAC.
    var isHeader: Bool { self.payload.getInteger(at: self.payload.readerIndex + 1, as: UInt8.self) == 0 }
    var isKeyframe: Bool { self.payload.getInteger(at: self.payload.readerIndex, as: UInt8.self) == 0x17 }

    /// Whether every byte after the id is the filler that ``Make`` writes.
    var isIntact: Bool {
        let filler = UInt8(truncatingIfNeeded: self.id &* 31)
        let start = self.prefix + 8
        return self.payload.withUnsafeReadableBytes { bytes in
            guard bytes.count > start, let first = bytes.baseAddress.map({ $0 + start }) else { return bytes.count == start }
            // Compares each byte with the next: a loop would take longer than all the rest.
            return first.load(as: UInt8.self) == filler && memcmp(first, first + 1, bytes.count - start - 1) == 0
        }
    }
}
