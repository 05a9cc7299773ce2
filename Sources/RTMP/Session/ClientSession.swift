import NIOCore

/// An event or an action that a client session produces, in order.
package enum ClientSessionOutput: Sendable, Equatable {
    case send(Message)
    case setChunkSize(Int)
    case connected(AMF0Value)
    /// The server answered `createStream`: publish or play on this message stream.
    case streamCreated(streamID: UInt32)
    case publishStarted(streamID: UInt32)
    case playStarted(streamID: UInt32)
    /// Any `onStatus` without a case of its own.
    case status(streamID: UInt32, Status)
    /// Audio, video or data on a stream that is being played.
    case media(Message)
    case streamEOF(UInt32)
    case pong(UInt32)
    /// The server rejected a call; this connection is no longer usable for it.
    case refused(command: String, Status)
}

/// The client's side of one RTMP connection after the handshake. Publishes and plays, several streams at once if asked.
///
/// Owned by one connection; no I/O, no clock. Calls go in through the methods, outputs come out of ``nextOutput()``.
package struct ClientSession {
    private let limits: Limits
    private var outputs = SessionOutputs<ClientSessionOutput>()
    private var lastTransaction = 0.0
    private var pending: [Double: String] = [:]
    private var roles: [UInt32: Role] = [:]
    private var acknowledgementWindow: UInt64 = 2_500_000
    private var acknowledgedBytes: UInt64 = 0

    private enum Role { case publishing, playing }

    /// Payload bytes per outgoing chunk.
    package static let outgoingChunkSize = 60_000

    package init(limits: Limits = Limits()) { self.limits = limits }

    package mutating func nextOutput() -> ClientSessionOutput? { self.outputs.next() }

    // MARK: Calls

    /// Opens the connection to an app; answered by `connected` or `refused`.
    /// - Parameter publishes: announces a publish as FMLE does, so that the server knows it from the start.
    /// - Parameter extra: adds properties to the command object, such as Enhanced RTMP's `capsEx`.
    package mutating func connect(
        app: String, tcUrl: String, flashVersion: String = "LNX 9,0,124,2", publishes: Bool = false, extra: [AMF0Property] = []
    ) {
        self.send(.setChunkSize(UInt32(Self.outgoingChunkSize)))
        self.outputs.append(.setChunkSize(Self.outgoingChunkSize))
        var object = [AMF0Property(name: "app", value: .string(app))]
        if publishes { object.append(AMF0Property(name: "type", value: .string("nonprivate"))) }
        object += [
            AMF0Property(name: "flashVer", value: .string(flashVersion)), AMF0Property(name: "tcUrl", value: .string(tcUrl)),
        ]
        self.call("connect", object: .object(object + extra))
    }

    /// Asks for a message stream; answered by `streamCreated`.
    package mutating func createStream() { self.call("createStream") }

    package mutating func publish(_ name: String, on streamID: UInt32, type: String = "live") {
        self.roles[streamID] = .publishing
        self.call("releaseStream", arguments: [.string(name)])
        self.call("FCPublish", arguments: [.string(name)])
        self.call("publish", arguments: [.string(name), .string(type)], on: streamID)
    }

    package mutating func play(_ name: String, on streamID: UInt32, bufferMs: UInt32 = 3000) {
        self.roles[streamID] = .playing
        // -2000: live, and wait for a stream that does not exist yet (RTMP 1.0 §7.2.2.1: -2 in seconds).
        self.call("play", arguments: [.string(name), .number(-2000)], on: streamID)
        self.send(.userControl(.setBufferLength(streamID: streamID, milliseconds: bufferMs)))
    }

    package mutating func pause(_ paused: Bool, on streamID: UInt32, atMs: Double = 0) {
        self.notify("pause", arguments: [.boolean(paused), .number(atMs)], on: streamID)
    }

    package mutating func receiveAudio(_ on: Bool, on streamID: UInt32) {
        self.notify("receiveAudio", arguments: [.boolean(on)], on: streamID)
    }

    package mutating func receiveVideo(_ on: Bool, on streamID: UInt32) {
        self.notify("receiveVideo", arguments: [.boolean(on)], on: streamID)
    }

    /// Ends a publish by commands, so that the server knows it was intended.
    package mutating func unpublish(_ name: String, on streamID: UInt32) {
        self.call("FCUnpublish", arguments: [.string(name)])
        self.deleteStream(streamID)
    }

    package mutating func deleteStream(_ streamID: UInt32) {
        self.roles[streamID] = nil
        self.notify("deleteStream", arguments: [.number(Double(streamID))], on: 0)
    }

    /// Sends metadata, which the server keeps for late joiners.
    package mutating func setDataFrame(_ metadata: AMF0Value, on streamID: UInt32, timestamp: UInt32 = 0) {
        var payload = ByteBuffer()
        payload.writeAMF0(.string("@setDataFrame"))
        payload.writeAMF0(.string("onMetaData"))
        payload.writeAMF0(metadata)
        self.outputs.append(.send(Message(type: .dataAMF0, streamID: streamID, timestamp: timestamp, payload: payload)))
    }

    package mutating func ping(_ value: UInt32) { self.send(.userControl(.pingRequest(value))) }

    /// Sends any other command that expects an answer: `status` or `refused`.
    package mutating func call(_ name: String, object: AMF0Value = .null, arguments: [AMF0Value] = [], on streamID: UInt32 = 0) {
        self.lastTransaction += 1
        self.pending[self.lastTransaction] = name
        let command = Command(name, transaction: self.lastTransaction, object: object, arguments: arguments)
        self.outputs.append(.send(command.message(streamID: streamID)))
    }

    private mutating func send(_ control: ControlMessage) { self.outputs.append(.send(control.message)) }

    private mutating func notify(_ name: String, arguments: [AMF0Value], on streamID: UInt32) {
        self.outputs.append(.send(Command(name, arguments: arguments).message(streamID: streamID)))
    }

    // MARK: Facts

    package mutating func receive(_ message: Message) throws(RTMPError) {
        switch message.type {
        case .audio, .video, .dataAMF0, .dataAMF3:
            self.outputs.append(.media(message))
        case .commandAMF0, .commandAMF3:
            guard message.payload.readableBytes > 0 else { return }
            try self.receive(Command(message, limits: self.limits.amf), on: message.streamID)
        default:
            if let control = try ControlMessage(message) { try self.receive(control) }
        }
    }

    package mutating func bytesReceived(_ total: UInt64) {
        guard total &- self.acknowledgedBytes >= self.acknowledgementWindow else { return }
        self.acknowledgedBytes = total
        self.send(.acknowledgement(UInt32(truncatingIfNeeded: total)))
    }

    private mutating func receive(_ control: ControlMessage) throws(RTMPError) {
        switch control {
        case .setChunkSize(let size):
            guard size > 0, size <= 0x7FFF_FFFF else { throw .invalidChunkSize(size) }
        case .windowAcknowledgementSize(let size):
            if size > 0 { self.acknowledgementWindow = UInt64(size) }
        case .setPeerBandwidth(let size, _):
            self.send(.windowAcknowledgementSize(size))
        case .userControl(.pingRequest(let value)):
            self.send(.userControl(.pingResponse(value)))
        case .userControl(.pingResponse(let value)):
            self.outputs.append(.pong(value))
        case .userControl(.streamEOF(let id)):
            self.outputs.append(.streamEOF(id))
        case .acknowledgement, .abort, .userControl:
            break
        }
    }

    private mutating func receive(_ command: Command, on streamID: UInt32) throws(RTMPError) {
        switch command.name {
        case "_result":
            switch self.pending.removeValue(forKey: command.transaction) {
            case "connect":
                self.outputs.append(.connected(command.arguments.first ?? .null))
            case "createStream":
                guard let id = command.number(at: 0), id >= 0, id <= Double(UInt32.max) else { return }
                self.outputs.append(.streamCreated(streamID: UInt32(id)))
            default:
                break
            }
        case "_error":
            let name = self.pending.removeValue(forKey: command.transaction) ?? "a call"
            let status = command.arguments.first.flatMap(Status.init) ?? Status(StatusCode.callFailed, level: .error, "")
            self.outputs.append(.refused(command: name, status))
        case "onStatus":
            guard let status = command.arguments.first.flatMap(Status.init) else { return }
            switch status.code {
            case StatusCode.publishStart: self.outputs.append(.publishStarted(streamID: streamID))
            case StatusCode.playStart: self.outputs.append(.playStarted(streamID: streamID))
            case StatusCode.publishBadName, StatusCode.playStreamNotFound, StatusCode.playFailed:
                let role = self.roles.removeValue(forKey: streamID)
                self.outputs.append(.refused(command: role == .publishing ? "publish" : "play", status))
            default: self.outputs.append(.status(streamID: streamID, status))
            }
        default:
            break
        }
    }
}
