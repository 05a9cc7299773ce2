import Foundation
import RTMPTestSupport
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import HTTPServer
@testable import ServerConfiguration
@testable import Support

/// Ends of HTTP connections in real time. Others are in HTTPServerTests.
@Suite struct HTTPConnectionTests {
    private static func get(_ path: String, _ headers: String...) -> String {
        (["GET \(path) HTTP/1.1", "Host: h"] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    @Test func bodiesThatDoNotCome() async throws {
        try await TestServer.run({ $0.limits.httpIdleMs = 4_000 }) { server in
            let idle = try await SocketClient.open(server.addresses.http.port)
            try await idle.send(Self.get("/healthz"))
            #expect(try await idle.answer().body == "ok\n")
            try await eventually("the idle one's end") { idle.isClosed }
        }
    }

    /// Idle connections do not delay the server's end.
    @Test func shutdownWithOpenConnections() async throws {
        let idle = try await TestServer.run { server in
            let idle = try await SocketClient.open(server.addresses.http.port)
            try await idle.send(Self.get("/healthz"))
            #expect(try await idle.answer().body == "ok\n")
            let begun = try await SocketClient.open(server.addresses.http.port)
            try await begun.send("GET /heal")
            return [idle, begun]
        }
        for socket in idle { try await eventually("the end") { socket.isClosed } }
    }

    /// A client that has just connected gets its answer, which says that it is the last.
    @Test func shutdownBeforeTheFirstRequest() async throws {
        for _ in 1...5 {
            if try await self.endBeforeTheFirstRequest() { return }
        }
        Issue.record("the machine stood still at each try")
    }

    /// False: the machine stood still, so that the client asked after the server had waited for it.
    private func endBeforeTheFirstRequest() async throws -> Bool {
        let (idle, fresh, late, began) = try await TestServer.run { server in
            let fresh = try await SocketClient.open(server.addresses.http.port)
            // Accepted behind the first.
            let idle = try await SocketClient.open(server.addresses.http.port)
            try await idle.send(Self.get("/healthz"))
            #expect(try await idle.answer().body == "ok\n")
            let late = Task {
                try await eventually("the shutdown") { idle.isClosed }
                do {
                    try await fresh.send(Self.get("/healthz"))
                    let asked = ContinuousClock.now
                    return (asked, try? await fresh.answer(within: 10))
                } catch {
                    return (ContinuousClock.now, nil)
                }
            }
            return (idle, fresh, late, ContinuousClock.now)
        }
        let (asked, answer) = try await late.value
        guard answer != nil || asked - began < .milliseconds(500) else { return false }
        let head = try #require(answer).head
        #expect(head.hasPrefix("HTTP/1.1 200 ") && head.lowercased().contains("connection: close"), "\(head)")
        try await eventually("the ends") { idle.isClosed && fresh.isClosed }
        return true
    }
}
