import LibC
package import NIOCore
package import NIOPosix
package import RTMP
import TestSupport

/// An RTMP client that sends whatever a test asks, and keeps all it receives. Any thread; state is loop-bound.
package final class RawClient: Sendable {
    /// Settings of the socket.
    package struct Options: Sendable {
        /// The address to connect from; loopback has many.
        package var from: String?
        /// Kernel receive buffer in bytes (SO_RCVBUF); `nil`: the system's default.
        package var receiveBuffer: Int?
        /// Whether Nagle's algorithm holds back small writes, as in many stock clients.
        package var waitsForAcknowledgement = false
        /// Most bytes per read.
        package var readBytes = 64 << 10
        /// The client's event loops; the canary has its own.
        package var group: MultiThreadedEventLoopGroup = RawClient.group
        package init() {}

        package static func from(_ address: String) -> Options {
            var options = Options()
            options.from = address
            return options
        }
    }

    package struct Received: Sendable {
        package let message: Message
        package let at: ContinuousClock.Instant
    }

    /// Separate from the server's loops: a client's cost must not look like the server's delay.
    package static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    package let channel: any Channel
    private let handler: RawClientHandler
    private let inbox: Inbox

    private init(channel: any Channel, handler: RawClientHandler) {
        self.channel = channel
        self.handler = handler
        self.inbox = handler.inbox
    }

    // MARK: Opening

    /// Opens a connection and sends nothing.
    package static func open(_ port: some RTMPDoor, _ options: Options = Options()) async throws -> RawClient {
        let handler = RawClientHandler()
        let channel = try await port.open(options) { try $0.pipeline.syncOperations.addHandler(handler) }
        let client = RawClient(channel: channel, handler: handler)
        // The connect may complete before `channelActive` has stored the address.
        try await client.wait("the socket's address") { $0.address.isEmpty ? nil : true }
        return client
    }

    /// Completes the handshake.
    package static func shaken(_ port: some RTMPDoor, _ options: Options = Options()) async throws -> RawClient {
        let client = try await self.open(port, options)
        try await client.handshake()
        return client
    }

    /// Connects to an app.
    package static func connected(_ port: some RTMPDoor, app: String = "live", _ options: Options = Options()) async throws -> RawClient {
        let client = try await self.shaken(port, options)
        try await client.connect(app: app)
        return client
    }

    /// Publishes `name` on message stream 1.
    package static func publishing(_ port: some RTMPDoor, _ name: String, _ options: Options = Options()) async throws -> RawClient {
        let client = try await self.connected(port, options)
        try await client.publish(name, on: client.createStream())
        return client
    }

    /// Plays `name` on message stream 1.
    package static func playing(_ port: some RTMPDoor, _ name: String, _ options: Options = Options()) async throws -> RawClient {
        let client = try await self.connected(port, options)
        try await client.play(name, on: client.createStream())
        return client
    }

    // MARK: Protocol steps

    package func handshake(_ kind: ClientHandshake.Kind = .simple) async throws {
        try await self.onLoop { $0.startHandshake(kind) }
        try await self.wait("the handshake") { $0.isShaken ? true : nil }
    }

    package func connect(app: String, extra: [AMF0Property] = []) async throws {
        try await self.call("connect") {
            $0.connect(app: app, tcUrl: "rtmp://127.0.0.1/\(app)", extra: extra)
        } until: {
            if case .connected = $0 { true } else { nil }
        }
    }

    package func createStream() async throws -> UInt32 {
        try await self.call("createStream") {
            $0.createStream()
        } until: {
            if case .streamCreated(let id) = $0 { id } else { nil }
        }
    }

    package func publish(_ name: String, on streamID: UInt32 = 1) async throws {
        try await self.call("publish \(name.prefix(40))") {
            $0.publish(name, on: streamID)
        } until: {
            $0 == .publishStarted(streamID: streamID) ? true : nil
        }
    }

    package func play(_ name: String, on streamID: UInt32 = 1) async throws {
        try await self.call("play \(name.prefix(40))") {
            $0.play(name, on: streamID)
        } until: {
            $0 == .playStarted(streamID: streamID) ? true : nil
        }
    }

    /// Does not wait for acceptance.
    package func createStreamAndTryToPublish(_ name: String) async throws {
        let streamID = try await self.createStream()
        try await self.run { $0.publish(name, on: streamID) }
    }

    package func createStreamAndTryToPlay(_ name: String) async throws {
        let streamID = try await self.createStream()
        try await self.run { $0.play(name, on: streamID) }
    }

    /// Runs a session call and waits for an answer among the outputs after it.
    @discardableResult
    package func call<Value: Sendable>(
        _ what: String, _ body: @escaping @Sendable (inout ClientSession) -> Void,
        until answer: @escaping @Sendable (ClientSessionOutput) -> Value?
    ) async throws -> Value {
        let before = self.outputs.count
        try await self.run(body)
        return try await self.wait(what) { inbox in
            for output in inbox.outputs.dropFirst(before) {
                if let value = answer(output) { return value }
            }
            return nil
        }
    }

    /// Runs a session call and sends its messages.
    package func run(_ body: @escaping @Sendable (inout ClientSession) -> Void) async throws {
        try await self.onLoop { $0.run(body) }
    }

    // MARK: Sending

    /// Sends messages in valid chunks, without waiting.
    package func send(_ messages: Message...) {
        self.channel.eventLoop.execute { self.handler.send(messages) }
    }

    package func send(_ messages: [Message]) {
        self.channel.eventLoop.execute { self.handler.send(messages) }
    }

    package func send(_ type: MessageType, _ payload: [UInt8], timestamp: UInt32 = 0, on streamID: UInt32 = 1) {
        self.send(Message(type: type, streamID: streamID, timestamp: timestamp, payload: ByteBuffer(bytes: payload)))
    }

    package func send(_ command: Command, on streamID: UInt32 = 0) {
        self.send(command.message(streamID: streamID))
    }

    /// Sends any bytes. Returns once the kernel has accepted them; `false` when the connection is gone.
    @discardableResult
    package func send(bytes: [UInt8]) async -> Bool {
        await self.send(bytes: ByteBuffer(bytes: bytes))
    }

    @discardableResult
    package func send(bytes: ByteBuffer) async -> Bool {
        do {
            try await self.channel.writeAndFlush(bytes)
            return true
        } catch {
            return false
        }
    }

    // MARK: Reading and closing

    package func stopReading() async throws {
        try await self.channel.setOption(ChannelOptions.autoRead, value: false).get()
    }

    package func startReading() async throws {
        try await self.channel.setOption(ChannelOptions.autoRead, value: true).get()
        self.channel.read()
    }

    /// One read of `Options.readBytes` per interval, from now on.
    package func readSlowly(every interval: TimeAmount) async throws {
        try await self.stopReading()
        let channel = self.channel
        channel.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { task in
            if channel.isActive { channel.read() } else { task.cancel() }
        }
    }

    package func close() async {
        // The server may have closed it already.
        _ = try? await self.channel.close().get()
    }

    /// Closes with a TCP reset (SO_LINGER 0) instead of an orderly end.
    package func reset() async throws {
        if let channel = self.channel as? MemoryChannel { return try await channel.reset().get() }
        guard let socket = self.channel as? any SocketOptionProvider else { return }
        do {
            try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        } catch {
            // The server closed it first.
            guard self.isClosed || !self.channel.isActive else { throw error }
        }
        await self.close()
    }

    /// Closes the sending side only.
    package func closeOutput() async throws {
        try await self.channel.close(mode: .output).get()
    }

    // MARK: What came

    package var outputs: [ClientSessionOutput] { self.inbox.read { $0.outputs } }
    package var received: [Received] { self.inbox.read { $0.received } }
    package var bytesReceived: Int { self.inbox.read { $0.bytes } }
    package var isClosed: Bool { self.inbox.read { $0.isClosed } }
    /// "127.0.0.1:PORT", as the server logs it.
    package var address: String { self.inbox.read { $0.address } }
    /// The error when the server's bytes were not RTMP: a test must fail on it.
    package var decodingError: RTMPError? { self.inbox.read { $0.error } }

    /// Audio, video and data of one message stream in order, without filler (``FLVTag/isFiller``).
    package func media(on streamID: UInt32 = 1) -> [Received] {
        self.received.filter {
            $0.message.streamID == streamID && [.audio, .video, .dataAMF0].contains($0.message.type)
                && ($0.message.type != .video || $0.message.payload.readableBytesView.first != 0x57)
        }
    }

    /// Codes of all `onStatus` and refusals so far.
    package var statusCodes: [String] { self.statuses.map(\.code) }

    /// All `onStatus` and refusals so far.
    package var statuses: [Status] {
        self.received.compactMap { received in
            guard received.message.type == .commandAMF0, let command = try? Command(received.message, limits: AMFLimits()) else {
                return nil
            }
            return command.arguments.first.flatMap(Status.init)
        }
    }

    package var controls: [ControlMessage] {
        // The session already reports malformed control messages as errors.
        self.received.compactMap { try? ControlMessage($0.message) }
    }

    @discardableResult
    package func wait<Value: Sendable>(
        _ what: String, within seconds: Double = 60, for condition: @Sendable (Inbox.Content) -> Value?
    ) async throws -> Value {
        let end = ContinuousClock.now + .seconds(seconds * Patience.factor)
        while true {
            let (value, isClosed) = self.inbox.read { (condition($0), $0.isClosed) }
            if let value { return value }
            if isClosed { throw TimedOut(description: "closed while waiting for \(what): \(self.statusCodes)") }
            if ContinuousClock.now > end { throw TimedOut(description: "waited \(seconds) s for \(what)") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    package func waitForStatus(_ code: String, within seconds: Double = 60) async throws {
        try await eventually("status \(code)", within: seconds) { self.statusCodes.contains(code) }
    }

    package func waitUntilClosed(within seconds: Double = 60) async throws {
        try await eventually("the server to close \(self.address)", within: seconds) { self.isClosed }
    }

    private func onLoop(_ body: @escaping @Sendable (RawClientHandler) -> Void) async throws {
        try await self.channel.eventLoop.submit { body(self.handler) }.get()
    }
}
