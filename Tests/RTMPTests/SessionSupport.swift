import NIOCore
import RTMP
import Testing

/// A server session and its outputs: a test sends an input and compares the whole answer.
struct Server {
    var session: ServerSession

    init(limits: Limits = Limits()) {
        self.session = ServerSession(limits: limits)
    }

    /// A server connected to `app`, with message stream 1 open.
    static func connected(_ app: String = "live", objectEncoding: Double? = nil, limits: Limits = Limits()) throws -> Server {
        var server = Server(limits: limits)
        var object: [AMF0Property] = [AMF0Property(name: "app", value: .string(app))]
        if let objectEncoding { object.append(AMF0Property(name: "objectEncoding", value: .number(objectEncoding))) }
        _ = try server.send(Command("connect", transaction: 1, object: .object(object)))
        server.session.acceptConnect()
        _ = try server.send(Command("createStream", transaction: 2))
        return server
    }

    static func publishing(_ name: String = "cam") throws -> Server {
        var server = try self.connected()
        _ = try server.send(Command("publish", transaction: 3, arguments: [.string(name), "live"]), on: 1)
        server.session.acceptPublish(1)
        _ = server.outputs()
        return server
    }

    static func playing(_ name: String = "cam") throws -> Server {
        var server = try self.connected()
        _ = try server.send(Command("play", transaction: 3, arguments: [.string(name), -2000]), on: 1)
        server.session.acceptPlay(1)
        _ = server.outputs()
        return server
    }

    mutating func outputs() -> [ServerSessionOutput] {
        var all: [ServerSessionOutput] = []
        while let output = self.session.nextOutput() { all.append(output) }
        return all
    }

    mutating func send(_ command: Command, on streamID: UInt32 = 0, amf3: Bool = false) throws -> [ServerSessionOutput] {
        try self.receive(command.message(streamID: streamID, amf3: amf3))
    }

    mutating func receive(_ message: Message) throws -> [ServerSessionOutput] {
        try self.session.receive(message)
        return self.outputs()
    }

    /// The outputs that `change` causes.
    mutating func after(_ change: (inout ServerSession) -> Void) -> [ServerSessionOutput] {
        change(&self.session)
        return self.outputs()
    }
}

extension ServerSessionOutput {
    static func control(_ control: ControlMessage) -> ServerSessionOutput { .send(control.message) }

    static func result(_ transaction: Double, _ value: AMF0Value, amf3: Bool = false) -> ServerSessionOutput {
        .send(Command("_result", transaction: transaction, arguments: [value]).message(streamID: 0, amf3: amf3))
    }

    /// An `onStatus`, `_error` or similar command as "name code level stream".
    var told: String? {
        guard case .send(let message) = self, message.type == .commandAMF0 || message.type == .commandAMF3,
            let command = try? Command(message, limits: AMFLimits()), let status = command.arguments.first.flatMap(Status.init)
        else { return nil }
        return "\(command.name) \(status.code) \(status.level.rawValue) \(message.streamID)"
    }
}

func told(_ outputs: [ServerSessionOutput]) -> [String] { outputs.compactMap(\.told) }

func address(_ app: String, _ name: String) throws -> StreamAddress { try StreamAddress(app: app, name: name) }
