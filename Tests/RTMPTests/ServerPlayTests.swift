import NIOCore
import RTMP
import Testing

/// Playing, with every notice that a player receives.
@Suite struct ServerPlayTests {
    private func play(_ name: String, _ rest: [AMF0Value] = []) -> Command { Command("play", arguments: [.string(name)] + rest) }

    private static let variants: [[AMF0Value]] = [[], [-2000], [-2], [-1000], [0, -1, true], [.null, .null], ["x"], [.number(.nan)]]

    @Test(arguments: variants) func `play starts live whatever the start, duration and reset`(rest: [AMF0Value]) throws {
        var server = try Server.connected()
        #expect(try server.send(self.play("cam?k=v", rest), on: 1) == [.play(streamID: 1, try address("live", "cam?k=v"))])
        let outputs = server.after { $0.acceptPlay(1) }
        #expect(outputs.first == .control(.userControl(.streamBegin(1))))
        #expect(told(outputs) == ["onStatus NetStream.Play.Reset status 1", "onStatus NetStream.Play.Start status 1"])
        #expect(outputs.count == 3)
        #expect(server.after { $0.acceptPlay(1) } == [])
        #expect(!server.session.isPublishing(1))
    }

    /// RTMP 1.0 §7.2.2.1: Play.Reset is sent if the reset flag is set.
    @Test(arguments: [AMF0Value.boolean(false), 0]) func `play that asks for no reset is told of none`(reset: AMF0Value) throws {
        var server = try Server.connected()
        _ = try server.send(self.play("cam", [-2000, -1, reset]), on: 1)
        #expect(told(server.after { $0.acceptPlay(1) }) == ["onStatus NetStream.Play.Start status 1"])
        // The next play on this message stream omits the reset flag.
        _ = try server.send(self.play("cam"), on: 1)
        #expect(
            told(server.after { $0.acceptPlay(1) }) == ["onStatus NetStream.Play.Reset status 1", "onStatus NetStream.Play.Start status 1"])
    }

    @Test func `play refused is told, and can be tried again`() throws {
        var server = try Server.connected()
        _ = try server.send(self.play("cam"), on: 1)
        let status = Status(StatusCode.playStreamNotFound, level: .error, "no")
        #expect(told(server.after { $0.rejectPlay(1, status) }) == ["onStatus NetStream.Play.StreamNotFound error 1"])
        #expect(server.after { $0.rejectPlay(1, status) } == [])
        #expect(server.after { $0.publisherArrived(1) } == [])
        #expect(try server.send(self.play("cam2"), on: 1) == [.play(streamID: 1, try address("live", "cam2"))])
    }

    @Test(arguments: ["", "..", "a\0b", String(repeating: "n", count: 10_240)]) func `a bad name is not found`(name: String) throws {
        var server = try Server.connected()
        let outputs = try server.send(self.play(name), on: 1)
        #expect(told(outputs) == ["onStatus NetStream.Play.StreamNotFound error 1"])
        guard case .badName? = outputs.last else {
            Issue.record("\(outputs)")
            return
        }
        #expect(server.after { $0.acceptPlay(1) } == [])
    }

    @Test func `a second play replaces the first`() throws {
        var server = try Server.playing()
        #expect(
            try server.send(self.play("other"), on: 1) == [.stop(streamID: 1), .play(streamID: 1, try address("live", "other"))])
        // A third play also replaces one that is still undecided.
        #expect(try server.send(self.play("third"), on: 1) == [.stop(streamID: 1), .play(streamID: 1, try address("live", "third"))])
        #expect(server.after { $0.acceptPlay(1) }.count == 3)
    }

    @Test func `a message stream that publishes cannot play`() throws {
        var server = try Server.publishing()
        #expect(told(try server.send(self.play("cam"), on: 1)) == ["onStatus NetStream.Play.Failed error 1"])
        #expect(server.session.isPublishing(1))
    }

    @Test func `the publisher's coming and going is told in every client's words`() throws {
        var server = try Server.playing()
        let arrived = server.after { $0.publisherArrived(1) }
        #expect(arrived.first == .control(.userControl(.streamBegin(1))))
        #expect(told(arrived) == ["onStatus NetStream.Play.PublishNotify status 1"])
        #expect(server.after { $0.streamDried(1) } == [.control(.userControl(.streamDry(1)))])
        let left = server.after { $0.publisherLeft(1) }
        #expect(told(left) == ["onStatus NetStream.Play.UnpublishNotify status 1", "onStatus NetStream.Play.Stop status 1"])
        #expect(left[1] == .control(.userControl(.streamEOF(1))) && left.count == 3)
        // The play goes on: a publisher may return.
        #expect(server.after { $0.publisherArrived(1) }.count == 2)
        let ended = server.after { $0.playEnded(1, Status(StatusCode.playFailed, level: .error, "too slow")) }
        #expect(told(ended) == ["onStatus NetStream.Play.Failed error 1"])
        #expect(server.after { $0.publisherArrived(1) } == [] && server.after { $0.publisherLeft(1) } == [])
        #expect(server.after { $0.streamDried(1) } == [] && server.after { $0.playEnded(1, Status("x", "x")) } == [])
    }

    @Test func `notices go to players only`() throws {
        for var server in [try Server.connected(), try Server.publishing()] {
            #expect(server.after { $0.publisherArrived(1) } == [])
            #expect(server.after { $0.publisherLeft(1) } == [])
            #expect(server.after { $0.streamDried(1) } == [])
            #expect(server.after { $0.acceptPlay(1) } == [])
            #expect(server.after { $0.rejectPlay(1, Status("x", "x")) } == [])
        }
    }

    private static let stops: [(name: String, command: Command, on: UInt32)] = [
        ("closeStream", Command("closeStream"), 1), ("deleteStream", Command("deleteStream", arguments: [1]), 0),
        ("close", Command("close"), 0),
    ]

    @Test(arguments: stops) func `a player stops in words, once`(name: String, command: Command, on: UInt32) throws {
        var server = try Server.playing()
        let outputs = try server.send(command, on: on)
        #expect(outputs.first == .stop(streamID: 1))
        #expect(told(outputs) == ["onStatus NetStream.Play.Stop status 1"])
        #expect(try server.send(command, on: on) == [])
        #expect(server.after { $0.publisherLeft(1) } == [])
        var deciding = try Server.connected()
        _ = try deciding.send(self.play("cam"), on: 1)
        #expect(try deciding.send(command, on: on).first == .stop(streamID: 1))
        #expect(deciding.after { $0.acceptPlay(1) } == [])
    }

    @Test(arguments: ["pause", "pauseRaw"]) func `pause and going on are answered`(name: String) throws {
        var server = try Server.playing()
        for (argument, paused) in [([true], true), ([false], false), ([], true), ([7], true), ([false, 1234], false)]
            as [([AMF0Value], Bool)]
        {
            let outputs = try server.send(Command(name, arguments: argument), on: 1)
            #expect(outputs.first == .pause(streamID: 1, paused) && outputs.count == 2)
            #expect(told(outputs) == ["onStatus NetStream.\(paused ? "Pause" : "Unpause").Notify status 1"])
        }
    }

    @Test func `tracks are switched one by one`() throws {
        var server = try Server.playing()
        for on in [true, false] {
            #expect(try server.send(Command("receiveAudio", arguments: [.boolean(on)]), on: 1) == [.receiveAudio(streamID: 1, on)])
            #expect(try server.send(Command("receiveVideo", arguments: [.boolean(on)]), on: 1) == [.receiveVideo(streamID: 1, on)])
        }
        #expect(try server.send(Command("receiveAudio"), on: 1) == [.receiveAudio(streamID: 1, true)])
    }

    @Test func `seek is answered, and stays live`() throws {
        var server = try Server.playing()
        #expect(told(try server.send(Command("seek", arguments: [5000]), on: 1)) == ["onStatus NetStream.Seek.Notify status 1"])
    }

    @Test func `a publisher announces a pause, and its end`() throws {
        var server = try Server.publishing()
        for paused in [true, false] {
            let outputs = try server.send(Command("pause", arguments: [.boolean(paused)]), on: 1)
            #expect(outputs.first == .pause(streamID: 1, paused) && outputs.count == 2)
            #expect(told(outputs) == ["onStatus NetStream.\(paused ? "Pause" : "Unpause").Notify status 1"])
        }
    }

    @Test(arguments: ["pause", "receiveAudio", "receiveVideo"]) func `none of it without a play`(name: String) throws {
        for var server in name == "pause" ? [try Server.connected()] : [try Server.connected(), try Server.publishing()] {
            #expect(try server.send(Command(name, arguments: [true]), on: 1) == [])
            #expect(try server.send(Command(name, arguments: [true]), on: 99) == [])
        }
    }
}
