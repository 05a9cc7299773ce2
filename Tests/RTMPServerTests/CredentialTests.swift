import APITestSupport
import Access
import Foundation
import RTMP
import RTMPTestSupport
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer
@testable import Listening
@testable import Streaming

/// Credentials over RTMP, on a server where even loopback needs one.
@Suite struct CredentialTests {
    private static func close(_ config: inout ServerConfig) {
        config.access.publishFrom = []
        config.access.playFrom = []
        config.credentials.key = TestCredential.keys.key
        config.credentials.backupKey = TestCredential.keys.backupKey
        config.credentials.jwtKey = TestCredential.keys.jwtKey
        config.outbound.allowPrivate = CIDR.loopback
    }

    /// Waits for the refusal and the end of the connection.
    private func refusal(_ server: UnboundServer, _ role: TagClient.Role, _ path: String) async throws -> Status {
        let client = try await TagClient.connect(to: server, role, path)
        try await eventually("the refusal of \(path)") { client.current.isClosed }
        #expect(!client.current.hasStarted)
        return try (client.current.refusal ?? client.current.statuses.last).orThrow()
    }

    /// The notice, the log and the counter show the reason of each refusal.
    @Test func everyRefusalHasItsReason() async throws {
        let cases: [(String, CloseReason, String)] = [
            ("cam1", .credentialMissing, "needs a credential"),
            ("cam1?txSecret=9992881f06990a8449c77a1a3e2a5e2b", .credentialNoTime, "txSecret without txTime"),
            ("cam1?\(TestCredential.signed("cam1", txTime: "5C271099"))", .credentialExpired, "The URL expired"),
            ("cam1?\(TestCredential.signed("cam2"))", .credentialWrong, "does not match this stream"),
            (
                "cam1?\(TestCredential.signed("cam1").replacing("7FFFFFFF", with: "7fffffff"))", .credentialWrong,
                "does not match this stream"
            ),
            ("cam1?token=\(TestCredential.token(#"{"room":"cam1","exp":1}"#))", .credentialExpired, "The token has expired"),
            (
                "cam1?token=\(TestCredential.token(#"{"room":"cam2","act":["publish","play"],"exp":4000000000}"#))", .credentialWrong,
                "another room"
            ),
            ("cam1?token=nonsense", .credentialWrong, "not a JWT"),
        ]
        try await UnboundServer.run(Self.close) { server in
            for (name, reason, words) in cases {
                let before = server.parts.connections.counters.current.closed[reason] ?? 0
                let publish = try await self.refusal(server, .publish, "live/\(name)")
                #expect(publish.code == "NetStream.Publish.Denied" && publish.description.contains(words), "\(publish)")
                let play = try await self.refusal(server, .play, "live/\(name)")
                #expect(play.code == "NetStream.Play.Failed" && play.description.contains(words), "\(play)")
                try await eventually("the counter of \(reason)") {
                    server.parts.connections.counters.current.closed[reason] == before + 2
                }
                #expect(await server.lines.comes("Connection closed", "reason=\(reason.rawValue)", words))
            }
            let values = cases.flatMap { $0.0.split { "?&=".contains($0) }.dropFirst().filter { $0.utf8.count > 8 } }
            #expect(values.count == 6)
            for secret in values.map(String.init) + ["eyJ", TestCredential.keys.key, "backup-key-0001"] {
                #expect(!server.lines.contains(secret), "\(secret) was logged")
            }
        }
    }

    /// The newer of two URLs for one stream keeps it; URLs of both keys have the same identity.
    @Test func anOlderURLDoesNotTakeOver() async throws {
        try await UnboundServer.run(Self.close) { server in
            let holder = try await TagClient.publish(to: server, "live/cam1?\(TestCredential.signed("cam1", txTime: "7FFFFFF0"))")
            let older = try await self.refusal(server, .publish, "live/cam1?\(TestCredential.signed("cam1", txTime: "7FFFFFEF"))")
            #expect(older.code == "NetStream.Publish.BadName")
            #expect(!holder.current.isClosed)
            let newer = try await TagClient.publish(
                to: server, "live/cam1?\(TestCredential.signed("cam1", txTime: "7FFFFFF1", key: "backup-key-0001"))")
            try await eventually("the old one to go") { holder.current.isClosed }
            #expect(!newer.current.isClosed)
            await newer.close()
        }
    }
}
