import LibC
import NIOCore
import RTMP

/// One synthetic camera: a blocking connection that publishes. Used by one thread at a time, its creator or the publisher's.
struct PublisherConnection {
    let room: Int
    private let descriptor: CInt
    private var writer = MessageWriter()
    private var decoder = ChunkDecoder()
    private var session = ClientSession()
    private var streamID: UInt32 = 1
    private(set) var videoSequence: UInt64 = 0
    private(set) var audioSequence: UInt64 = 0

    private static let timeoutSeconds = 10

    /// Connects, waits until the server reports that the publish has started, and sends the headers.
    init(target: Target, name: String, room: Int, shape: StreamShape) throws(LoadError) {
        self.room = room
        self.descriptor = try Socket.open(to: target, isBlocking: true)
        Socket.setTimeout(self.descriptor, seconds: Self.timeoutSeconds)
        do throws(LoadError) {
            try self.handshake()
            self.session.connect(app: target.app, tcUrl: target.url, publishes: true)
            try self.establish(name)
            self.session.setDataFrame(SyntheticMedia.metadata(shape), on: self.streamID)
            try self.flush()
            if shape.videoKbps > 0 { try self.send(.video, SyntheticMedia.videoHeader, timestamp: 0) }
            if shape.audioKbps > 0 { try self.send(.audio, SyntheticMedia.audioHeader, timestamp: 0) }
        } catch {
            LibC.close(self.descriptor)
            throw error
        }
    }

    func close() {
        LibC.close(self.descriptor)
    }

    mutating func sendVideo(_ shape: StreamShape, timestamp: UInt32, isKeyframe: Bool) throws(LoadError) {
        let length = shape.videoBytes(isKeyframe: isKeyframe)
        let stamp = Stamp(length: length, room: self.room, sequence: self.videoSequence, sentNs: Clock.now())
        self.videoSequence += 1
        try self.send(.video, SyntheticMedia.video(stamp, isKeyframe: isKeyframe), timestamp: timestamp)
    }

    mutating func sendAudio(_ shape: StreamShape, timestamp: UInt32) throws(LoadError) {
        let stamp = Stamp(length: shape.audioBytes, room: self.room, sequence: self.audioSequence, sentNs: Clock.now())
        self.audioSequence += 1
        try self.send(.audio, SyntheticMedia.audio(stamp), timestamp: timestamp)
    }

    /// Answers messages that the server has sent meanwhile, such as pings.
    mutating func answer() throws(LoadError) {
        while let bytes = try self.receive(flags: CInt(MSG_DONTWAIT)) { try self.handle(bytes) { _ in } }
    }

    // MARK: Setting up

    private mutating func handshake() throws(LoadError) {
        var handshake = ClientHandshake()
        try self.send(handshake.start(random: HandshakeRandom.bytes))
        while !handshake.isDone {
            guard var bytes = try self.receive(flags: 0) else { continue }
            let answer: ByteBuffer?
            do throws(RTMPError) {
                answer = try handshake.receive(&bytes, random: HandshakeRandom.bytes)
            } catch {
                throw .publisher("\(error)")
            }
            if let answer { try self.send(answer) }
            if handshake.isDone { self.decoder.append(bytes) }
        }
    }

    private mutating func establish(_ name: String) throws(LoadError) {
        var isPublishing = false
        while !isPublishing {
            try self.flush()
            guard let bytes = try self.receive(flags: 0) else { continue }
            var refusal: LoadError?
            var created: UInt32?
            var isConnected = false
            try self.handle(bytes) { output in
                switch output {
                case .connected: isConnected = true
                case .streamCreated(let streamID): created = streamID
                case .publishStarted: isPublishing = true
                // Servers may refuse releaseStream and FCPublish, to no effect.
                case .refused(let command, let status) where ["connect", "createStream", "publish"].contains(command):
                    refusal = .publisher("\(command) refused: \(status.code) \(status.description)")
                default: break
                }
            }
            if let refusal { throw refusal }
            if isConnected { self.session.createStream() }
            if let created {
                self.streamID = created
                self.session.publish(name, on: created)
            }
        }
    }

    // MARK: Bytes

    private mutating func handle(_ bytes: ByteBuffer, _ body: (ClientSessionOutput) -> Void) throws(LoadError) {
        self.decoder.append(bytes)
        do throws(RTMPError) {
            while let message = try self.decoder.nextMessage() { try self.session.receive(message) }
        } catch {
            throw .publisher("\(error)")
        }
        try self.flush(body)
    }

    private mutating func flush(_ body: (ClientSessionOutput) -> Void = { _ in }) throws(LoadError) {
        var out = ByteBuffer()
        while let output = self.session.nextOutput() {
            switch output {
            case .send(let message): self.writer.encode(message, into: &out)
            case .setChunkSize(let size): self.writer.setChunkSize(size)
            default: body(output)
            }
        }
        if out.readableBytes > 0 { try self.send(out) }
    }

    private mutating func send(_ type: MessageType, _ payload: ByteBuffer, timestamp: UInt32) throws(LoadError) {
        var out = ByteBuffer()
        self.writer.encode(Message(type: type, streamID: self.streamID, timestamp: timestamp, payload: payload), into: &out)
        try self.send(out)
    }

    private func send(_ bytes: ByteBuffer) throws(LoadError) {
        guard bytes.withUnsafeReadableBytes({ Socket.sendAll(self.descriptor, $0) }) else { throw .system("send", errno) }
    }

    /// Receives bytes; `nil` when a non-blocking call finds none.
    private func receive(flags: CInt) throws(LoadError) -> ByteBuffer? {
        var buffer = ByteBuffer()
        var code: CInt = 0
        let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 16 << 10) { bytes in
            let count = recv(self.descriptor, bytes.baseAddress, bytes.count, flags)
            if count < 0 { code = errno }
            return max(0, count)
        }
        if count > 0 { return buffer }
        if code == EINTR || flags != 0 && code == EAGAIN { return nil }
        throw .publisher("the server closed the connection, or did not answer within \(Self.timeoutSeconds) s")
    }
}
