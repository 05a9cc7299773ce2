internal import Dispatch
import LibC
internal import NIOCore
internal import RTMP

/// One RTMP client connection, from the address to the server's answers. On the link's thread, which it may block only while connecting
/// and sending.
///
///     socket ── ClientConnection.fill ── ChunkValidator ── LibRTMP ── ClientSession ── nextOutput
final class ClientConnection {
    /// "192.0.2.1:1935"
    let remote: String
    /// "TLSv1.3 TLS_AES_256_GCM_SHA384"; nil without TLS.
    let tls: String?
    var session: ClientSession

    private let url: LinkURL
    private let control: LinkControl
    private let counters: LinkCounters
    /// The socket, or our end of the TLS pump's pair. librtmp gets a duplicate, so it never closes this one.
    private let descriptor: Int32
    private let pump: TLSPump?
    private var rtmp: LibRTMP
    private var chunks: ChunkValidator
    private var input = ByteBuffer()
    private var bytesIn: UInt64 = 0
    private var isFinished = false
    private let limits: Limits
    private let sendStallMs: Int
    private let wayObjection: (property: String, objection: @Sendable (String) -> String?)?

    private static let readBytes = 64 << 10
    /// Limits for a server's chunk streams. A few are usual, but some servers use a new one for each message stream.
    static var limits: Limits {
        var limits = Limits()
        limits.chunkStreams = 256
        limits.partialMessages = 16
        limits.partialBytes = 24 << 20
        return limits
    }

    /// Connects by TCP and TLS, does the handshake and sends `connect`. ``nextOutput()`` returns the answer.
    init(_ url: LinkURL, _ options: LinkOptions, publishes: Bool, control: LinkControl, counters: LinkCounters)
        throws(LinkError)
    {
        let connectEnd = System.nowMs() + Int64(options.connectTimeoutMs)
        let connection = try Dialer.connect(url, options, control: control, until: connectEnd)
        var descriptor = connection.descriptor
        var pump: TLSPump?
        var tls: String?
        if url.isSecure {
            let started = try TLSPump.start(descriptor, url: url, options: options, control: control, until: connectEnd)
            descriptor = started.descriptor
            pump = started.pump
            tls = started.version
        }
        System.setTimeouts(descriptor, receiveMs: options.handshakeTimeoutMs, sendMs: options.sendStallMs)
        var session = ClientSession(limits: Self.limits)
        let command = Self.connectCommand(&session, url, options, publishes: publishes)
        var rtmp = try Self.begin(descriptor, command, url, options, publishes: publishes, control: control, pump: pump)
        self.remote = connection.remote
        self.tls = tls
        self.url = url
        self.control = control
        self.counters = counters
        self.descriptor = descriptor
        self.pump = pump
        self.session = session
        self.limits = Self.limits
        self.chunks = ChunkValidator(limits: Self.limits)
        self.sendStallMs = options.sendStallMs
        self.wayObjection = publishes ? nil : options.wayObjection
        self.input = rtmp.popUnread()
        self.rtmp = rtmp
    }

    deinit {
        // librtmp's duplicate is closed later: without a shutdown the pump would wait for that. Without a goodbye nothing is left for
        // the pump to deliver.
        if self.isFinished { System.shutdownBoth(self.descriptor) } else { self.control.cut() }
        self.control.close(self.descriptor)
        self.pump?.join()
    }

    /// The session's `connect` message, which librtmp sends after its handshake. The session's other messages are dropped here.
    private static func connectCommand(
        _ session: inout ClientSession, _ url: LinkURL, _ options: LinkOptions, publishes: Bool
    ) -> Message {
        var extra = options.connectProperties().map { AMF0Property(name: $0.name, value: .string($0.value)) }
        if !publishes {
            // ffmpeg's player properties, and Enhanced RTMP's codecs (v2, "Enhancing NetConnection connect Command").
            extra += [
                AMF0Property(name: "fpad", value: false), AMF0Property(name: "capabilities", value: 15),
                AMF0Property(name: "audioCodecs", value: 4071), AMF0Property(name: "videoCodecs", value: 252),
                AMF0Property(name: "videoFunction", value: 1),
                // Multitrack 2, ModEx 4, nanosecond offsets 8: servers may leave tracks out for those who do not announce them.
                AMF0Property(name: "capsEx", value: 14),
                AMF0Property(
                    name: "fourCcList", value: .strictArray(["hvc1", "av01", "vp09", "avc1", "Opus", "fLaC", "ac-3", "ec-3", "mp4a"])),
            ]
        }
        session.connect(
            app: url.app, tcUrl: url.tcUrl, flashVersion: publishes ? "FMLE/3.0 (compatible; earshot)" : "LNX 9,0,124,2", extra: extra)
        var command: Message?
        while let output = session.nextOutput() {
            if case .send(let message) = output, message.type == .commandAMF0 { command = message }
        }
        return command ?? Message(type: .commandAMF0, payload: ByteBuffer())
    }

