import NIOCore
import RTMP
import Testing

/// Message streams and publishing.
@Suite struct ServerPublishTests {
    private func publish(_ name: String, _ type: AMF0Value? = "live", transaction: Double = 3) -> Command {
        Command("publish", transaction: transaction, arguments: [.string(name)] + (type.map { [$0] } ?? []))
    }

    private let audio = Message(8, [0xAF, 1])
    private let video = Message(9, [0x17, 1])

    // MARK: Message streams

    @Test func `each createStream gives another id`() throws {
        var server = try Server.connected()
        for id in 2...6 { #expect(try server.send(Command("createStream", transaction: 9)) == [.result(9, .number(Double(id)))]) }
    }

    @Test func `an id that a client chose itself is not given to another`() throws {
        var server = try Server.connected()
        for id in [2, 4, UInt32.max, UInt32.max - 1] {
            #expect(try server.send(self.publish("cam\(id)"), on: id) == [.publish(streamID: id, try address("live", "cam\(id)"))])
        }
        for id in [3, 5, 6, 7] as [Double] {
            #expect(try server.send(Command("createStream", transaction: 9)) == [.result(9, .number(id))])
        }
    }

    @Test func `message streams open at once are bounded, deleted ones do not count`() throws {
        var server = try Server.connected()
        for _ in 0..<200 {
            guard case .send(let answer)? = try server.send(Command("createStream", transaction: 9)).first else { return }
            let id = try Command(answer, limits: AMFLimits()).arguments[0]
            #expect(try server.send(Command("deleteStream", arguments: [id])) == [])
        }
        for _ in 0..<63 { _ = try server.send(Command("createStream", transaction: 9)) }
        #expect(throws: RTMPError.tooManyMessageStreams(limit: 64)) { try server.send(Command("createStream", transaction: 9)) }
        #expect(throws: RTMPError.tooManyMessageStreams(limit: 64)) { try server.send(self.publish("cam"), on: 4711) }
    }

    private static let wrongIDs: [AMF0Value] = [7, 0, -1, .number(.nan), .number(.infinity), .number(1e300), "1", .null, 4_294_967_296]

    @Test(arguments: wrongIDs) func `deleting what is not there changes nothing`(id: AMF0Value) throws {
        var server = try Server.publishing()
        #expect(try server.send(Command("deleteStream", arguments: [id])) == [])
        #expect(try server.send(Command("deleteStream")) == [])
        #expect(try server.send(Command("closeStream"), on: 99) == [])
        #expect(server.session.isPublishing(1))
    }

    // MARK: publish

    @Test(arguments: ["live", "record", "append", "appendWithGap", nil, .null, 7] as [AMF0Value?])
    func `every publish type is read as live`(type: AMF0Value?) throws {
        var server = try Server.connected()
        #expect(try server.send(self.publish("cam?k=v", type), on: 1) == [.publish(streamID: 1, try address("live", "cam?k=v"))])
        #expect(!server.session.isPublishing(1))
        let started = server.after { $0.acceptPublish(1) }
        #expect(started.first == .control(.userControl(.streamBegin(1))))
        #expect(told(started) == ["onStatus NetStream.Publish.Start status 1"])
        #expect(started.count == 2 && server.session.isPublishing(1))
        #expect(server.after { $0.acceptPublish(1) } == [])
        #expect(server.after { $0.rejectPublish(1, Status("x", "x")) } == [])
    }

    @Test func `publish refused: told, and its media passed over`() throws {
        var server = try Server.connected()
        _ = try server.send(self.publish("cam"), on: 1)
        #expect(try server.receive(self.video) == [])
        let outputs = server.after { $0.rejectPublish(1, Status(StatusCode.publishBadName, level: .error, "taken")) }
        #expect(told(outputs) == ["onStatus NetStream.Publish.BadName error 1"])
        #expect(!server.session.isPublishing(1))
        #expect(server.after { $0.acceptPublish(1) } == [])
        #expect(try server.receive(self.audio) == [])
        // The same message stream may try another name.
        #expect(try server.send(self.publish("cam2"), on: 1) == [.publish(streamID: 1, try address("live", "cam2"))])
    }

    @Test func `publish twice on one message stream is refused, the first goes on`() throws {
        var server = try Server.publishing()
        #expect(told(try server.send(self.publish("cam"), on: 1)) == ["onStatus NetStream.Publish.BadName error 1"])
        #expect(told(try server.send(self.publish("other"), on: 1)) == ["onStatus NetStream.Publish.BadName error 1"])
        #expect(server.session.isPublishing(1))
        var player = try Server.playing()
        #expect(told(try player.send(self.publish("cam"), on: 1)) == ["onStatus NetStream.Publish.BadName error 1"])
        #expect(player.after { $0.publisherLeft(1) }.count == 3)
    }

    private static let badNames: [(name: String, error: StreamAddressError)] = [
        ("", .emptyName), ("a\0b", .controlCharacter(0)), ("..", .dotComponent), ("../../etc", .dotComponent), ("?k=v", .emptyName),
        (String(repeating: "n", count: 10_240), .tooLong(bytes: 10_244, limit: 256)),
        ("cam?" + String(repeating: "q", count: 10_240), .queryTooLong(bytes: 10_240, limit: 4096)),
    ]

    @Test(arguments: badNames) func `a bad name is told, and media behind it passed over`(name: String, error: StreamAddressError) throws {
        var server = try Server.connected()
        let outputs = try server.send(self.publish(name), on: 1)
        #expect(told(outputs) == ["onStatus NetStream.Publish.BadName error 1"])
        #expect(outputs.last == .badName(error))
        #expect(!server.session.isPublishing(1))
        #expect(server.after { $0.acceptPublish(1) } == [])
        #expect(try server.receive(self.video) == [])
    }

    @Test func `publish without a name, or with a number for one, is a bad name`() throws {
        var server = try Server.connected()
        #expect(try server.send(Command("publish", transaction: 3), on: 1).last == .badName(.emptyName))
        #expect(try server.send(Command("publish", transaction: 3, arguments: [5]), on: 1).last == .badName(.emptyName))
        var empty = try Server.connected("")
        #expect(try empty.send(self.publish("cam"), on: 1).last == .badName(.emptyApp))
    }

    @Test func `publish on a message stream that was never created opens it`() throws {
        for id in [0, 1, 5, UInt32.max] {
            var server = Server()
            _ = try server.send(Command("connect", transaction: 1, object: ["app": "live"]))
            server.session.acceptConnect()
            _ = server.outputs()
            #expect(try server.send(self.publish("cam"), on: id) == [.publish(streamID: id, try address("live", "cam"))])
            _ = server.after { $0.acceptPublish(id) }
            #expect(server.session.isPublishing(id))
        }
    }

    // MARK: Media

    @Test(arguments: [8, 9] as [UInt8]) func `media before publish ends the connection`(type: UInt8) throws {
        var fresh = Server()
        #expect(throws: RTMPError.mediaWithoutPublish(streamID: 1)) { try fresh.receive(Message(type, [1])) }
        var created = try Server.connected()
        #expect(throws: RTMPError.mediaWithoutPublish(streamID: 1)) { try created.receive(Message(type, [1])) }
        var other = try Server.publishing()
        #expect(throws: RTMPError.mediaWithoutPublish(streamID: 2)) { try other.receive(Message(type, stream: 2, [1])) }
        var player = try Server.playing()
        #expect(throws: RTMPError.mediaWithoutPublish(streamID: 1)) { try player.receive(Message(type, [1])) }
    }

    private static let ends: [(name: String, command: Command, on: UInt32, keepsStream: Bool)] = [
        ("FCUnpublish", Command("FCUnpublish", arguments: ["cam"]), 0, true), ("FCUnpublish, unnamed", Command("FCUnpublish"), 0, true),
        ("closeStream", Command("closeStream"), 1, true), ("deleteStream", Command("deleteStream", arguments: [1]), 0, false),
        ("close", Command("close"), 0, false),
    ]

    @Test(arguments: ends) func `a publish ends in words, once`(name: String, command: Command, on: UInt32, keepsStream: Bool) throws {
        var server = try Server.publishing()
        let outputs = try server.send(command, on: on)
        #expect(outputs.first == .unpublish(streamID: 1))
        #expect(told(outputs) == ["onStatus NetStream.Unpublish.Success status 1"])
        #expect(!server.session.isPublishing(1))
        #expect(try server.send(command, on: on) == [])
        #expect(try server.send(Command("deleteStream", arguments: [1])) == [])
        #expect(try Server.connected().session.isPublishing(1) == false)
        if keepsStream {
            var late = try Server.publishing()
            _ = try late.send(command, on: on)
            #expect(try late.receive(self.audio) == [] && late.receive(self.video) == [])
            #expect(try late.receive(Message(18, hex("020001610500"))) == [])
            // The same message stream may publish again.
            #expect(try late.send(self.publish("cam"), on: 1) == [.publish(streamID: 1, try address("live", "cam"))])
        }
    }

    @Test func `FCUnpublish of another name changes nothing`() throws {
        var server = try Server.publishing("cam?k=v")
        #expect(try server.send(Command("FCUnpublish", arguments: ["cam"])) == [])
        #expect(server.session.isPublishing(1))
        #expect(try server.send(Command("FCUnpublish", arguments: ["cam?k=v"])).first == .unpublish(streamID: 1))
    }

    @Test func `a publish that the relay ends is told once`() throws {
        var server = try Server.publishing()
        let status = Status(StatusCode.publishBadName, level: .error, "taken over")
        #expect(told(server.after { $0.publishEnded(1, status) }) == ["onStatus NetStream.Publish.BadName error 1"])
        #expect(!server.session.isPublishing(1))
        #expect(server.after { $0.publishEnded(1, status) } == [])
        #expect(try server.receive(self.video) == [])
        #expect(try server.send(Command("FCUnpublish", arguments: ["cam"])) == [])
    }

    // MARK: Data

    private let metadata = hex("02000a6f6e4d65746144617461 080000000100057769647468004074000000000000000009")
    private let setDataFrame = hex("02000d40736574446174614672616d65")
    private let clearDataFrame = hex("02000f40636c6561724461746146 72616d65")

    @Test func `metadata is handed on whole, setDataFrame taken off`() throws {
        var server = try Server.publishing()
        let expected: [ServerSessionOutput] = [.data(streamID: 1, timestamp: 7, payload: ByteBuffer(bytes: self.metadata))]
        #expect(try server.receive(Message(18, time: 7, self.setDataFrame + self.metadata)) == expected)
        #expect(try server.receive(Message(18, time: 7, self.metadata)) == expected)
        #expect(try server.receive(Message(15, time: 7, [0] + self.setDataFrame + self.metadata)) == expected)
        #expect(try server.receive(Message(15, time: 7, [0] + self.metadata)) == expected)
        #expect(try server.receive(Message(18, self.clearDataFrame + hex("02000a6f6e4d65746144617461"))) == [.clearData(streamID: 1)])
        #expect(try server.receive(Message(18)) == [])
    }

    @Test func `data needs a publish as media does`() throws {
        var server = try Server.connected()
        #expect(throws: RTMPError.mediaWithoutPublish(streamID: 1)) { try server.receive(Message(18, self.metadata)) }
        var empty = try Server.connected()
        #expect(try empty.receive(Message(18)) == [])
        var deciding = try Server.connected()
        _ = try deciding.send(self.publish("cam"), on: 1)
        #expect(try deciding.receive(Message(18, self.metadata)) == [])
    }

    // MARK: Several

    @Test func `several publishes and plays share a connection`() throws {
        var server = try Server.connected()
        for id in 2...4 { #expect(try server.send(Command("createStream", transaction: 9)) == [.result(9, .number(Double(id)))]) }
        for id in [1, 3] as [UInt32] {
            #expect(try server.send(self.publish("cam\(id)"), on: id) == [.publish(streamID: id, try address("live", "cam\(id)"))])
        }
        for id in [2, 4] as [UInt32] {
            let play = Command("play", transaction: 0, arguments: [.string("mix\(id)")])
            #expect(try server.send(play, on: id) == [.play(streamID: id, try address("live", "mix\(id)"))])
        }
        _ = server.after { for id in [3, 1] as [UInt32] { $0.acceptPublish(id) } }
        _ = server.after { for id in [4, 2] as [UInt32] { $0.acceptPlay(id) } }
        #expect([1, 2, 3, 4].map { server.session.isPublishing($0) } == [true, false, true, false])
        #expect(told(server.after { $0.publisherLeft(4) }).allSatisfy { $0.hasSuffix(" 4") })
        #expect(try server.send(Command("deleteStream", arguments: [2])).first == .stop(streamID: 2))
        #expect(try server.send(Command("FCUnpublish", arguments: ["cam3"])).first == .unpublish(streamID: 3))
        #expect([1, 2, 3, 4].map { server.session.isPublishing($0) } == [true, false, false, false])
        let rest = try server.send(Command("close"))
        #expect(rest.contains(.unpublish(streamID: 1)) && rest.contains(.stop(streamID: 4)) && rest.count == 4)
    }
}
