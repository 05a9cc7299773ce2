import LibC
import NIOCore
import RTMP

/// One viewer: a connection that plays one room and checks what it gets. Owned by the viewer loop and used on its thread only.
///
/// ```
/// connecting → handshaking → opening → playing → closed          stalled: playing, but not reading
/// connecting → opening → playing → closed                        over HTTP
/// ```
final class Viewer {
    enum Phase { case connecting, handshaking, opening, playing, stalled, closed }

    let room: Int
    let name: String
    let hasVideo: Bool
    let descriptor: CInt
    private(set) var phase = Phase.connecting
    private(set) var failure: String?
    /// Just before connect(). Nanoseconds.
    let startedNs: UInt64
    /// Arrival of the answer to play. Nanoseconds.
    private(set) var answeredNs: UInt64?
    var check = StreamCheck()
    /// Whether it has what a player needs to start: a keyframe, or any frame of a stream without video.
    var hasJoined: Bool { self.hasVideo ? self.check.firstKeyframeNs != nil : self.check.messages > 0 }

    private let target: Target
    private var handshake = ClientHandshake()
    private var session = ClientSession()
    private var writer = MessageWriter()
    private var reader = ChunkReader()
    /// Only for HTTP.
    private var flv: FLVReader?
    private var receivedBytes: UInt64 = 0
    private var reportedBytes: UInt64 = 0

    /// Bytes received between two checks for a due acknowledgement.
    private static let reportInterval: UInt64 = 256 << 10

    /// `source`: see ``Socket``.
    init(target: Target, name: String, room: Int, hasVideo: Bool, receiveBufferBytes: Int?, source: Int) throws(LoadError) {
        self.target = target
        self.name = name
        self.room = room
        self.hasVideo = hasVideo
        self.flv = target.httpPort == nil ? nil : FLVReader()
        self.startedNs = Clock.now()
        self.descriptor = try Socket.open(
            to: target, port: target.httpPort, source: source, isBlocking: false,
            receiveBufferBytes: receiveBufferBytes)
    }

    func connected() {
        guard self.phase == .connecting else { return }
        if self.flv != nil {
            self.phase = .opening
            let request = "GET /\(self.target.app)/\(self.name).flv HTTP/1.1\r\nHost: \(self.target.host)\r\n\r\n"
            return self.send(ByteBuffer(string: request))
        }
        self.phase = .handshaking
        self.send(self.handshake.start(random: HandshakeRandom.bytes))
    }

    func stall() {
        if self.phase == .playing { self.phase = .stalled }
    }

    func resume() {
        if self.phase == .stalled { self.phase = .playing }
    }

    func close(_ reason: String) {
        guard self.phase != .closed else { return }
        self.phase = .closed
        self.failure = reason
        LibC.close(self.descriptor)
    }

    /// Handles the bytes of one read, not empty.
    func received(_ bytes: UnsafeRawBufferPointer, nowNs: UInt64) {
        if self.flv != nil { return self.readFLV(bytes, nowNs: nowNs) }
        var rest = bytes
        if self.phase == .handshaking {
            var buffer = ByteBuffer(bytes: bytes)
            do throws(RTMPError) {
                if let answer = try self.handshake.receive(&buffer, random: HandshakeRandom.bytes) { self.send(answer) }
            } catch {
                return self.close("\(error)")
            }
            guard self.handshake.isDone else { return }
            self.phase = .opening
            self.session.connect(app: self.target.app, tcUrl: self.target.url)
            self.flush()
            rest = UnsafeRawBufferPointer(rebasing: bytes[(bytes.count - buffer.readableBytes)...])
        }
        self.read(rest, nowNs: nowNs)
    }

    private func readFLV(_ bytes: UnsafeRawBufferPointer, nowNs: UInt64) {
        do throws(FLVReader.FormatError) {
            try self.flv?.read(bytes, room: self.room, nowNs: nowNs, check: &self.check)
        } catch {
            return self.close("unreadable answer: \(error.what)")
        }
        if self.phase == .opening, self.flv?.isOpen == true {
            self.phase = .playing
            self.answeredNs = nowNs
        }
    }

    private func read(_ bytes: UnsafeRawBufferPointer, nowNs: UInt64) {
        self.receivedBytes += UInt64(bytes.count)
        var messages: [Message] = []
        do throws(ChunkReader.FormatError) {
            try self.reader.read(bytes, room: self.room, nowNs: nowNs, check: &self.check) { messages.append($0) }
        } catch {
            return self.close("unreadable chunks: \(error.what)")
        }
        for message in messages {
            do throws(RTMPError) {
                try self.session.receive(message)
            } catch {
                return self.close("\(error)")
            }
        }
        let isReportDue = self.receivedBytes - self.reportedBytes >= Self.reportInterval
        if isReportDue {
            self.reportedBytes = self.receivedBytes
            self.session.bytesReceived(self.receivedBytes)
        }
        if isReportDue || !messages.isEmpty { self.flush() }
    }

    private func flush() {
        var out = ByteBuffer()
        while let output = self.session.nextOutput() {
            switch output {
            case .send(let message): self.writer.encode(message, into: &out)
            case .setChunkSize(let size): self.writer.setChunkSize(size)
            case .connected: self.session.createStream()
            case .streamCreated(let streamID):
                self.session.play(self.name, on: streamID)
                if self.phase == .opening { self.phase = .playing }
            case .playStarted: if self.answeredNs == nil { self.answeredNs = Clock.now() }
            case .refused(let command, let status): return self.close("\(command) refused: \(status.code)")
            case .streamEOF: return self.close("the stream ended")
            default: break
            }
        }
        if out.readableBytes > 0 { self.send(out) }
    }

    private func send(_ bytes: ByteBuffer) {
        // A few hundred bytes at a time into an empty socket buffer: if they do not fit, something is wrong with the server.
        let isSent = bytes.withUnsafeReadableBytes { Socket.sendAll(self.descriptor, $0) }
        if !isSent { self.close("send failed: \(String(cString: strerror(errno)))") }
    }
}