    /// Makes librtmp's state, does the handshake and sends `connect`. Closes the connection before it throws.
    private static func begin(
        _ descriptor: Int32, _ command: Message, _ url: LinkURL, _ options: LinkOptions, publishes: Bool, control: LinkControl,
        pump: TLSPump?
    ) throws(LinkError) -> LibRTMP {
        do throws(LinkError) {
            let duplicate = dup(descriptor)
            guard duplicate >= 0 else { throw .system("no descriptor (\(System.lastError))") }
            System.closeOnExec(duplicate)
            var rtmp = try LibRTMP.make(duplicate, url: url, publishes: publishes, timeoutMs: options.handshakeTimeoutMs)
            try Self.handshake(&rtmp, command, url, options, control: control, pump: pump)
            return rtmp
        } catch {
            control.close(descriptor)
            pump?.join()
            throw error
        }
    }

    private static func handshake(
        _ rtmp: inout LibRTMP, _ command: Message, _ url: LinkURL, _ options: LinkOptions, control: LinkControl, pump: TLSPump?
    ) throws(LinkError) {
        // librtmp limits each single read; this limits them all together.
        let deadline = DispatchWorkItem { control.expire() }
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(options.handshakeTimeoutMs), execute: deadline)
        let isConnected = rtmp.connect(command)
        deadline.cancel()
        guard !control.isStopping else { throw .cancelled }
        guard !isConnected else {
            guard !control.isOverdue else { throw .silent(waitingFor: "the RTMP handshake", ms: options.handshakeTimeoutMs) }
            return
        }
        if let failure = pump?.failure { throw .tls(origin: url.origin, why: failure) }
        if control.isOverdue || rtmp.timedOut { throw .silent(waitingFor: "the RTMP handshake", ms: options.handshakeTimeoutMs) }
        throw .handshake(origin: url.origin, why: "it closed the connection during the handshake")
    }

    // MARK: Reading

    /// Returns the server's next message as output, or nil until more bytes arrive. Sends the session's answers.
    func nextOutput() throws(LinkError) -> ClientSessionOutput? {
        while true {
            while let output = self.session.nextOutput() {
                switch output {
                case .send(let message): try self.send(message)
                case .setChunkSize(let size): self.rtmp.setWriteChunkSize(size)
                default: return output
                }
            }
            guard let message = try self.nextMessage() else { return nil }
            try self.receive(message)
        }
    }

    private func nextMessage() throws(LinkError) -> Message? {
        try self.rtmp.nextMessage(in: &self.input, chunks: &self.chunks)
    }

    private func receive(_ message: Message) throws(LinkError) {
        switch message.type {
        case .setChunkSize:
            if let size = message.payload.getInteger(at: message.payload.readerIndex, as: UInt32.self) {
                try self.chunks.setChunkSize(size)
                self.rtmp.setReadChunkSize(self.chunks.chunkSize)
            }
        case .aggregate:
            var parts = Aggregate(message)
            while let part = try Self.checked({ () throws(RTMPError) in try parts.next() }) {
                // Only media belongs in an aggregate (RTMP 1.0 §7.1.6). Each part has its own limit.
                guard [.audio, .video, .dataAMF0, .dataAMF3].contains(part.type) else { continue }
                let limit = self.limits.messageBytes(part.type)
                guard part.payload.readableBytes <= limit else {
                    let error = RTMPError.messageTooLarge(type: part.type.rawValue, length: part.payload.readableBytes, limit: limit)
                    throw .protocolViolation(error.description)
                }
                try self.pass(part)
            }
        case .commandAMF0, .commandAMF3:
            guard message.payload.readableBytes > 0 else { break }
            let amf = self.limits.amf
            if let word = self.finalWord(try Self.checked({ () throws(RTMPError) in try Command(message, limits: amf) })) { throw word }
            try self.pass(message)
        default: try self.pass(message)
        }
    }

    private func pass(_ message: Message) throws(LinkError) {
        do throws(RTMPError) {
            try self.session.receive(message)
        } catch {
            throw .protocolViolation(error.description)
        }
    }

    private static func checked<Result>(_ read: () throws(RTMPError) -> Result) throws(LinkError) -> Result {
        do throws(RTMPError) {
            return try read()
        } catch {
            throw .protocolViolation(error.description)
        }
    }

    /// The error of a command that always ends the link. The session does not inspect these.
    private func finalWord(_ command: Command) -> LinkError? {
        let information = command.arguments.first
        if let target = information?["ex"]?["redirect"]?.string ?? information?["redirect"]?.string {
            return .redirected(to: LinkURL.origin(of: target) ?? "another server")
        }
        if command.name == "onStatus", let (property, objection) = self.wayObjection, let text = information?[property]?.string,
            let why = objection(text)
        {
            return .loop(why)
        }
        return command.name == "close" ? .ended(code: "close") : nil
    }

    /// Reads the socket without waiting. Returns false when nothing is there; throws at the connection's end.
    func fill(_ during: String) throws(LinkError) -> Bool {
        let descriptor = self.descriptor
        var count: Int?
        self.input.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.readBytes) { buffer in
            count = System.receive(descriptor, UnsafeMutableRawBufferPointer(rebasing: buffer[..<Self.readBytes]))
            return max(count ?? 0, 0)
        }
        guard let count else { return false }
        guard count > 0 else { throw self.end(during) }
        self.bytesIn &+= UInt64(count)
        self.counters.received(bytes: count)
        self.session.bytesReceived(self.bytesIn)
        return true
    }

    private func end(_ during: String) -> LinkError {
        if self.control.isStopping { return .cancelled }
        if let failure = self.pump?.failure { return .tls(origin: self.url.origin, why: failure) }
        return .closed(while: during)
    }

    /// Waits for data from the server or a wake. Throws when the link is stopped, or after the time (`System.nowMs`).
    func wait(until endMs: Int64, orElse error: LinkError) throws(LinkError) {
        if try self.control.wait(for: self.descriptor, Int32(POLLIN), until: endMs) { return }
        guard System.nowMs() < endMs else { throw error }
    }

    /// Waits for data from the server, a wake or the time. Throws when the link is stopped.
    func wait(until endMs: Int64) throws(LinkError) {
        _ = try self.control.wait(for: self.descriptor, Int32(POLLIN), until: endMs)
    }

    // MARK: Sending

    /// Sends a message. Blocks until the system has accepted all of it.
    func send(_ message: Message) throws(LinkError) {
        let begin = System.nowMs()
        guard self.rtmp.send(message) else {
            if System.nowMs() - begin >= Int64(self.sendStallMs), !self.control.isStopping { throw .stalled(ms: self.sendStallMs) }
            throw self.end("while sending")
        }
        self.counters.sent(bytes: message.payload.readableBytes + 12)
    }

    /// Announces our chunk size; librtmp would stay at 128 bytes, with one write per chunk.
    func announceChunkSize() throws(LinkError) {
        try self.send(ControlMessage.setChunkSize(UInt32(ClientSession.outgoingChunkSize)).message)
        self.rtmp.setWriteChunkSize(ClientSession.outgoingChunkSize)
    }

    /// Sends the session's last messages and ends the sending side. Then waits up to half a second for the server. Never throws.
    func finish() {
        do throws(LinkError) {
            while let output = self.session.nextOutput() {
                if case .send(let message) = output { try self.send(message) }
            }
        } catch {
            return
        }
        self.isFinished = true
        System.shutdownWriting(self.descriptor)
        let end = System.nowMs() + 500
        var scrap = [UInt8](repeating: 0, count: 4_096)
        while System.nowMs() < end {
            var set = [pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)]
            guard System.poll(&set, timeoutMs: end - System.nowMs()) else { return }
            let count = scrap.withUnsafeMutableBytes { System.receive(self.descriptor, $0) } ?? 1
            guard count > 0 else { return }
        }
    }
}
