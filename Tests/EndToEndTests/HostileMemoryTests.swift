import NIOCore
import RTMP
import RTMPTestSupport
import ServerTestSupport
import TestSupport
import Testing

extension Hostile {
    /// The cost of bad clients, measured on a server in its own process.
    /// Limits are about three times the measured value, or half a mebibyte where that was only noise of resident memory.
    @Suite struct Memory {
        private static let mebibyte = 1 << 20

        /// Runs the deed twice: growth of the first run is warm-up, growth of the second is a leak.
        private static func expectGrowth(
            below limit: Int, on server: ServerProcess, sourceLocation: SourceLocation = #_sourceLocation, _ deed: () async throws -> Void
        ) async throws {
            try await deed()
            let before = try server.residentBytes()
            try await deed()
            let grown = try server.residentBytes() - before
            #expect(grown < limit, "grew by \(grown >> 10) KiB", sourceLocation: sourceLocation)
        }

        @Test func stalledViewers() async throws {
            try await ServerProcess.run(["EARSHOT_RELAY_MAX_BEHIND=20s"]) { server in
                try await Canary.during(server.port, loops: try server.loops()) {
                    let publisher = try await RawClient.publishing(server.port, "cam")
                    SlowViewers.publish(publisher)
                    let witness = try await RawClient.playing(server.port, "cam")
                    try await eventually("a whole group of pictures") { witness.media().count > 60 }
                    let before = try server.residentBytes()
                    var options = RawClient.Options()
                    options.receiveBuffer = 16 << 10
                    var stalled: [RawClient] = []
                    for _ in 0..<20 {
                        let client = try await RawClient.playing(server.port, "cam", options)
                        try await client.stopReading()
                        stalled.append(client)
                    }
                    let seen = witness.media().count
                    try await eventually("four seconds of pictures") { witness.media().count > seen + 200 }
                    let grown = try server.residentBytes() - before
                    #expect(grown < 4 * Self.mebibyte, "grew by \(grown >> 10) KiB")
                    for client in stalled + [witness, publisher] { await client.close() }
                }
            }
        }

        /// 200 connections announce 64 KiB on 63 chunk streams and send 128 bytes of each; ten then exceed `limits.bytesBeforePublish`.
        @Test func announcedMessages() async throws {
            // None of them connects, and a busy machine needs time for two hundred.
            try await ServerProcess.run(["EARSHOT_LIMITS_CONNECT=5m"]) { server in
                try await Canary.during(server.port, loops: try server.loops()) {
                    var clients: [RawClient] = []
                    let before = try server.residentBytes()
                    for _ in 0..<200 {
                        let client = try await RawClient.shaken(server.port)
                        var bytes = RawBytes()
                        for id in UInt32(3)..<66 {
                            bytes.header(chunkStream: id, length: 64 << 10, type: .video, streamID: 1)
                            bytes.repeating(0x27, 128)
                        }
                        await client.send(bytes: bytes.buffer)
                        // The pong shows that all of it has been read.
                        try await client.run { $0.ping(1) }
                        try await eventually("the pong") { client.outputs.contains(.pong(1)) }
                        clients.append(client)
                    }
                    let grown = try server.residentBytes() - before
                    #expect(grown < 8 * Self.mebibyte, "grew by \(grown >> 10) KiB")
                    for client in clients.prefix(10) {
                        var bytes = RawBytes()
                        for round in 0..<64 {
                            for id in UInt8(3)..<66 where round < 63 || id == 3 {
                                bytes.bytes([id < 64 ? 0xC0 | id : 0xC0])
                                if id >= 64 { bytes.bytes([id - 64]) }
                                bytes.repeating(0x27, 128)
                            }
                        }
                        await client.send(bytes: bytes.buffer)
                        try await client.waitUntilClosed()
                    }
                    try await eventually("ten lines") { server.closed("protocol_error") == 10 }
                    #expect(server.process.errorsSoFar.contains("(limits.bytesBeforePublish)"))
                    for client in clients.dropFirst(10) { await client.close() }
                }
            }
        }

