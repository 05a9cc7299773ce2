import NIOCore
import RTMP
import Testing

/// The server end of an in-memory connection: handshake, chunks and session.
private struct ServerEnd {
    var handshake = ServerHandshake()
    var decoder = ChunkDecoder()
    var encoder = ChunkEncoder()
    var session = ServerSession()
    var outgoing: [UInt8] = []
    var requests: [ServerSessionOutput] = []
    var media: [Message] = []

    mutating func receive(_ bytes: [UInt8], _ generator: inout Seeded) throws {
        var bytes = ByteBuffer(bytes: bytes)
        if !self.handshake.isDone, let answer = try self.handshake.receive(&bytes, random: { generator.bytes($0) }) {
            self.outgoing += Array(answer.readableBytesView)
        }
        guard self.handshake.isDone else { return }
        self.decoder.append(bytes)
        while let message = try self.decoder.nextMessage() {
            let isMedia = message.type == .audio || message.type == .video
            if isMedia && self.session.isPublishing(message.streamID) {
                self.media.append(message)
            } else {
                try self.session.receive(message)
            }
            self.runRequests()
        }
        self.session.bytesReceived(self.decoder.receivedBytes)
        self.runRequests()
    }

    mutating func send(_ message: Message) {
        var out = ByteBuffer()
        self.encoder.encode(message, chunkStream: message.type.rawValue < 7 ? 2 : 5, into: &out)
        self.outgoing += Array(out.readableBytesView)
    }

    mutating func runRequests() {
        while let output = self.session.nextOutput() {
            switch output {
            case .send(let message): self.send(message)
            case .setChunkSize(let size): self.encoder.chunkSize = size
            case .connect: self.session.acceptConnect()
            case .publish(let id, let address):
                if address.name == "taken" {
                    self.session.rejectPublish(id, Status(StatusCode.publishBadName, level: .error, "taken"))
                } else {
                    self.session.acceptPublish(id)
                }
            case .play(let id, let address):
                if address.name == "secret" {
                    self.session.rejectPlay(id, Status(StatusCode.playStreamNotFound, level: .error, "no"))
                } else {
                    self.session.acceptPlay(id)
                }
            default: self.requests.append(output)
            }
        }
    }
}

private struct ClientEnd {
    var handshake: ClientHandshake
    var decoder = ChunkDecoder()
    var encoder = ChunkEncoder()
    var session = ClientSession()
    var outgoing: [UInt8] = []
    var seen: [ClientSessionOutput] = []

    init(_ kind: ClientHandshake.Kind, _ generator: inout Seeded) {
        self.handshake = ClientHandshake(kind: kind)
        self.outgoing = Array(self.handshake.start { generator.bytes($0) }.readableBytesView)
    }

    mutating func receive(_ bytes: [UInt8], _ generator: inout Seeded) throws {
        var bytes = ByteBuffer(bytes: bytes)
        if !self.handshake.isDone {
            if let answer = try self.handshake.receive(&bytes, random: { generator.bytes($0) }) {
                self.outgoing += Array(answer.readableBytesView)
            }
            if self.handshake.isDone { self.session.connect(app: "live", tcUrl: "rtmp://host/live") }
        }
        guard self.handshake.isDone else { return }
        self.decoder.append(bytes)
        while let message = try self.decoder.nextMessage() { try self.session.receive(message) }
        self.session.bytesReceived(self.decoder.receivedBytes)
        self.runRequests()
    }

    mutating func send(_ message: Message) {
        var out = ByteBuffer()
        self.encoder.encode(message, chunkStream: message.type.rawValue < 7 ? 2 : 3 + UInt32(message.type.rawValue), into: &out)
        self.outgoing += Array(out.readableBytesView)
    }

    mutating func runRequests() {
        while let output = self.session.nextOutput() {
            switch output {
            case .send(let message): self.send(message)
            case .setChunkSize(let size): self.encoder.chunkSize = size
            default: self.seen.append(output)
            }
        }
    }

    mutating func call(_ change: (inout ClientSession) -> Void) {
        change(&self.session)
        self.runRequests()
    }
}

private struct Pair {
    var server = ServerEnd()
    var client: ClientEnd
    var generator: Seeded

    init(_ kind: ClientHandshake.Kind, seed: UInt64) {
        self.generator = Seeded(seed)
        self.client = ClientEnd(kind, &self.generator)
    }

    /// Moves pieces of random size in both directions until neither side has bytes to send.
    mutating func settle() throws {
        while !self.client.outgoing.isEmpty || !self.server.outgoing.isEmpty {
            let size = 1 + Int(self.generator.next() % [3, 50, 700, 5000][Int(self.generator.next() % 4)])
            if self.generator.next() & 1 == 0 {
                let piece = Array(self.client.outgoing.prefix(size))
                self.client.outgoing.removeFirst(piece.count)
                try self.server.receive(piece, &self.generator)
            } else {
                let piece = Array(self.server.outgoing.prefix(size))
                self.server.outgoing.removeFirst(piece.count)
                try self.client.receive(piece, &self.generator)
            }
        }
    }

    mutating func connect() throws {
        try self.settle()
        guard case .connected(let information)? = self.client.seen.first else { throw RTMPError.unexpectedCommand("\(self.client.seen)") }
        #expect(information["code"]?.string == StatusCode.connectSuccess)
        #expect(self.server.session.isConnected)
        self.client.seen = []
    }

    mutating func createStream(_ id: UInt32) throws {
        self.client.call { $0.createStream() }
        try self.settle()
        #expect(self.client.seen == [.streamCreated(streamID: id)])
        self.client.seen = []
    }
}

