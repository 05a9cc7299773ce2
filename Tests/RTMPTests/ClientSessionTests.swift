import NIOCore
import RTMP
import Testing

/// Feeds the client session by hand with server messages, in and out of turn.
@Suite struct ClientSessionTests {
    private func outputs(_ session: inout ClientSession) -> [ClientSessionOutput] {
        var all: [ClientSessionOutput] = []
        while let output = session.nextOutput() { all.append(output) }
        return all
    }

    private func receive(_ message: Message, _ session: inout ClientSession) throws -> [ClientSessionOutput] {
        try session.receive(message)
        return self.outputs(&session)
    }

    private func connecting() -> ClientSession {
        var session = ClientSession()
        session.connect(app: "live", tcUrl: "rtmp://h/live", extra: [AMF0Property(name: "capsEx", value: 2)])
        session.createStream()
        return session
    }

    @Test func `connect announces the chunk size, then calls`() throws {
        var session = self.connecting()
        let outputs = self.outputs(&session)
        #expect(outputs[0] == .send(control(1, 60_000)) && outputs[1] == .setChunkSize(60_000))
        guard case .send(let message) = outputs[2] else { return }
        let command = try Command(message, limits: AMFLimits())
        #expect(command.name == "connect" && command.transaction == 1)
        #expect(command.object["app"]?.string == "live" && command.object["capsEx"]?.number == 2)
        #expect(outputs[3] == .send(Command("createStream", transaction: 2).message(streamID: 0)))
    }

    private static let answers: [(name: String, command: Command, on: UInt32, expected: [ClientSessionOutput])] = [
        ("connected", Command("_result", transaction: 1, arguments: ["info"]), 0, [.connected("info")]),
        ("connected, without information", Command("_result", transaction: 1), 0, [.connected(.null)]),
        ("stream", Command("_result", transaction: 2, arguments: [7]), 0, [.streamCreated(streamID: 7)]),
        ("stream NaN", Command("_result", transaction: 2, arguments: [.number(.nan)]), 0, []),
        ("stream -1", Command("_result", transaction: 2, arguments: [-1]), 0, []),
        ("stream 2^32", Command("_result", transaction: 2, arguments: [4_294_967_296]), 0, []),
        ("stream of no number", Command("_result", transaction: 2, arguments: ["7"]), 0, []),
        ("no call", Command("_result", transaction: 99, arguments: [7]), 0, []),
        ("NaN call", Command("_result", transaction: .nan, arguments: [7]), 0, []),
        (
            "refused", Command("_error", transaction: 1, arguments: [["code": "c", "level": "error", "description": "d"]]), 0,
            [.refused(command: "connect", Status("c", level: .error, "d"))]
        ),
        (
            "refused without a word", Command("_error", transaction: 2), 0,
            [.refused(command: "createStream", Status(StatusCode.callFailed, level: .error, ""))]
        ),
        ("publish", Command("onStatus", arguments: [["code": "NetStream.Publish.Start"]]), 3, [.publishStarted(streamID: 3)]),
        ("play", Command("onStatus", arguments: [["code": "NetStream.Play.Start"]]), 3, [.playStarted(streamID: 3)]),
        (
            "other status", Command("onStatus", arguments: [["code": "x", "level": "warning"]]), 3,
            [.status(streamID: 3, Status("x", level: .warning, ""))]
        ),
        ("status without a code", Command("onStatus", arguments: [["level": "error"]]), 3, []),
        ("status without anything", Command("onStatus"), 3, []),
        ("bandwidth test", Command("onBWDone", transaction: 5), 0, []),
    ]

    @Test(arguments: answers)
    func `an answer, in type 20 and 17`(name: String, command: Command, on: UInt32, expected: [ClientSessionOutput]) throws {
        for amf3 in [false, true] {
            var session = self.connecting()
            _ = self.outputs(&session)
            #expect(try self.receive(command.message(streamID: on, amf3: amf3), &session) == expected)
        }
    }

    @Test func `an answer counts once`() throws {
        var session = self.connecting()
        _ = self.outputs(&session)
        let answer = Command("_result", transaction: 2, arguments: [7]).message(streamID: 0)
        #expect(try self.receive(answer, &session) == [.streamCreated(streamID: 7)])
        #expect(try self.receive(answer, &session) == [])
    }

    @Test func `control messages`() throws {
        var session = ClientSession()
        #expect(
            try self.receive(ControlMessage.userControl(.pingRequest(4)).message, &session) == [
                .send(ControlMessage.userControl(.pingResponse(4)).message)
            ])
        #expect(try self.receive(ControlMessage.userControl(.streamEOF(4)).message, &session) == [.streamEOF(4)])
        #expect(try self.receive(ControlMessage.userControl(.other(32)).message, &session) == [])
        #expect(try self.receive(ControlMessage.setPeerBandwidth(77, .dynamic).message, &session) == [.send(control(5, 77))])
        #expect(try self.receive(control(5, 1000), &session) == [])
        session.bytesReceived(999)
        #expect(self.outputs(&session) == [])
        session.bytesReceived(1000)
        #expect(self.outputs(&session) == [.send(control(3, 1000))])
        #expect(throws: RTMPError.invalidChunkSize(0)) { try self.receive(control(1, 0), &session) }
        #expect(throws: RTMPError.shortControlMessage(type: 4, length: 1)) { try self.receive(Message(4, [0]), &session) }
        #expect(try self.receive(Message(20), &session) == [])
        #expect(try self.receive(Message(99, [1]), &session) == [])
        #expect(throws: RTMPError.self) { try self.receive(Message(20, [0x20]), &session) }
    }

    @Test func `media and data are handed on`() throws {
        var session = ClientSession()
        for type in [8, 9, 15, 18] as [UInt8] {
            #expect(try self.receive(Message(type, time: 5, [1, 2]), &session) == [.media(Message(type, time: 5, [1, 2]))])
        }
    }
}
