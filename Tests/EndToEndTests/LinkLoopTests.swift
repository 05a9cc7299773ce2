import Foundation
import Rooms
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import Streaming

/// Servers that feed each other: a stream that would return to its origin is stopped, with the reason.
@Suite struct LinkLoopTests {
    private static func push(_ from: TestServer, _ name: String, to: TestServer, as other: String) async throws -> Int {
        try await LinkTests.create(from, "push", name, "\(to.rtmp)/live/\(other)")
    }

    private static func pull(_ here: TestServer, _ name: String, from: TestServer, _ other: String) async throws -> Int {
        try await LinkTests.create(here, "pull", name, "\(from.rtmp)/live/\(other)")
    }

    private static func live(_ server: TestServer, _ name: String) async throws {
        try await server.wait("streams/live/\(name)") { $0["state"].string == "active" }
    }

    /// The link reports a loop, and is not running.
    private static func loops(_ server: TestServer, _ link: Int) async throws {
        try await server.wait("links/\(link)") {
            $0["lastError"].string?.contains("loop") == true && $0["state"].string != "running"
        }
    }

    private static func running(_ server: TestServer, _ link: Int) async throws {
        try await server.wait("links/\(link)") { $0["state"].string == "running" }
    }

    private static func withServers(
        _ count: Int, _ servers: [TestServer] = [], _ body: @escaping @Sendable ([TestServer]) async throws -> Void
    ) async throws {
        guard servers.count < count else { return try await body(servers) }
        try await TestServer.run(LinkTests.open) { try await Self.withServers(count, servers + [$0], body) }
    }

    /// Each server pushes to the next, the last to the first.
    @Test(arguments: [2, 3]) func pushesInACircle(_ count: Int) async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await Self.withServers(count) { servers in
            var links: [Int] = []
            for (index, server) in servers.enumerated() {
                links.append(try await Self.push(server, "cam1", to: servers[(index + 1) % count], as: "cam1"))
            }
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(servers[0].rtmp)/live/cam1")) { _ in
                for index in 0..<(count - 1) { try await Self.running(servers[index], links[index]) }
                try await Self.live(servers[count - 1], "cam1")
                try await Self.loops(servers[count - 1], links[count - 1])
                #expect(await servers[0].lines.comes("Connection closed", "reason=loop"))
                // The other links continue.
                for index in 0..<(count - 1) { try await Self.running(servers[index], links[index]) }
            }
        }
    }

    /// Each pulls from the other; the one that would get its own stream back is refused.
    @Test func pullsFromEachOther() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await Self.withServers(2) { servers in
            let (a, b) = (servers[0], servers[1])
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(a.rtmp)/live/cam1")) { _ in
                try await Self.live(a, "cam1")
                let good = try await Self.pull(b, "copy", from: a, "cam1")
                try await Self.running(b, good)
                try await Self.live(b, "copy")
                let bad = try await Self.pull(a, "cam1", from: b, "copy")
                try await Self.loops(a, bad)
                try await Self.running(b, good)
            }
        }
    }

    /// Without a stream to pull, one of the two is still reported as a loop.
    @Test func pullsOfNothing() async throws {
        try await Self.withServers(2) { servers in
            let (a, b) = (servers[0], servers[1])
            let first = try await Self.pull(a, "x", from: b, "y")
            let second = try await Self.pull(b, "y", from: a, "x")
            try await eventually("one of them to be a loop") {
                for (server, link) in [(a, first), (b, second)] {
                    let words = try await server.api("links/\(link)")["lastError"].string
                    if words?.contains("loop") == true { return true }
                }
                return false
            }
        }
    }

    /// Pushed, pulled, and pushed again to its origin.
    @Test func acrossThree() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await Self.withServers(3) { servers in
            let (a, b, c) = (servers[0], servers[1], servers[2])
            // The pull exists before the stream that it pulls.
            let fetched = try await Self.pull(c, "third", from: b, "second")
            let back = try await Self.push(c, "third", to: a, as: "first")
            let there = try await Self.push(a, "first", to: b, as: "second")
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(a.rtmp)/live/first")) { _ in
                try await Self.running(a, there)
                try await Self.running(c, fetched)
                try await Self.live(c, "third")
                try await Self.loops(c, back)
                try await Self.running(c, fetched)
            }
        }
    }

    /// Under another name it is another stream, and no loop by itself.
    @Test func backUnderAnotherName() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 30)
        try await Self.withServers(2) { servers in
            let (a, b) = (servers[0], servers[1])
            let there = try await Self.push(a, "cam1", to: b, as: "copy")
            let back = try await Self.push(b, "copy", to: a, as: "other")
            try await ClientProcess.during(FFmpeg.pushForEver(source, to: "\(a.rtmp)/live/cam1")) { _ in
                try await Self.running(a, there)
                try await Self.running(b, back)
                try await Self.live(a, "other")
            }
        }
    }
}
