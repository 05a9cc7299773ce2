import APITestSupport
import RTMP
import RTMPTestSupport
import ServerConfiguration
import ServerTestSupport
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer
@testable import Support

/// Rates of new pushes, and of the rooms that they make, on a live server.
@Suite struct PushRateTests {
    /// A client that makes room after room is refused with the reason, and stays within its limit.
    @Test func roomsAreNotMadeWithoutEnd() async throws {
        try await UnboundServer.run({ $0.limits.roomsPerAddress = 1 }) { server in
            var made = 0
            var refused: RawClient?
            for index in 0..<200 where refused == nil {
                let client = try await RawClient.connected(server.port)
                let stream = try await client.createStream()
                do {
                    try await client.publish("x\(index)", on: stream)
                    made += 1
                    await client.close()
                } catch {
                    refused = client
                }
            }
            let client = try refused.orThrow()
            try await client.waitUntilClosed()
            #expect(client.statuses.last?.description.contains("[rate_limited]") == true, "\(client.statuses)")
            #expect(client.statuses.last?.description.contains("limits.roomsPerAddress") == true, "\(client.statuses)")
            #expect((20..<120).contains(made), "\(made)")
            try await server.wait("counters") { $0["closed"]["rate_limited"].int ?? 0 >= 1 }
            #expect(try await server.api("rooms?pageSize=10")["total"].int == made)
        }
    }

    @Test func attemptsAreCounted() async throws {
        try await UnboundServer.run({ $0.limits.publishesPerAddress = 1 }) { server in
            let owner = try await RawClient.publishing(server.port, "cam1?a=1")
            // Ten are the burst, and one more comes with each second: all at once, so that a slow machine brings no second of its own.
            var clients: [(client: RawClient, stream: UInt32)] = []
            for _ in 0..<40 {
                let client = try await RawClient.connected(server.port)
                clients.append((client, try await client.createStream()))
            }
            let reasons = try await withThrowingTaskGroup(of: String.self) { tasks in
                for (client, stream) in clients {
                    tasks.addTask {
                        _ = try? await client.publish("cam1?b=\(String(repeating: "x", count: 3_000))", on: stream)
                        try await client.waitUntilClosed()
                        return client.statuses.last?.description ?? ""
                    }
                }
                return try await tasks.reduce(into: []) { $0.append($1) }
            }
            #expect(
                reasons.contains { $0.contains("[name_taken]") } && reasons.contains { $0.contains("[rate_limited]") }, "\(reasons.count)")
            // Nothing of the refused ones is stored.
            try await server.wait("streams/published?limit=100") { $0["list"].count == 1 }
            await owner.close()
        }
    }

    @Test func aShortDiskIsNamed() async throws {
        try await UnboundServer.run({ $0.data.minFreeBytes = 1 << 50 }) { server in
            let client = try await RawClient.connected(server.port)
            let stream = try await client.createStream()
            await #expect(throws: (any Error).self) { try await client.publish("cam1", on: stream) }
            try await client.waitUntilClosed()
            let words = client.statuses.last?.description ?? ""
            #expect(words.contains("[disk_full]") && words.contains("data.minFree"), "\(words)")
            let answer = try await server.call("POST", "rooms", #"{"roomId": "cam1"}"#)
            #expect(answer.status == 507 && answer.text.contains("data.minFree"), "\(answer.text)")
            let metrics = try await server.call("GET", "metrics").text
            #expect(metrics.contains("earshot_store_free_bytes ") && metrics.contains("earshot_store_dropped_facts_total 0"))
            try await eventually("the log") { server.lines.contains("The store is in trouble", "data.minFree") }
        }
    }
}