/// Connects our server and client sessions through handshake, encoder and decoder.
@Suite struct TwoSessionsTests {
    private static let kinds: [ClientHandshake.Kind] = [.simple, .digest(scheme: 0), .digest(scheme: 1)]

    @Test(arguments: kinds, 1...6) func `a publish reaches the server whole, and ends`(kind: ClientHandshake.Kind, seed: Int) throws {
        var pair = Pair(kind, seed: UInt64(seed))
        try pair.connect()
        try pair.createStream(1)
        pair.client.call { $0.publish("cam?k=v", on: 1) }
        try pair.settle()
        #expect(pair.client.seen == [.publishStarted(streamID: 1)])
        #expect(pair.server.session.isPublishing(1))

        pair.client.call { $0.setDataFrame(["width": 640], on: 1, timestamp: 3) }
        var sent: [Message] = []
        for index in 0..<30 {
            let time = [0, 0xFF_FFF0, 0xFFFF_FFF0][index % 3] &+ UInt32(index)
            sent.append(Message(index % 4 == 0 ? 9 : 8, time: time, pattern(index % 4 == 0 ? 61_000 : 13 * index, from: index)))
            pair.client.send(sent[index])
        }
        try pair.settle()
        #expect(pair.server.media == sent)
        var metadata = ByteBuffer()
        metadata.writeAMF0(.string("onMetaData"))
        metadata.writeAMF0(["width": 640])
        #expect(pair.server.requests == [.data(streamID: 1, timestamp: 3, payload: metadata)])

        pair.client.call { $0.unpublish("cam?k=v", on: 1) }
        try pair.settle()
        #expect(pair.server.requests.last == .unpublish(streamID: 1))
        #expect(!pair.server.session.isPublishing(1))
        #expect(pair.client.seen.last == .status(streamID: 1, Status(StatusCode.unpublishSuccess, "Unpublished.")))
    }

    @Test(arguments: kinds, 1...6) func `a play reaches the client whole, with every notice`(kind: ClientHandshake.Kind, seed: Int) throws {
        var pair = Pair(kind, seed: UInt64(100 + seed))
        try pair.connect()
        try pair.createStream(1)
        pair.client.call { $0.play("cam", on: 1) }
        try pair.settle()
        #expect(
            pair.client.seen == [.status(streamID: 1, Status(StatusCode.playReset, "Playing and resetting.")), .playStarted(streamID: 1)])
        pair.client.seen = []

        let sent = (0..<20).map { Message($0 % 3 == 0 ? 9 : 8, time: 0xFF_FFF8 + UInt32($0), pattern($0 * 7000, from: $0)) }
        for message in sent { pair.server.send(message) }
        try pair.settle()
        #expect(pair.client.seen == sent.map { .media($0) })
        pair.client.seen = []

        pair.client.call {
            $0.pause(true, on: 1)
            $0.receiveAudio(false, on: 1)
            $0.receiveVideo(true, on: 1)
            $0.ping(99)
        }
        try pair.settle()
        #expect(pair.server.requests == [.pause(streamID: 1, true), .receiveAudio(streamID: 1, false), .receiveVideo(streamID: 1, true)])
        #expect(pair.client.seen.last == .pong(99))
        pair.client.seen = []

        pair.server.session.ping(5)
        pair.server.session.publisherLeft(1)
        pair.server.runRequests()
        try pair.settle()
        #expect(pair.server.requests.last == .pong(5))
        #expect(pair.client.seen.contains(.streamEOF(1)))
        pair.client.call { $0.deleteStream(1) }
        try pair.settle()
        #expect(pair.server.requests.last == .stop(streamID: 1))
    }

    @Test(arguments: 1...6) func `publishes and plays share a connection, and refusals name the call`(seed: Int) throws {
        var pair = Pair(.simple, seed: UInt64(200 + seed))
        try pair.connect()
        for id in 1...4 { try pair.createStream(UInt32(id)) }
        pair.client.call {
            $0.publish("taken", on: 1)
            $0.publish("cam", on: 2)
            $0.play("secret", on: 3)
            $0.play("cam", on: 4)
        }
        try pair.settle()
        let seen = pair.client.seen
        #expect(seen.contains(.refused(command: "publish", Status(StatusCode.publishBadName, level: .error, "taken"))))
        #expect(seen.contains(.publishStarted(streamID: 2)) && seen.contains(.playStarted(streamID: 4)))
        #expect(seen.contains(.refused(command: "play", Status(StatusCode.playStreamNotFound, level: .error, "no"))))
        #expect([1, 2, 3, 4].map { pair.server.session.isPublishing($0) } == [false, true, false, false])

        pair.client.seen = []
        pair.client.call { $0.call("frobnicate") }
        try pair.settle()
        guard case .refused("frobnicate", let status)? = pair.client.seen.first else {
            Issue.record("\(pair.client.seen)")
            return
        }
        #expect(status.code == StatusCode.callFailed)
    }

    @Test func `each side acknowledges what the other sends`() throws {
        var pair = Pair(.simple, seed: 300)
        try pair.connect()
        try pair.createStream(1)
        pair.client.call { $0.publish("cam", on: 1) }
        for _ in 0..<50 { pair.client.send(Message(9, pattern(60_000))) }
        try pair.settle()
        #expect(pair.server.media.count == 50)
        pair.client.call { $0.play("cam", on: 2) }
        for _ in 0..<50 { pair.server.send(Message(9, stream: 2, pattern(60_000))) }
        try pair.settle()
        let acknowledged = try #require(pair.server.session.peerAcknowledged)
        #expect(acknowledged >= 2_500_000 && acknowledged < 3_100_000)
    }
}
