import EarshotServer
import Foundation
import TestSupport
import Testing

/// The metrics that Prometheus scrapes.
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
            }
            let scraped = try await Self.scrape(url, room.server.token)
            #expect(scraped["earshot_viewers"] == 1 && scraped["earshot_publishers"] == 1 && scraped["earshot_connections"] == 2)
            #expect(scraped["earshot_streams_live"] == 2 && scraped["earshot_plays_started_total"] == 1, "\(scraped)")
            #expect(scraped["earshot_talk_encodes_total"].map { $0 > 0 } == true)
            #expect(scraped["earshot_connections_by_protocol{protocol=\"rtmp\"}"] == 2, "\(scraped)")
            #expect(scraped["earshot_event_loop_lag_seconds{loop=\"0\"}"] != nil)
            #expect(scraped["process_cpu_seconds_total"].map { $0 > 0 } == true && scraped["process_uptime_seconds"] != nil)
            await ear.close()
        }
    }

    /// Returns the values by series. Throws if a line is malformed.
    static func scrape(_ url: String, _ token: String) async throws -> [String: Double] {
        let answer = try await ClientProcess.run(["curl", "-s", "-i", "-H", "Authorization: Bearer \(token)", url])
        #expect(answer.text.contains("text/plain; version=0.0.4"))
        let body = answer.text.split(separator: "\r\n\r\n", maxSplits: 1).last ?? ""
        let line = try Regex(
            #"^(?:# HELP [a-z_]+ .+|# TYPE [a-z_]+ (?:counter|gauge)|([a-z_]+(?:\{[a-z]+="[-a-z_A-Z0-9]+"\})?) ([-0-9.e+]+))$"#)
        var values: [String: Double] = [:]
        for text in body.split(separator: "\n") {
            let match = try #require(try line.wholeMatch(in: text), "\(text)")
            if let name = match.output[1].substring, let value = match.output[2].substring { values[String(name)] = Double(value) }
        }
        return values
    }
}
