import Foundation
import NIOCore
import RTMP
import Relay
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Packaging
@testable import ServerConfiguration
@testable import Streaming

/// A server that has used up its memory. Mostly in processes of their own: the limit is the process's.
@Suite(.serialized) struct MemoryBudgetTests {
    private static let mebibyte = 1 << 20

    /// A keyframe and pictures that depend on it, of half a mebibyte each.
    private static func pictures(_ numbers: Range<Int>, begin: Bool = true) -> [Message] {
        numbers.map { number in
            Message(
                type: .video, streamID: 1, timestamp: UInt32(number * 20),
                payload: ByteBuffer(
                    bytes: SyntheticTag.video(number, isKeyframe: begin && number == numbers.lowerBound, bytes: mebibyte / 2)))
        }
    }

    private static func send(_ messages: [Message], by client: RawClient) async {
        var bytes = ByteBuffer()
        ChunkEncoder().encode(ControlMessage.setChunkSize(60_000).message, chunkStream: 2, into: &bytes)
        for message in messages { ChunkEncoder(chunkSize: 60_000).encode(message, chunkStream: 6, into: &bytes) }
        ChunkEncoder(chunkSize: 60_000).encode(ControlMessage.setChunkSize(128).message, chunkStream: 2, into: &bytes)
        await client.send(bytes: bytes)
    }

    /// Numbers of the pictures received. Does not check each byte: there are many.
    private static func numbers(_ client: RawClient) -> [Int] {
        client.media().compactMap { $0.message.payload.getInteger(at: $0.message.payload.readerIndex + 5, as: UInt64.self).map(Int.init) }
    }

    @Test func cachesGoThenNewcomersAreRefused() async throws {
        let settings = [
            "EARSHOT_LIMITS_MEMORY=24MiB", "EARSHOT_RELAY_GOP_CACHE_MAX_BYTES=64MiB", "EARSHOT_RELAY_GOP_CACHE_MAX_DURATION=10m",
            "EARSHOT_RELAY_MAX_BEHIND=60s", "EARSHOT_RELAY_SKIP_BEHIND=50s",
        ]
        try await ServerProcess.run(settings) { server in
            #expect(try await server.counter("memoryLimitBytes") == 24 * Self.mebibyte)
            let watched = try await RawClient.publishing(server.port, "watched")
            let viewer = try await RawClient.playing(server.port, "watched")
            await Self.send(Self.pictures(0..<20), by: watched)
            try await eventually("twenty pictures") { Self.numbers(viewer).count == 20 }
            #expect(try await server.counter("memoryUsedBytes") > 10 * Self.mebibyte)

            // An unwatched stream fills the rest and more: only its own pictures are dropped.
            let alone = try await RawClient.publishing(server.port, "alone")
            await Self.send(Self.pictures(0..<40), by: alone)
            try await eventually("its pictures to be counted") {
                try await HTTPAnswer.get("http://127.0.0.1:\(server.http)/api/v1/streams", token: TokenFile.read(server.data)).json()[
                    "data"]["list"]
                    .list.contains { $0["name"].string == "alone" && $0["bytesIn"].int ?? 0 >= 40 * Self.mebibyte / 2 }
            }
            try await eventually("room") { try await server.counter("memoryUsedBytes") < 14 * Self.mebibyte }
            let late = try await RawClient.playing(server.port, "alone")
            await Self.send(Self.pictures(40..<42), by: alone)
            try await eventually("the next keyframe") { Self.numbers(late).count == 2 }
            #expect(Self.numbers(late) == [40, 41])
            await late.close()
            await alone.close()

            // The watched stream alone exceeds the limit: newcomers are refused, and the viewer goes on.
            await Self.send(Self.pictures(20..<60, begin: false), by: watched)
            try await eventually("sixty pictures") { Self.numbers(viewer).count == 60 }
            #expect(try await server.counter("memoryUsedBytes") > 24 * Self.mebibyte)
            for isPublish in [true, false] {
                let refused = try await RawClient.connected(server.port)
                let id = try await refused.createStream()
                try await refused.run { isPublish ? $0.publish("third", on: id) : $0.play("watched", on: id) }
                try await refused.waitUntilClosed()
                let status = try refused.statuses.last.orThrow()
                #expect(status.code == (isPublish ? StatusCode.publishBadName : StatusCode.playFailed))
                #expect(status.description.hasPrefix("[memory_limit] ") && status.description.contains("(limits.memory, 24MiB)"))
            }
            for format in ["flv", "m3u8", "mp4"] {
                let answer = try await HTTPAnswer.get("http://127.0.0.1:\(server.http)/live/watched.\(format)")
                #expect(answer.status == 503 && answer.headers["retry-after"] == "5" && answer.text.contains("memory_limit"), "\(format)")
            }
            #expect(try await server.counter("memoryRefusals") == 5)
            try await eventually("the counter") { server.closed("memory_limit") == 2 }
            try await eventually("the line that says so") { server.process.errorsSoFar.contains("The memory limit is reached") }
            await Self.send(Self.pictures(60..<62, begin: false), by: watched)
            try await eventually("the running viewer's pictures") { Self.numbers(viewer).count == 62 }
            #expect(Self.numbers(viewer) == Array(0..<62))

            // The next keyframe ends the long group, and frees its memory.
            await Self.send(Self.pictures(62..<63), by: watched)
            try await eventually("room") { try await server.counter("memoryUsedBytes") < 12 * Self.mebibyte }
            let third = try await RawClient.publishing(server.port, "third")
            try await eventually("the line that says so") { server.process.errorsSoFar.contains("Memory is free again") }
            for client in [third, watched, viewer] { await client.close() }
        }
    }