        /// Eight mebibytes announced before any publish: refused by the header.
        @Test func announcedPictures() async throws {
            try await ServerProcess.run { server in
                try await Canary.during(server.port, loops: try server.loops()) {
                    try await Self.expectGrowth(below: Self.mebibyte / 2, on: server) {
                        for _ in 0..<5 {
                            let client = try await RawClient.connected(server.port)
                            var bytes = RawBytes()
                            bytes.header(chunkStream: 9, length: 8 << 20, type: .video, streamID: 1)
                            bytes.repeating(0x27, 128)
                            await client.send(bytes: bytes.buffer)
                            try await client.waitUntilClosed()
                        }
                    }
                    try await eventually("ten lines") { server.closed("protocol_error") == 10 }
                }
            }
        }

        /// Sixteen mebibytes announced on 60,000 chunk streams.
        @Test func announcedEverywhere() async throws {
            try await ServerProcess.run { server in
                try await Canary.during(server.port, loops: try server.loops()) {
                    try await Self.expectGrowth(below: Self.mebibyte / 2, on: server) {
                        let client = try await RawClient.shaken(server.port)
                        var bytes = RawBytes()
                        for id in UInt32(3)..<60_003 { bytes.header(chunkStream: id, length: 0xFF_FFFF, type: .video, streamID: 1) }
                        await client.send(bytes: bytes.buffer)
                        try await client.waitUntilClosed()
                    }
                    try await eventually("two lines") { server.closed("protocol_error") == 2 }
                }
            }
        }

        /// Every read ends one byte into the next message: the decoder's buffer is never empty.
        @Test func neverAtAMessageBoundary() async throws {
            try await ServerProcess.run { server in
                try await Canary.during(server.port, loops: try server.loops()) {
                    let client = try await RawClient.connected(server.port)
                    var round = ByteBuffer()
                    let encoder = ChunkEncoder(chunkSize: 60_000)
                    encoder.encode(ControlMessage.userControl(.pingRequest(1)).message, chunkStream: 2, into: &round)
                    // An unknown type is read and dropped.
                    let filler = Message(type: MessageType(rawValue: 99), payload: ByteBuffer(repeating: 0, count: 3_900))
                    encoder.encode(filler, chunkStream: 7, into: &round)
                    let bytes = Array(round.readableBytesView)
                    await client.send(bytes: [bytes[0]])
                    try await Self.expectGrowth(below: Self.mebibyte / 2, on: server) {
                        for _ in 0..<2_500 {
                            let pongs = client.bytesReceived
                            await client.send(bytes: bytes[1...] + [bytes[0]])
                            while client.bytesReceived == pongs { await Task.yield() }
                        }
                    }
                    await client.close()
                }
            }
        }

        /// Endless requests from a client that does not read the answers.
        @Test func answersNobodyReads() async throws {
            try await ServerProcess.run { server in
                try await Canary.during(server.port, loops: try server.loops()) {
                    var options = RawClient.Options()
                    options.receiveBuffer = 16 << 10
                    var questions = ByteBuffer()
                    for number in 0..<1_000 {
                        let command = Command("x", transaction: Double(number + 10)).message(streamID: 0)
                        ChunkEncoder(chunkSize: 60_000).encode(command, chunkStream: 3, into: &questions)
                    }
                    let bytes = questions
                    let before = try server.residentBytes()
                    let client = try await RawClient.connected(server.port, options)
                    try await client.stopReading()
                    for _ in 0..<150 where await client.send(bytes: bytes) {}
                    try await eventually("the closing line") { server.closed("too_slow") == 1 }
                    let grown = try server.residentBytes() - before
                    #expect(grown < 3 * Self.mebibyte / 2, "grew by \(grown >> 10) KiB")
                    try await client.startReading()
                    try await client.waitUntilClosed()
                }
            }
        }

        /// Everything that 500 connections used is released.
        @Test func descriptors() async throws {
            try await ServerProcess.run { server in
                try await Canary.during(server.port, loops: try server.loops()) {
                    let before = try server.openDescriptors()
                    try await Self.expectGrowth(below: Self.mebibyte / 2, on: server) {
                        for _ in 0..<5 {
                            var clients: [RawClient] = []
                            for _ in 0..<50 { clients.append(try await RawClient.shaken(server.port)) }
                            for client in clients { try await client.reset() }
                        }
                        try await eventually("the descriptors") { try server.openDescriptors() <= before }
                    }
                }
            }
        }
    }
}
