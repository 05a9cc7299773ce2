import NIOCore

/// The server's side of one RTMP connection after the handshake: commands in, answers and requests out.
///
/// Owned by one connection, on its event loop. No I/O, no clock: methods take events, ``nextOutput()`` returns actions to perform.
/// ```
/// waitingConnect --connect--> deciding --acceptConnect--> connected
/// message stream:  idle --publish--> decidingPublish --accept--> publishing --unpublish--> ended
///                  idle --play-----> decidingPlay ----accept--> playing ----stop-------> ended
/// ```
/// Index: control messages · connect · streams · publish · play · data · answers.
package struct ServerSession {
    private enum Phase {
        case waitingConnect
        case deciding(ConnectRequest)
        case connected(ConnectRequest)
    }

    /// Payload bytes per outgoing chunk. Most messages fit in one; it stays below 65,536 for 16-bit clients.
    package static let outgoingChunkSize = 60_000
    /// The share of an uplink that an encoder may fill; the rest allows for variation.
    static let uplinkShare = 0.85
    private static let window: UInt32 = 2_500_000

    private let limits: SharedLimits
    private var phase = Phase.waitingConnect
    var streams: NetStreams
    /// The last Window Acknowledgement Size sent.
    private var announcedWindow: UInt32?
    var outputs = SessionOutputs<ServerSessionOutput>()
    private var acknowledgementWindow: UInt64 = UInt64(Self.window)
    private var acknowledgedBytes: UInt64 = 0
    private var hasUnknownCommand = false
    /// Bytes that the peer has acknowledged (modulo 2^32).
    package private(set) var peerAcknowledged: UInt32?

    package init(limits: Limits = Limits()) { self.init(SharedLimits(limits)) }

    package init(_ limits: SharedLimits) {
        self.limits = limits
        self.streams = NetStreams(limit: limits.values.messageStreams)
    }

    /// The client's `connect`, from its arrival on.
    package var connect: ConnectRequest? {
        switch self.phase {
        case .waitingConnect: nil
        case .deciding(let request), .connected(let request): request
        }
    }

    /// Whether the client has announced support for reconnect requests (Enhanced RTMP v2, `capsEx` 1). False before `connect` is accepted.
    var mayReconnect: Bool { if case .connected(let connect) = self.phase { connect.capsEx & 1 != 0 } else { false } }

    package var isConnected: Bool { if case .connected = self.phase { true } else { false } }

    /// Whether a publish on this message stream was accepted; `false` while the decision is pending.
    package func isPublishing(_ streamID: UInt32) -> Bool { self.streams.role(streamID) == .publishing }

    /// Returns the next action to perform; `nil` when none is left.
    package mutating func nextOutput() -> ServerSessionOutput? { self.outputs.next() }

    /// Returns whether a command came since the last call that this server does not know. Its sender was told so, if it asked for an answer.
    package mutating func consumeUnknownCommand() -> Bool {
        defer { self.hasUnknownCommand = false }
        return self.hasUnknownCommand
    }

    // MARK: Control messages

    /// Handles any message except audio and video on a publishing stream, which need no session.
    package mutating func receive(_ message: Message) throws(RTMPError) {
        switch message.type {
        case .audio, .video:
            guard self.streams.mayTrail(message.streamID) else { throw .mediaWithoutPublish(streamID: message.streamID) }
        case .commandAMF0, .commandAMF3:
            // gstreamer and some encoders send empty keep-alive messages of command type.
            guard message.payload.readableBytes > 0 else { return }
            try self.receive(Command(message, limits: self.limits.values.amf), message)
        case .dataAMF0, .dataAMF3:
            try self.receiveData(message)
        default:
            if let control = try ControlMessage(message) { try self.receive(control) }
        }
    }

    private mutating func receive(_ control: ControlMessage) throws(RTMPError) {
        switch control {
        case .setChunkSize(let size):
            guard size > 0, size <= 0x7FFF_FFFF else { throw .invalidChunkSize(size) }
        case .acknowledgement(let sequence):
            self.peerAcknowledged = sequence
        case .windowAcknowledgementSize(let size):
            if size > 0 { self.acknowledgementWindow = UInt64(size) }
        case .setPeerBandwidth(let size, let limit):
            // RTMP 1.0 §5.4.5: answer with that window if it differs from the last one announced.
            guard size > 0, size != self.announcedWindow, limit != .dynamic else { return }
            self.announcedWindow = size
            self.send(.windowAcknowledgementSize(size))
        case .userControl(.pingRequest(let value)):
            self.send(.userControl(.pingResponse(value)))
        case .userControl(.pingResponse(let value)):
            self.outputs.append(.pong(value))
        case .abort, .userControl:
            break
        }
    }

    /// Reports the total of bytes received. Sends an acknowledgement once per window (RTMP 1.0 §5.4.3).
    package mutating func bytesReceived(_ total: UInt64) {
        guard total &- self.acknowledgedBytes >= self.acknowledgementWindow else { return }
        self.acknowledgedBytes = total
        self.send(.acknowledgement(UInt32(truncatingIfNeeded: total)))
    }

    /// Sends a ping; the peer's answer comes out as `pong(value)`.
    package mutating func ping(_ value: UInt32) { self.send(.userControl(.pingRequest(value))) }

    // MARK: Commands

    private mutating func receive(_ command: Command, _ message: Message) throws(RTMPError) {
        if command.name == "connect" { return self.receiveConnect(command) }
        guard case .connected(let connect) = self.phase else {
            if command.name == "close" { return }
            throw .unexpectedCommand(self.printable(command.name))
        }
        let amf3 = message.type == .commandAMF3
        switch command.name {
        case "createStream": try self.receiveCreateStream(command, amf3)
        case "releaseStream", "FCPublish", "_checkbw", "checkBandwidth", "setPlaybackLength":
            self.result(command, amf3, .undefined)
        case "FCUnpublish":
            self.result(command, amf3, .undefined)
            self.receiveUnpublish(name: command.string(at: 0))
        case "FCSubscribe":
            let status = Status(StatusCode.playStart, "Subscribed.")
            self.sendCommand(Command("onFCSubscribe", arguments: [status.object()]), streamID: 0, amf3)
        case "FCUnsubscribe":
            let status = Status(StatusCode.playStop, "Unsubscribed.")
            self.sendCommand(Command("onFCUnsubscribe", arguments: [status.object()]), streamID: 0, amf3)
        case "publish": try self.receivePublish(command, on: message.streamID, connect)
        case "play": try self.receivePlay(command, on: message.streamID, connect)
        case "play2":
            self.status(
                message.streamID, Status(StatusCode.playFailed, level: .error, "play2 is not available for live streams; use play."))
        case "getStreamLength": self.result(command, amf3, .number(0))  // live: no length
        case "closeStream": self.end(message.streamID, delete: false)
        case "deleteStream":
            if let id = command.number(at: 0), id >= 0, id <= Double(UInt32.max) { self.end(UInt32(id), delete: true) }
        case "pause", "pauseRaw": self.receivePause(command, on: message.streamID)
        case "seek":
            self.status(message.streamID, Status(StatusCode.seekNotify, "A live stream cannot seek; it continues at its live position."))
        case "receiveAudio": self.receiveTrack(command, on: message.streamID) { .receiveAudio(streamID: $0, $1) }
        case "receiveVideo": self.receiveTrack(command, on: message.streamID) { .receiveVideo(streamID: $0, $1) }
        case "close": for id in self.streams.ids { self.end(id, delete: true) }
        case "_result", "_error", "onStatus", "": break
        default:
            self.hasUnknownCommand = true
            guard command.transaction != 0 else { return }
            let status = Status(StatusCode.callFailed, level: .error, "There is no method \(self.printable(command.name)).")
            self.sendCommand(Command("_error", transaction: command.transaction, arguments: [status.object()]), streamID: 0, amf3)
        }
    }

    private mutating func receiveConnect(_ command: Command) {
        guard case .waitingConnect = self.phase else {
            let status = Status(StatusCode.connectRejected, level: .error, "This connection is already connected.")
            self.sendCommand(Command("_error", transaction: command.transaction, arguments: [status.object()]), streamID: 0, false)
            return
        }
        let request = ConnectRequest(command)
        self.phase = .deciding(request)
        self.outputs.append(.connect(request))
    }

    /// Answers `connect`: window, bandwidth, chunk size and `_result` at once, so that no delayed acknowledgement falls between them.
    package mutating func acceptConnect() {
        guard case .deciding(let request) = self.phase else { return }
        self.phase = .connected(request)
        self.send(.windowAcknowledgementSize(Self.window))
        self.announcedWindow = Self.window
        self.send(.setPeerBandwidth(Self.window, .dynamic))
        self.send(.setChunkSize(UInt32(Self.outgoingChunkSize)))
        self.outputs.append(.setChunkSize(Self.outgoingChunkSize))
        let properties: AMF0Value = .object([
            AMF0Property(name: "fmsVer", value: .string("FMS/3,5,7,7009")),
            AMF0Property(name: "capabilities", value: .number(31)),
            AMF0Property(name: "mode", value: .number(1)),
        ])
        var extra = [AMF0Property(name: "objectEncoding", value: .number(request.objectEncoding))]
        if request.isEnhanced {
            // Enhanced RTMP v2: forward any codec (4), decode none; capsEx has multitrack 2, ModEx 4, nanosecond offsets 8.
            let forwardAll: AMF0Value = .object([AMF0Property(name: "*", value: .number(4))])
            extra += [
                AMF0Property(name: "capsEx", value: .number(Double(2 | 4 | 8))),
                AMF0Property(name: "fourCcList", value: .strictArray([.string("*")])),
                AMF0Property(name: "videoFourCcInfoMap", value: forwardAll),
                AMF0Property(name: "audioFourCcInfoMap", value: forwardAll),
            ]
        }
        let status = Status(StatusCode.connectSuccess, "Connection succeeded.")
        // Always AMF0: the client's own encoding applies from the next command on.
        self.sendCommand(
            Command("_result", transaction: request.transaction, object: properties, arguments: [status.object(extra)]),
            streamID: 0, false)
    }

    package mutating func rejectConnect(_ status: Status) {
        guard case .deciding(let request) = self.phase else { return }
        self.sendCommand(Command("_error", transaction: request.transaction, arguments: [status.object()]), streamID: 0, false)
    }

    /// Rejects a client that is already connected. Sends the status of a rejected `connect` as `onStatus` on message stream 0.
    package mutating func rejectConnection(_ status: Status) {
        guard self.isConnected else { return }
        self.status(0, status)
    }

    // MARK: Message streams

    private mutating func receiveCreateStream(_ command: Command, _ amf3: Bool) throws(RTMPError) {
        let id = try self.streams.open()
        self.result(command, amf3, .number(Double(id)))
    }

    private mutating func end(_ streamID: UInt32, delete: Bool) {
        guard let role = self.streams.end(streamID, delete: delete) else { return }
        switch role {
        case .publishing, .decidingPublish:
            self.outputs.append(.unpublish(streamID: streamID))
            self.status(streamID, Status(StatusCode.unpublishSuccess, "Unpublished."))
        case .playing, .decidingPlay:
            self.outputs.append(.stop(streamID: streamID))
            self.status(streamID, Status(StatusCode.playStop, "Stopped playing."))
        case .idle, .ended:
            break
        }
    }

    // MARK: Publish

    private mutating func receivePublish(_ command: Command, on streamID: UInt32, _ connect: ConnectRequest) throws(RTMPError) {
        let position = try self.streams.position(streamID)
        let name = command.string(at: 0) ?? ""
        if self.streams[position].role != .idle && self.streams[position].role != .ended {
            let what = "This message stream already publishes or plays; create another one."
            self.status(streamID, Status(StatusCode.publishBadName, level: .error, what))
            return
        }
        // The publishing type (live, record, append) is read as live: the room's policy decides on recording, not the encoder.
        do throws(StreamAddressError) {
            let address = try StreamAddress(encodedApp: connect.app, name: name, limits: self.limits.values)
            self.streams[position].role = .decidingPublish
            self.streams[position].rawName = name
            self.outputs.append(.publish(streamID: streamID, address))
        } catch {
            self.streams[position].role = .ended
            self.status(streamID, Status(StatusCode.publishBadName, level: .error, "Refused: \(error)."))
            self.outputs.append(.badName(error))
        }
    }

    private mutating func receiveUnpublish(name: String?) {
        for id in self.streams.published(as: name) { self.end(id, delete: false) }
    }

    // MARK: Play

    private mutating func receivePlay(_ command: Command, on streamID: UInt32, _ connect: ConnectRequest) throws(RTMPError) {
        let position = try self.streams.position(streamID)
        let name = command.string(at: 0) ?? ""
        switch self.streams[position].role {
        case .idle, .ended: break
        case .playing, .decidingPlay:
            // A second play on the same message stream replaces the first (RTMP 1.0 §7.2.2.1, reset).
            self.outputs.append(.stop(streamID: streamID))
        case .publishing, .decidingPublish:
            self.status(streamID, Status(StatusCode.playFailed, level: .error, "This message stream publishes; create another one."))
            return
        }
        do throws(StreamAddressError) {
            let address = try StreamAddress(encodedApp: connect.app, name: name, limits: self.limits.values)
            self.streams[position].role = .decidingPlay
            self.streams[position].rawName = name
            self.streams[position].resets = command.boolean(at: 3) ?? command.number(at: 3).map { $0 != 0 } ?? true
            self.outputs.append(.play(streamID: streamID, address))
        } catch {
            self.streams[position].role = .ended
            self.status(streamID, Status(StatusCode.playStreamNotFound, level: .error, "Refused: \(error)."))
            self.outputs.append(.badName(error))
        }
    }

    /// Handles `pause`. A player wants no media for now; a publisher will send none for a while.
    private mutating func receivePause(_ command: Command, on streamID: UInt32) {
        let role = self.streams.role(streamID)
        guard role == .playing || role == .publishing else { return }
        let pause = command.boolean(at: 0) ?? true
        self.outputs.append(.pause(streamID: streamID, pause))
        let code = pause ? StatusCode.pauseNotify : StatusCode.unpauseNotify
        let resumed = role == .playing ? "Playing again from the live position." : "Media is expected again."
        self.status(streamID, Status(code, pause ? "Paused." : resumed))
    }

    private mutating func receiveTrack(_ command: Command, on streamID: UInt32, _ output: (UInt32, Bool) -> ServerSessionOutput) {
        guard self.streams.role(streamID) == .playing else { return }
        self.outputs.append(output(streamID, command.boolean(at: 0) ?? true))
    }

    // MARK: Data

    private mutating func receiveData(_ message: Message) throws(RTMPError) {
        guard message.payload.readableBytes > 0 else { return }
        guard self.isPublishing(message.streamID) else {
            guard self.streams.mayTrail(message.streamID) else { throw .mediaWithoutPublish(streamID: message.streamID) }
            return
        }
        switch DataFrame(message) {
        case .set(let payload):
            self.outputs.append(.data(streamID: message.streamID, timestamp: message.timestamp, payload: payload))
        case .clear:
            self.outputs.append(.clearData(streamID: message.streamID))
        }
    }

    // MARK: Answers

    mutating func send(_ control: ControlMessage) { self.outputs.append(.send(control.message)) }

    private mutating func sendCommand(_ command: Command, streamID: UInt32, _ amf3: Bool) {
        self.outputs.append(.send(command.message(streamID: streamID, amf3: amf3)))
    }

    private mutating func result(_ command: Command, _ amf3: Bool, _ value: AMF0Value) {
        guard command.transaction != 0 else { return }
        self.sendCommand(Command("_result", transaction: command.transaction, arguments: [value]), streamID: 0, amf3)
    }

    mutating func status(_ streamID: UInt32, _ status: Status, _ extra: [AMF0Property] = []) {
        let amf3 = if case .connected(let connect) = self.phase { connect.objectEncoding == 3 } else { false }
        self.sendCommand(Command("onStatus", arguments: [status.object(extra)]), streamID: streamID, amf3)
    }

    /// A peer's text for a log or an answer: cut short, without control characters.
    private func printable(_ text: String) -> String {
        String(text.unicodeScalars.prefix(64).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : Character($0) })
    }
}
