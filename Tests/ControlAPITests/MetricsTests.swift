import APITestSupport
import EarshotServer
import Foundation
import Media
import NIOCore
import Relay
import ServerConfiguration
import ServerTestSupport
import Streaming
import Support
import TestSupport
import Testing

/// The metrics that Prometheus scrapes.
@Suite struct MetricsTests {
    /// Ten thousand names, pushed and asked for, add no line but those of the allow-list, which has a cap.
    @Test(.timeLimit(.minutes(5))) func namesAddNoSeries() async throws {
        let shown = try StreamPattern("live/shown-*")
        try await UnboundServer.run {
            $0.metrics.streams = [shown]
        } _: { server in
            for path in ["streams/live/one", "rooms/one"] { _ = try await server.call("GET", path) }
            try await eventually("first figures") {
                let requests = try await Self.scrape(server).keys.filter { $0.hasPrefix("earshot_http_requests_total") }
                return requests.count == 3
            }
            let before = Set(try await Self.scrape(server).keys)
            for index in 0..<100 { _ = try await server.call("GET", "streams/live/name\(index)") }
            try await Self.publish("live/name", 10_000, server)
            try await Self.publish("live/shown-", 300, server)
            try await eventually("the shown ones") {
                try await Self.scrape(server)["earshot_streams_live"] == 10_300
            }
            let after = try await Self.scrape(server)
            let new = Set(after.keys).subtracting(before)
            #expect(new.allSatisfy { $0.hasPrefix("earshot_stream_") && $0.contains("\"live/shown-") }, "\(new.prefix(5))")
            #expect(new.count { $0.hasPrefix("earshot_stream_live{") } == 200)
            #expect(after["earshot_stream_series_left_out"] == 100)
        }
    }

    private final class Nobody: PublisherDelegate {
        func publishEnded(_ token: StreamState.Token, reason: PublishEndReason) {}
    }

    /// Publishes streams of these names without connections.
    private static func publish(_ prefix: String, _ count: Int, _ server: UnboundServer) async throws {
        let streams = server.server.parts.streams
        let loops = streams.allLoops
        for (number, loop) in loops.enumerated() {
            try await loop.relay.eventLoop.submit {
                for index in stride(from: number, to: count, by: loops.count) {
                    let stream = streams.registry.acquire("\(prefix)\(index)", on: loop.relay)
                    _ = try loop.relay.claim(stream, identity: PublisherIdentity("test"), delegate: Nobody())
                }
            }.get()
        }
    }

    /// Scrapes without a pause share pages, and those are soon made.
    @Test(.timeLimit(.minutes(3))) func scrapesAreShared() async throws {
        try await UnboundServer.run { server in
            let began = ContinuousClock.now
            var pages: Set<String> = []
            for _ in 0..<100 {
                pages.insert(try await server.request("GET", "/metrics", token: server.token).text)
            }
            let quarters = Int((ContinuousClock.now - began) / .milliseconds(250)) + 2
            #expect(pages.count <= quarters, "\(pages.count) pages in \(quarters) quarters of a second")
        }
    }

    private static func scrape(_ server: UnboundServer) async throws -> [String: Double] {
        let answer = try await server.request("GET", "/metrics", token: server.token)
        #expect(answer.contentType?.contains("text/plain; version=0.0.4") == true)
        return try MetricsPage.values(of: answer.text[...])
    }
}
