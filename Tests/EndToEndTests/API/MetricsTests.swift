import APITestSupport
import EarshotServer
import Foundation
import Media
import NIOCore
import RTMPTestSupport
import Relay
import ServerConfiguration
import ServerTestSupport
import Streaming
import Support
import TestSupport
import Testing

/// The metrics that Prometheus scrapes, of real clients.
@Suite struct MetricsTests {
    @Test(.timeLimit(.minutes(3))) func everyLineIsOfItsFormat() async throws {
        try await TalkRoom.run { room in
            let ear = try await room.listener("mix")
            let refused = try await room.client()
            try await refused.createStreamAndTryToPublish("r1/mix")
            try await refused.waitUntilClosed()
            let url = "\(room.server.http)/metrics"
            let without = try await ClientProcess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url])
            #expect(without.text == "401")
            try await eventually("a mix with its listener") {
                let scraped = try await Self.scrape(url, room.server.token)
                return scraped["earshot_talk_mixes"] == 1 && scraped["earshot_closed_total{reason=\"bad_name\"}"] == 1
                    && scraped["earshot_viewers"] == 1 && scraped["earshot_connections_by_protocol{protocol=\"rtmp\"}"] == 2
                    && scraped["earshot_streams_live"] == 2
            }
            let scraped = try await Self.scrape(url, room.server.token)
            #expect(scraped["earshot_viewers"] == 1 && scraped["earshot_publishers"] == 1 && scraped["earshot_connections"] == 2)
            #expect(scraped["earshot_plays_started_total"] == 1, "\(scraped)")
            #expect(scraped["earshot_talk_encodes_total"].map { $0 > 0 } == true)
            #expect(scraped["earshot_connections_by_protocol{protocol=\"rtmp\"}"] == 2, "\(scraped)")
            #expect(scraped["earshot_event_loop_lag_seconds{loop=\"0\"}"] != nil)
            #expect(scraped["process_cpu_seconds_total"].map { $0 > 0 } == true && scraped["process_uptime_seconds"] != nil)
            #expect(scraped["earshot_http_requests_total{route=\"/metrics\",method=\"GET\",status=\"401\"}"] == 1, "\(scraped)")
            #expect(scraped["earshot_api_authentication_failures_total{reason=\"missing\"}"] == 1)
            #expect(scraped["earshot_rooms{state=\"created\"}"] == 1 || scraped["earshot_rooms{state=\"live\"}"] == 1, "\(scraped)")
            try await eventually("bytes in and out, a second after they went") {
                let scraped = try await Self.scrape(url, room.server.token)
                return scraped["earshot_received_bytes_total{protocol=\"rtmp\"}"] ?? 0 > 0
                    && scraped["earshot_sent_bytes_total{protocol=\"rtmp\"}"] ?? 0 > 0
            }
            let before = try await Self.scrape(url, room.server.token)
            await ear.close()
            try await eventually("the listener has left") { try await Self.scrape(url, room.server.token)["earshot_viewers"] == 0 }
            // Bytes sent to a connection stay counted once it is gone.
            let after = try await Self.scrape(url, room.server.token)
            let name = "earshot_sent_bytes_total{protocol=\"rtmp\"}"
            #expect(after[name] ?? 0 >= before[name] ?? 1)
        }
    }

    /// Players as FLV and MP4, and WebSockets, are counted as all other requests, accepted and refused.
    @Test(.timeLimit(.minutes(3))) func connectionsTakenOverAreRequests() async throws {
        try await TestServer.run { server in
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await publisher.send([FLVTag(kind: .video, timestamp: 0, payload: SyntheticTag.videoHeader)])
            let player = try await SocketClient.open(server.addresses.http.port)
            try await player.send("GET /live/cam1.flv HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            try await eventually("the player's answer") { player.received.starts(with: Array("HTTP/1.1 200 ".utf8)) }
            for path in ["live/..%2Fx.mp4", "events", "channel", "board/\(String(repeating: "0", count: 32))"] {
                let socket = try await SocketClient.open(server.addresses.http.port)
                try await socket.send("GET /\(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
                _ = try await socket.answer()
            }
            let mesh = try await WebSocketClient.open(server.addresses.http.port, "/mesh")
            let scraped = try await Self.scrape("\(server.http)/metrics", server.token)
            for (route, status) in [
                ("/{app}/{stream}.flv", 200), ("/{app}/{stream}.mp4", 400), ("/events", 426), ("/channel", 426), ("/board/{board}", 426),
                ("/mesh", 101),
            ] {
                let name = "earshot_http_requests_total{route=\"\(route)\",method=\"GET\",status=\"\(status)\"}"
                #expect(scraped[name] == 1, "\(name): \(scraped.keys.filter { $0.hasPrefix("earshot_http_requests") })")
                #expect(scraped["earshot_http_request_seconds_count{route=\"\(route)\"}"] == 1)
            }
            await mesh.socket.close()
            await player.close()
            await publisher.close()
        }
    }

    /// Returns the values by series. Throws if a line is malformed.
    static func scrape(_ url: String, _ token: String) async throws -> [String: Double] {
        let answer = try await ClientProcess.run(["curl", "-s", "-i", "-H", "Authorization: Bearer \(token)", url])
        #expect(answer.text.contains("text/plain; version=0.0.4"))
        return try MetricsPage.values(of: answer.text.split(separator: "\r\n\r\n", maxSplits: 1).last ?? "")
    }
}
