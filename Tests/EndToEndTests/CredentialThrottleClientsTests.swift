import Foundation
import RTMP
import RTMPTestSupport
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import Access
@testable import EarshotServer
@testable import ServerConfiguration

/// Addresses that repeatedly send wrong credentials to a live server.
@Suite struct CredentialThrottleClientsTests {
    /// A live server counts RTMP and HTTP together; loopback is an address like others.
    @Test func rtmpAndHTTPShareIt() async throws {
        try await TestServer.run({ $0.credentials.key = "a key for tests" }) { server in
            let good = "cam1?\(TestCredential.signed("cam1", key: "a key for tests"))"
            let camera = try await TagClient.publish(to: server, "live/\(good)")
            for index in 0..<10 {
                let client = try await RawClient.connected(server.port)
                _ = try await client.createStream()
                try? await client.publish("cam1?token=\(index)")
                try await server.expectClosed(client, .credentialWrong)
                #expect(try await HTTPAnswer.get("\(server.http)/live/cam1.flv?token=\(index)").status == 403)
            }
            // Each five seconds that this took allow one more attempt.
            func isThrottled(_ client: RawClient) async throws -> Bool {
                _ = try await client.createStream()
                try? await client.play("cam1?token=x")
                try await client.waitUntilClosed()
                return client.statuses.last?.description.contains("[credential_throttled]") == true
            }
            var client = try await RawClient.connected(server.port)
            var tries = 0
            while try await !isThrottled(client), tries < 10 {
                client = try await RawClient.connected(server.port)
                tries += 1
            }
            try await server.expectClosed(client, .credentialThrottled)
            let status = try #require(client.statuses.last)
            #expect(status.code == "NetStream.Play.Failed" && status.description.contains("[credential_throttled]"), "\(status)")
            for format in ["flv", "m3u8"] {
                var answer = try await HTTPAnswer.get("\(server.http)/live/cam1.\(format)?token=x")
                for _ in 0..<10 where answer.status == 403 {
                    answer = try await HTTPAnswer.get("\(server.http)/live/cam1.\(format)?token=x")
                }
                #expect(answer.status == 429 && answer.text.contains("credential_throttled"), "\(answer.text)")
                #expect(answer.headers["retry-after"].flatMap(Int.init).map { (1...5).contains($0) } == true)
            }
            try await eventually("the counter") { server.closed(.credentialThrottled) == 3 }
            // Clients with the right credential, and those that need none, are admitted.
            await camera.close()
            let again = try await TagClient.publish(to: server, "live/\(good)")
            let viewer = try await TagClient.play(from: server, "live/cam1")
            for client in [again, viewer] { await client.close() }
        }
    }
}
