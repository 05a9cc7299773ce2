import Foundation
import Listening
import Rooms
import ServerTestSupport
import Streaming
import TestSupport
import Testing

@testable import EarshotServer
@testable import ServerConfiguration
@testable import Support

/// Players over HTTP that arrive before the publisher.
@Suite struct PublisherWaitTests {
    /// In a waiting room a player's one request gets pictures once the device is there.
    @Test(arguments: ["flv", "mp4", "m3u8"]) func waitsForTheDevice(_ format: String) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        try await TestServer.run({ $0.http.firstWaitMs = 30_000 }) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#).status == 201)
            let player = Task {
                try await ClientProcess.run([
                    "ffprobe", "-v", "error", "-show_entries", "stream=codec_type", "-of", "csv=p=0", "\(server.http)/live/cam1.\(format)",
                ])
            }
            try await server.wait("counters") { $0["playsWaited"].int == 1 }
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                let answer = try await player.value
                #expect(
                    Set(answer.text.split(separator: "\n").map { $0.trimmingCharacters(in: .punctuationCharacters) }) == ["video", "audio"])
            }
        }
    }

    /// Without a device the answer says when to retry. It is immediate where no push would make a room.
    @Test(arguments: ["flv", "mp4", "m3u8"]) func nobodyComes(_ format: String) async throws {
        for rule in [ServerConfig.Rooms.AutoCreate.loopback, .never] {
            try await TestServer.run({
                $0.http.firstWaitMs = 300
                $0.rooms.autoCreate = rule
            }) { server in
                #expect(try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#).status == 201)
                for (name, waited) in [("cam1", 1), ("nowhere", rule == .never ? 1 : 2)] {
                    let answer = try await HTTPAnswer.call("GET", "\(server.http)/live/\(name).\(format)")
                    #expect(answer.status == 404 && answer.headers["retry-after"] == "5", "\(answer.text)")
                    #expect(try await server.api("counters")["playsWaited"].int == waited, "\(rule)")
                }
                #expect(try await server.api("selfcheck")["ok"].bool != false)
            }
        }
    }

    /// Closing a room ends its waiting players; a closed room holds none.
    @Test func theRoomIsClosedMeanwhile() async throws {
        try await TestServer.run({ $0.http.firstWaitMs = 40_000 }) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#).status == 201)
            let player = Task { try await HTTPAnswer.call("GET", "\(server.http)/live/cam1.flv") }
            try await server.wait("counters") { $0["playsWaited"].int == 1 }
            #expect(try await server.call("POST", "rooms/cam1/close", "{}").status == 200)
            #expect(try await player.value.status == 410)
            #expect(try await HTTPAnswer.call("GET", "\(server.http)/live/cam1.flv").status == 410)
        }
    }

    /// Waiting players count as connections.
    @Test func waitingIsLimited() async throws {
        try await TestServer.run({
            $0.http.firstWaitMs = 30_000
            $0.limits.connectionsPerAddress = 1
        }) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#).status == 201)
            let first = try await SocketClient.open(server.addresses.http.port)
            try await first.send("GET /live/cam1.flv HTTP/1.1\r\nHost: 127.0.0.1:\(server.addresses.http.port)\r\n\r\n")
            try await server.wait("counters") { $0["playsWaited"].int == 1 }
            #expect(try await HTTPAnswer.call("GET", "\(server.http)/live/cam1.flv").status == 503)
            await first.close()
        }
    }

    /// A player that has gone makes room for another at once, however long it might have waited.
    @Test(arguments: ["flv", "mp4", "m3u8"]) func whoHasGoneWaitsNoLonger(_ format: String) async throws {
        try await TestServer.run({
            $0.http.firstWaitMs = 600_000
            $0.limits.connectionsPerAddress = 1
        }) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#).status == 201)
            let connections = server.server.parts.connections
            for round in 1...3 {
                let player = try await SocketClient.open(server.addresses.http.port)
                try await player.send("GET /live/cam1.\(format) HTTP/1.1\r\nHost: 127.0.0.1:\(server.addresses.http.port)\r\n\r\n")
                try await server.wait("counters") { $0["playsWaited"].int == round }
                #expect(connections.waitingPlayers == 1)
                await player.close()
                try await eventually("nobody to wait") { connections.waitingPlayers == 0 }
            }
            #expect(connections.admission.current.connections == 0)
        }
    }

    /// The same over HTTP/2, whose connection goes on.
    @Test(arguments: ["flv", "m3u8"]) func aStreamThatIsReset(_ format: String) async throws {
        try await TestServer.runSecure({
            $0.http.firstWaitMs = 600_000
            $0.limits.connectionsPerAddress = 1
        }) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#).status == 201)
            let client = try await HTTP2Client.open(server.secure)
            for (round, stream) in [1, 3].enumerated() {
                try await client.send(HTTP2Client.request("/live/cam1.\(format)", on: stream))
                try await server.wait("counters") { $0["playsWaited"].int == round + 1 }
                try await client.send([HTTP2WireFrame(.reset, stream: stream, HTTP2WireFrame.word(8))])
                try await eventually("nobody to wait") { server.server.parts.connections.waitingPlayers == 0 }
            }
            await client.close()
        }
    }

    /// A WebSocket is open while it waits: browsers open no second one to the same host while one is connecting.
    @Test(arguments: ["flv", "mp4"]) func webSocketsAreOpenMeanwhile(_ format: String) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        try await TestServer.run({ $0.http.firstWaitMs = 30_000 }) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#).status == 201)
            let player = try await WebSocketClient.open(server.addresses.http.port, "/live/cam1.\(format)")
            try await server.wait("counters") { $0["playsWaited"].int == 1 }
            try await player.send(9, "here".utf8)
            try await eventually("a pong") { try player.all.contains { $0.opcode == 10 && $0.payload == Array("here".utf8) } }
            #expect(try await server.api("counters")["playsStarted"].int == 0)
            // A frame may begin before the stream does, and end after.
            let ping = ClientFrame.bytes(9, Array("split".utf8))
            try await player.socket.send(Array(ping.prefix(3)))
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(server.rtmp)/live/cam1")) { _ in
                try await server.wait("counters") { $0["playsStarted"].int == 1 }
                try await player.socket.send(Array(ping.dropFirst(3)))
                try await eventually("a pong and pictures") {
                    let frames = try player.all
                    return frames.contains { $0.opcode == 10 && $0.payload == Array("split".utf8) }
                        && frames.filter { $0.opcode == 2 }.reduce(0) { $0 + $1.payload.count } > 10_000
                }
            }
            await player.close()
            try await server.wait("selfcheck") { $0["ok"].bool != false }
        }
    }

    /// Without a device an open WebSocket is closed with "try again later"; without a waiting room it is refused at once.
    @Test func nobodyComesToAWebSocket() async throws {
        try await TestServer.run({ $0.http.firstWaitMs = 300 }) { server in
            #expect(try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#).status == 201)
            let player = try await WebSocketClient.open(server.addresses.http.port, "/live/cam1.flv")
            try await eventually("the end") { try player.closeCode == 1013 }
            #expect(String(decoding: try player.all.last?.payload.dropFirst(2) ?? [], as: UTF8.self) == "not_found")
            try await server.wait("counters") { $0["playsWaited"].int == 1 }
            #expect(try await server.api("selfcheck")["ok"].bool != false)
        }
    }
}
