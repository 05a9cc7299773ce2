import NIOCore
import RTMP
import Testing

/// connect, control messages and the commands that need no stream.
@Suite struct ServerConnectTests {
    private func connect(_ object: AMF0Value, transaction: Double = 1) throws -> (Server, ConnectRequest) {
        var server = Server()
        let outputs = try server.send(Command("connect", transaction: transaction, object: object))
        guard case .connect(let request)? = outputs.first, outputs.count == 1 else { throw RTMPError.unexpectedCommand("\(outputs)") }
        #expect(!server.session.isConnected)
        return (server, request)
    }

    private func properties(_ outputs: [ServerSessionOutput]) throws -> AMF0Value {
        guard case .send(let message)? = outputs.last else { throw RTMPError.unexpectedCommand("\(outputs)") }
        let command = try Command(message, limits: AMFLimits())
        #expect(message.type == .commandAMF0 && message.streamID == 0)
        #expect(command.name == "_result")
        return command.arguments.first ?? .null
    }

    // MARK: connect

    @Test func `connect is answered at once: window, bandwidth, chunk size, result`() throws {
        var (server, request) = try self.connect(["app": "live", "tcUrl": "rtmp://h/live", "flashVer": "X 1"], transaction: 1)
        #expect(request.app == "live" && request.tcUrl == "rtmp://h/live" && request.flashVersion == "X 1" && request.objectEncoding == 0)
        #expect(!request.isEnhanced && request.capsEx == 0 && request.fourCCs == [] && request.transaction == 1)
        let outputs = server.after { $0.acceptConnect() }
        #expect(server.session.isConnected)
        #expect(
            Array(outputs.dropLast()) == [
                .control(.windowAcknowledgementSize(2_500_000)), .control(.setPeerBandwidth(2_500_000, .dynamic)),
                .control(.setChunkSize(60_000)), .setChunkSize(60_000),
            ])
        let info = try self.properties(outputs)
        #expect(info["code"]?.string == "NetConnection.Connect.Success")
        #expect(info["objectEncoding"]?.number == 0)
        #expect(info["capsEx"] == nil && info["fourCcList"] == nil)
        // A second answer changes nothing.
        #expect(server.after { $0.acceptConnect() } == [])
        #expect(server.after { $0.rejectConnect(Status("x", "x")) } == [])
    }

    private static let apps: [(object: AMF0Value, app: String)] = [
        (["app": "live"], "live"), (["app": "live?token=a"], "live?token=a"), (["tcUrl": "rtmp://host:1935/live"], "live"),
        (["tcUrl": "rtmp://host/talk/room1?k=v"], "talk/room1?k=v"), (["tcUrl": "rtmp://host"], ""), (["tcUrl": "nonsense"], ""),
        (.object([]), ""), (.null, ""), (["app": 5], ""), (["app": "", "tcUrl": "rtmp://host/live"], ""),
        (.ecmaArray([AMF0Property(name: "app", value: "live")]), "live"),
        (.avmPlus(.string("x")), ""),
    ]

    @Test(arguments: apps) func `the app is found in every variant`(object: AMF0Value, app: String) throws {
        let (_, request) = try self.connect(object)
        #expect(request.app == app)
    }

    /// Some encoders write every string as a long string (AMF0 §2.14).
    @Test func `long strings are texts`() throws {
        var payload = ByteBuffer()
        func long(_ text: String) {
            payload.writeInteger(UInt8(0x0C))
            payload.writeInteger(UInt32(text.utf8.count))
            payload.writeString(text)
        }
        func name(_ text: String) {
            payload.writeInteger(UInt16(text.utf8.count))
            payload.writeString(text)
        }
        long("connect")
        payload.writeBytes([0, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0, 3])
        for (key, text) in [("app", "live?k=v"), ("tcUrl", "rtmp://h/live"), ("flashVer", "X 1")] {
            name(key)
            long(text)
        }
        name("fourCcList")
        payload.writeBytes([0x0A, 0, 0, 0, 1])
        long("hvc1")
        payload.writeBytes([0, 0, 9])
        var server = Server()
        let outputs = try server.receive(Message(type: .commandAMF0, payload: payload))
        guard case .connect(let request)? = outputs.first else { throw RTMPError.unexpectedCommand("\(outputs)") }
        #expect(request.app == "live?k=v" && request.tcUrl == "rtmp://h/live" && request.flashVersion == "X 1")
        #expect(request.fourCCs == ["hvc1"] && request.transaction == 1)
    }

    private static let encodings: [(value: AMF0Value, expected: Double)] = [
        (0, 0), (3, 3), (1, 0), (.number(.nan), 0), (.number(-.infinity), 0), ("3", 0),
    ]

    @Test(arguments: encodings) func `objectEncoding is 0 or 3, and the answer says which`(value: AMF0Value, expected: Double) throws {
        var (server, request) = try self.connect(["app": "live", "objectEncoding": value])
        #expect(request.objectEncoding == expected)
        let outputs = server.after { $0.acceptConnect() }
        #expect(try self.properties(outputs)["objectEncoding"]?.number == expected)
    }

    @Test func `with objectEncoding 3 commands come as type 17 and are answered so`() throws {
        var server = Server()
        _ = try server.send(Command("connect", transaction: 1, object: ["app": "live", "objectEncoding": 3]), amf3: true)
        _ = server.after { $0.acceptConnect() }
        #expect(try server.send(Command("createStream", transaction: 2), amf3: true) == [.result(2, 1, amf3: true)])
        let publish = try server.send(Command("publish", transaction: 3, arguments: ["cam", "live"]), on: 1, amf3: true)
        #expect(publish == [.publish(streamID: 1, try address("live", "cam"))])
        let started = server.after { $0.acceptPublish(1) }
        #expect(told(started) == ["onStatus NetStream.Publish.Start status 1"])
        guard case .send(let message)? = started.last else { return }
        #expect(message.type == .commandAMF3)
    }

    @Test func `Enhanced RTMP's fields are read and answered`() throws {
        var (server, request) = try self.connect([
            "app": "live", "capsEx": 15, "fourCcList": .strictArray(["hvc1", "av01", 7]),
            "videoFourCcInfoMap": ["vp09": 7], "audioFourCcInfoMap": .ecmaArray([AMF0Property(name: "Opus", value: 1)]),
        ])
        #expect(request.isEnhanced && request.capsEx == 15 && request.fourCCs == ["hvc1", "av01", "vp09", "Opus"])
        let info = try self.properties(server.after { $0.acceptConnect() })
        #expect(info["capsEx"]?.number == 14)
        #expect(info["fourCcList"] == .strictArray(["*"]))
        #expect(info["videoFourCcInfoMap"]?["*"]?.number == 4)
        #expect(info["audioFourCcInfoMap"]?["*"]?.number == 4)
    }

    @Test func `who can is asked to connect again`() throws {
        for (capsEx, url) in [(15, "rtmp://other/live"), (1, nil), (14, nil)] as [(Int, String?)] {
            var (server, _) = try self.connect(["app": "live", "capsEx": .number(Double(capsEx))])
            _ = server.after { $0.acceptConnect() }
            var isAsked = false
            let outputs = server.after { isAsked = $0.askToReconnect(to: url) }
            #expect(isAsked == (capsEx & 1 == 1))
            #expect(told(outputs) == (isAsked ? ["onStatus NetConnection.Connect.ReconnectRequest status 0"] : []))
            guard case .send(let message)? = outputs.last else { continue }
            #expect(try Command(message, limits: AMFLimits()).arguments.first?["tcUrl"]?.string == url)
        }
        var (server, _) = try self.connect(["app": "live"])
        #expect(server.after { _ = $0.askToReconnect(to: nil) } == [], "not before the answer")
    }

    private static let capabilities: [(value: AMF0Value, expected: Int)] = [
        (0, 0), (2, 2), (65535, 65535), (65536, 0), (-1, 0), (.number(.nan), 0), (.number(.infinity), 0), (.number(1e300), 0), ("2", 0),
        (.null, 0),
    ]

    @Test(arguments: capabilities) func `capsEx may be any double`(value: AMF0Value, expected: Int) throws {
        let (_, request) = try self.connect(["app": "live", "capsEx": value])
        #expect(request.capsEx == expected && request.isEnhanced)
    }

    @Test func `connect refused is an error for that call`() throws {
        var (server, _) = try self.connect(["app": "nope"], transaction: 7)
        let outputs = server.after { $0.rejectConnect(Status(StatusCode.connectInvalidApp, level: .error, "no such app")) }
        #expect(told(outputs) == ["_error NetConnection.Connect.InvalidApp error 0"])
        #expect(!server.session.isConnected)
    }

    @Test func `a second connect is refused, the first stays`() throws {
        var server = try Server.connected()
        let outputs = try server.send(Command("connect", transaction: 9, object: ["app": "other"]))
        #expect(told(outputs) == ["_error NetConnection.Connect.Rejected error 0"])
        #expect(server.session.isConnected)
        #expect(
            try server.send(Command("publish", transaction: 0, arguments: ["cam"]), on: 1) == [
                .publish(streamID: 1, try address("live", "cam"))
            ])
    }

    @Test(arguments: ["createStream", "publish", "play", "releaseStream", "FCPublish", "deleteStream", "_checkbw", "unheard-of"])
    func `a command before connect ends the connection`(name: String) throws {
        var server = Server()
        #expect(throws: RTMPError.unexpectedCommand(name)) { try server.send(Command(name, transaction: 1)) }
    }

    @Test func `an error names a command shortly and without control characters`() {
        var server = Server()
        let name = "x\n\u{1B}[31m" + String(repeating: "y", count: 500)
        let printed = "x??[31m" + String(repeating: "y", count: 57)
        #expect(throws: RTMPError.unexpectedCommand(printed)) { try server.send(Command(name)) }
    }

    // MARK: Commands without a stream

    @Test(arguments: ["releaseStream", "FCPublish", "FCUnpublish", "_checkbw", "checkBandwidth", "setPlaybackLength"])
    func `courtesies get a result when they ask for one`(name: String) throws {
        var server = try Server.connected()
        #expect(try server.send(Command(name, transaction: 4, arguments: ["cam"])) == [.result(4, .undefined)])
        #expect(try server.send(Command(name, arguments: ["cam"])) == [])
        #expect(try server.send(Command(name, transaction: 4, arguments: ["cam"]), amf3: true) == [.result(4, .undefined, amf3: true)])
    }

    @Test func `FCSubscribe and FCUnsubscribe are answered by name`() throws {
        var server = try Server.connected()
        #expect(
            told(try server.send(Command("FCSubscribe", transaction: 4, arguments: ["cam"]))) == [
                "onFCSubscribe NetStream.Play.Start status 0"
            ])
        #expect(told(try server.send(Command("FCUnsubscribe", arguments: ["cam"]))) == ["onFCUnsubscribe NetStream.Play.Stop status 0"])
    }

    @Test func `getStreamLength is 0 for live, play2 fails`() throws {
        var server = try Server.connected()
        #expect(try server.send(Command("getStreamLength", transaction: 3, arguments: ["cam"])) == [.result(3, 0)])
        #expect(told(try server.send(Command("play2", arguments: [.object([])]), on: 1)) == ["onStatus NetStream.Play.Failed error 1"])
    }

    @Test func `an unknown command fails only when it asks for an answer`() throws {
        var server = try Server.connected()
        #expect(told(try server.send(Command("frobnicate", transaction: 4))) == ["_error NetConnection.Call.Failed error 0"])
        #expect(try server.send(Command("frobnicate")) == [])
        // Told once.
        var isUnknown = server.session.consumeUnknownCommand()
        #expect(isUnknown)
        for name in ["_result", "_error", "onStatus", ""] { #expect(try server.send(Command(name, transaction: 4)) == []) }
        isUnknown = server.session.consumeUnknownCommand()
        #expect(!isUnknown)
    }

    @Test func `empty commands and unknown types are passed over`() throws {
        var server = Server()
        #expect(try server.receive(Message(20, stream: 0)) == [])
        #expect(try server.receive(Message(17, stream: 0)) == [])
        for type in [0, 7, 16, 19, 99, 255] as [UInt8] { #expect(try server.receive(Message(type, [1, 2, 3])) == []) }
        #expect(throws: RTMPError.shortControlMessage(type: 1, length: 0)) { try server.receive(Message(1)) }
    }

    @Test func `AMF that cannot be read ends the connection`() throws {
        var server = Server()
        let deep = hex("020007636f6e6e656374003ff0000000000000") + (0..<10_000).flatMap { _ in hex("03000161") }
        #expect(throws: RTMPError.self) { try server.receive(Message(20, deep)) }
        #expect(throws: RTMPError.malformedCommand(.unexpectedMarker(0x20, .amf0, offset: 0))) { try server.receive(Message(20, [0x20])) }
    }

    // MARK: Control

    @Test func `pings are answered, and pongs handed on`() throws {
        var server = Server()
        #expect(try server.receive(ControlMessage.userControl(.pingRequest(77)).message) == [.control(.userControl(.pingResponse(77)))])
        #expect(server.after { $0.ping(5) } == [.control(.userControl(.pingRequest(5)))])
        #expect(try server.receive(ControlMessage.userControl(.pingResponse(5)).message) == [.pong(5)])
    }

    @Test func `acknowledgements go out once per announced window`() throws {
        var server = Server()
        #expect(server.after { $0.bytesReceived(2_499_999) } == [])
        #expect(server.after { $0.bytesReceived(2_500_000) } == [.control(.acknowledgement(2_500_000))])
        #expect(try server.receive(ControlMessage.windowAcknowledgementSize(1000).message) == [])
        #expect(server.after { $0.bytesReceived(2_500_999) } == [])
        #expect(server.after { $0.bytesReceived(2_501_500) } == [.control(.acknowledgement(2_501_500))])
        #expect(server.after { $0.bytesReceived(2_502_499) } == [])
        // A window of 0 would ask for endless acknowledgements.
        #expect(try server.receive(ControlMessage.windowAcknowledgementSize(0).message) == [])
        #expect(server.after { $0.bytesReceived(2_502_500) } == [.control(.acknowledgement(2_502_500))])
        // The sequence number is modulo 2^32.
        #expect(server.after { $0.bytesReceived(1 << 32 + 9) } == [.control(.acknowledgement(9))])
        #expect(server.session.peerAcknowledged == nil)
        #expect(try server.receive(ControlMessage.acknowledgement(42).message) == [])
        #expect(server.session.peerAcknowledged == 42)
    }

    @Test func `a peer bandwidth unlike our window is answered with a window`() throws {
        var server = try Server.connected()
        func set(_ size: UInt32, _ limit: PeerBandwidthLimit) throws -> [ServerSessionOutput] {
            try server.receive(ControlMessage.setPeerBandwidth(size, limit).message)
        }
        #expect(try set(2_500_000, .hard) == [])
        #expect(try set(1_000_000, .dynamic) == [])
        #expect(try set(1_000_000, .hard) == [.control(.windowAcknowledgementSize(1_000_000))])
        #expect(try set(1_000_000, .soft) == [])
        // The initial window again, which differs from the last one announced.
        #expect(try set(2_500_000, .soft) == [.control(.windowAcknowledgementSize(2_500_000))])
    }

    @Test(arguments: [0, 0x8000_0000, 0xFFFF_FFFF] as [UInt32]) func `an illegal chunk size ends the connection`(size: UInt32) {
        var server = Server()
        #expect(throws: RTMPError.invalidChunkSize(size)) { try server.receive(control(1, size)) }
    }

    @Test func `other control messages change nothing`() throws {
        var server = try Server.connected()
        let events: [UserControlEvent] = [
            .streamBegin(1), .streamEOF(1), .streamDry(1), .setBufferLength(streamID: 1, milliseconds: 3000), .streamIsRecorded(1),
            .other(31),
        ]
        for event in events { #expect(try server.receive(ControlMessage.userControl(event).message) == []) }
        #expect(try server.receive(control(2, 4)) == [])
        #expect(try server.receive(control(1, 4096)) == [])
    }
}
