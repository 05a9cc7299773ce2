import Foundation
import NIOCore
import RTMP
import ServerConfiguration
import Testing

@testable import Access
@testable import EarshotServer
@testable import Support

/// Rates of new pushes, and of the rooms that they make.
@Suite struct PushRateTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func ofAnAddressAndOfACredential() {
        var table = RateTable(2, 1, burst: 3)
        // At once: 6 of the address, 3 of the credential.
        for _ in 0..<3 { #expect(table.take("a", "x", nowNs: 0) == nil) }
        #expect(table.take("a", "x", nowNs: 0) == 1)
        for _ in 0..<3 { #expect(table.take("a", nil, nowNs: 0) == nil) }
        #expect(table.take("a", "y", nowNs: 0) == 0.5)
        #expect(table.take("b", "y", nowNs: 0) == nil)
        // A refusal uses up neither.
        #expect(table.take("b", "x", nowNs: 0) == 1)
        for _ in 0..<5 { #expect(table.take("b", nil, nowNs: 0) == nil) }
        #expect(table.take("b", nil, nowNs: 0) == 0.5)
        #expect(table.take("a", "x", nowNs: Self.second) == nil)
    }

    /// Memory is bounded, and a throttled address stays so while others fill the table.
    @Test func tablesAreBounded() {
        var table = RateTable(1, 1, burst: 1, most: 100)
        #expect(table.take("busy", nil, nowNs: 0) == nil)
        for index in 0..<5_000 {
            #expect(table.take("a\(index)", "c\(index)", nowNs: 0) == nil)
            #expect(table.take("busy", nil, nowNs: 0) == 1)
            #expect(table.count <= 204)
        }
    }

    /// Allowed by the defaults: a device that returns each second, and two hundred behind one address that arrive together.
    @Test func honestDevicesAreFine() throws {
        let rates = PushRates(ServerConfig.Limits())
        let remote = try SocketAddress(ipAddress: "203.0.113.5", port: 1)
        func device(_ index: Int) throws -> (AdmissionRequest, AdmissionPass) {
            let address = try StreamAddress(app: "live", name: "d\(index)")
            return (
                AdmissionRequest(action: .publish, address: address, remote: remote, session: 1),
                AdmissionPass(identity: "signed d\(index)", user: nil, isVerified: true, parameters: "")
            )
        }
        for round in 0..<2 as Range<UInt64> {
            for index in 0..<200 {
                let (request, pass) = try device(index)
                #expect(rates.refusal(of: request, pass, nowNs: round * Self.second) == nil)
                if round == 0 { #expect(rates.takeRoom(request, pass, nowNs: 0) == nil) }
            }
        }
        let (request, pass) = try device(1)
        for turn in 10..<600 as Range<UInt64> { #expect(rates.refusal(of: request, pass, nowNs: turn * Self.second) == nil) }
    }

    /// A client that makes room after room is refused with the reason, and stays within its limit.
    @Test func roomsAreNotMadeWithoutEnd() async throws {
        try await TestServer.run({ $0.limits.roomsPerAddress = 1 }) { server in
            var made = 0
            var refused: RawClient?
            for index in 0..<200 where refused == nil {
                let client = try await RawClient.connected(server.addresses.rtmp.port)
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
        try await TestServer.run({ $0.limits.publishesPerAddress = 1 }) { server in
            let owner = try await RawClient.publishing(server.addresses.rtmp.port, "cam1?a=1")
            var reasons: [String] = []
            for _ in 0..<30 {
                let client = try await RawClient.connected(server.addresses.rtmp.port)
                let stream = try await client.createStream()
                _ = try? await client.publish("cam1?b=\(String(repeating: "x", count: 3_000))", on: stream)
                try await client.waitUntilClosed()
                reasons.append(client.statuses.last?.description ?? "")
            }
            #expect(
                reasons.contains { $0.contains("[name_taken]") } && reasons.contains { $0.contains("[rate_limited]") }, "\(reasons.count)")
            // Nothing of the refused ones is stored.
            try await server.wait("streams/published?limit=100") { $0["list"].count == 1 }
            await owner.close()
        }
    }

    @Test func aShortDiskIsNamed() async throws {
        try await TestServer.run({ $0.data.minFreeBytes = 1 << 50 }) { server in
            let client = try await RawClient.connected(server.addresses.rtmp.port)
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
