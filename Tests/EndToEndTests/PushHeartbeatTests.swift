import Access
import Foundation
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// Reports by credentials that expire meanwhile. Others are in AppServerTests.
@Suite struct PushHeartbeatTests {
    private static func close(_ config: inout ServerConfig) {
        config.access.publishFrom = []
        config.credentials.key = TestCredential.keys.key
        config.credentials.jwtKey = TestCredential.keys.jwtKey
    }

    /// A URL that has expired is good for reports while its push runs, and no longer.
    @Test func anExpiredURL() async throws {
        try await TestServer.run(Self.close) { server in
            let soon = String(UInt32(Date().timeIntervalSince1970) + 10, radix: 16, uppercase: true)
            let query = TestCredential.signed("cam1", txTime: soon)
            let publisher = try await TagClient.publish(to: server, "live/cam1?\(query)")
            try await server.wait("rooms/cam1") { $0["state"].string == "created" }
            try await eventually("the URL to expire") { Date().timeIntervalSince1970 > Double(UInt32(soon, radix: 16) ?? 0) }
            #expect(try await server.pacedBeat("cam1", query)["state"].string == "created")
            await publisher.close()
            try await eventually("the push to be gone") {
                let answer = try await server.beat("cam1", query)
                return answer.status == 401
            }
            let other = TestCredential.signed("cam2", txTime: soon)
            #expect(try await server.beat("cam1", other).status == 401)
        }
    }

    /// An expired token is good for the push that it could have begun, for no other, and for nothing if it was made to watch or to chat.
    @Test func expiredTokens() async throws {
        try await TestServer.run(Self.close) { server in
            let soon = Int(Date().timeIntervalSince1970) + 10
            func own(_ exp: Int) -> String { "token=\(TestCredential.token(#"{"room":"cam1","act":"publish","exp":\#(exp)}"#))" }
            let publisher = try await TagClient.publish(to: server, "live/cam1?\(own(soon))")
            try await server.wait("rooms/cam1") { $0["state"].string == "created" }
            // Signed for the same stream, but not what this push began with.
            #expect(try await server.beat("cam1", TestCredential.signed("cam1", txTime: "5C271099"), "finished").status == 401)
            for claims in [
                #"{"room":"cam1","act":"play","exp":1000}"#, #"{"room":"cam1","role":"viewer","exp":1000}"#,
                #"{"room":"cam2","act":"publish","exp":1000}"#, #"{"stream":"live/cam2","act":"publish","exp":1000}"#,
                #"{"aud":"channel","sub":"ann","room":"cam1","exp":1000}"#, #"{"sub":"eve","room":"cam1","act":"publish","exp":1000}"#,
                #"{"room":"cam1","act":"publish","nbf":4000000000,"exp":4000000001}"#,
            ] {
                let answer = try await server.beat("cam1", "token=\(TestCredential.token(claims))", "finished")
                #expect(answer.status == 401, "\(claims): \(answer.text)")
            }
            #expect(!publisher.current.isClosed && !publisher.current.sawEOF)
            try await eventually("the token to expire") { Int(Date().timeIntervalSince1970) > soon }
            #expect(try await server.pacedBeat("cam1", own(soon))["state"].string == "created")
            _ = try await server.pacedBeat("cam1", own(soon), "finished")
            try await eventually("the push to end") { publisher.current.isClosed || publisher.current.sawEOF }
            await publisher.close()
        }
    }
}