    /// Hundreds of connections with half a message each before any publish: all of it counts, and those beyond the limit are refused.
    @Test(.timeLimit(.minutes(3))) func strangersHalfMessagesCount() async throws {
        try await ServerProcess.run(["EARSHOT_LIMITS_MEMORY=16MiB"]) { server in
            var bytes = RawBytes()
            bytes.header(chunkStream: 2, length: 4, type: .setChunkSize)
            bytes.bytes([0, 0, 0xFF, 0xFF])
            bytes.header(chunkStream: 9, length: 60_000, type: .commandAMF0)
            bytes.repeating(0x27, 30_000)
            let (half, port) = (bytes.buffer, server.port)
            var clients: [RawClient] = []
            // Many at a time: a connection that plays and publishes nothing is closed after a minute.
            for _ in 0..<28 {
                clients += try await withThrowingTaskGroup(of: RawClient.self) { tasks in
                    for _ in 0..<25 {
                        tasks.addTask {
                            let client = try await RawClient.connected(port)
                            await client.send(bytes: half)
                            return client
                        }
                    }
                    return try await tasks.reduce(into: []) { $0.append($1) }
                }
            }
            func refused() async throws -> Int {
                let counters = try await HTTPAnswer.get(
                    "http://127.0.0.1:\(server.http)/api/v1/counters", token: TokenFile.read(server.data))
                return try counters.json()["data"]["closed"]["memory_limit"].int.orThrow()
            }
            // 32 KiB each, since memory is allocated in powers of two.
            try await eventually("those beyond the limit to be refused") { try await refused() >= 120 }
            let used = try await server.counter("memoryUsedBytes")
            #expect(used > 14 * Self.mebibyte && used <= 17 * Self.mebibyte, "\(used)")
            #expect(try await refused() < 300)
            for client in clients { await client.close() }
            // What is left is this question's own connection.
            try await eventually("all to be given back") { try await server.counter("memoryUsedBytes") < 64 << 10 }
        }
    }

    /// Segments of a stream that was requested once, and is not watched any more.
    @Test func playlistsThatNobodyAsksForGo() async throws {
        try await TestServer.run({
            $0.limits.memoryBytes = 16 << 20
            $0.hls.always = true
        }) { server in
            let parts = server.server.parts
            let media = try await HLSLatencyTests.media(4)
            let publisher = try await TagClient.publish(to: server, "live/cam")
            try await publisher.send(media)
            try await eventually("the remuxer") { parts.remuxers.find("live/cam") != nil }
            let remuxer = try parts.remuxers.find("live/cam").orThrow()
            // The window's segments are charged as they are, beside all else.
            try await eventually("segments") {
                let memory = await remuxer.memory
                return memory.held > 10_000 && memory.charged == memory.held && parts.memory.ledger.used >= memory.held
            }
            // Memory is not short yet.
            await parts.memory.reclaim(nowMs: LoopSweeper.nowMs)
            let others = 32 << 20
            parts.memory.ledger.charge(others)
            defer { parts.memory.ledger.charge(-others) }
            try await eventually("the window to go") { parts.remuxers.find("live/cam") !== remuxer }
        }
    }

    /// 160 connections come and go; some time later their memory is returned to the system.
    @Test func freeMemoryIsGivenBack() async throws {
        try await ServerProcess.run { server in
            // All at once: those that ask for nothing are closed after some seconds, and a hundred must be open at one time.
            let clients = try await withThrowingTaskGroup(of: RawClient.self) { tasks in
                for _ in 0..<160 { tasks.addTask { try await RawClient.open(server.port) } }
                return try await tasks.reduce(into: []) { $0.append($1) }
            }
            try await eventually("all to be accepted") { try await server.counter("connectionsAccepted") >= 160 }
            for client in clients { await client.close() }
            try await eventually("a trim") { try await server.counter("memoryTrims") > 0 }
            #expect(try await server.counter("memoryTrims") == 1)
            #expect(try await server.counter("memoryTrimLongestMs") > 0)
            let metrics = try await HTTPAnswer.get("http://127.0.0.1:\(server.http)/metrics", token: TokenFile.read(server.data)).text
            for name in ["used_bytes", "limit_bytes", "refusals_total", "trims_total", "trim_longest_seconds"] {
                #expect(metrics.contains("\nearshot_memory_\(name) "), "\(name)")
            }
        }
    }
}
