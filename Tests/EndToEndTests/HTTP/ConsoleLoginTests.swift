import EarshotServer
import Foundation
import RoomRegistry
import Rooms
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// The console at a name of somebody else's, and the command that opens it. What a page shows is for Tests/Console.
@Suite struct ConsoleLoginTests {
    /// A name of somebody else's that leads to this server (DNS rebinding).
    @Test func foreignNamesAreRefused() async throws {
        try await TestServer.run({ $0.console.hosts = ["ops.example.com"] }) { server in
            for (host, status) in [("evil.example", "421"), ("ops.example.com", "200"), ("localhost", "200")] {
                let text = try await RawHTTP.send(
                    "GET / HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n", to: server)
                #expect(text.hasPrefix("HTTP/1.1 \(status) "), "\(host): \(text.prefix(200))")
            }
        }
    }

    @Test func theCommandMakesACode() async throws {
        try await Fixture.withDirectory { directory in
            try await TestServer.run { server in
                let cli = try await server.cli(.ops, in: directory)
                let line = try await cli.text("console").trimmingCharacters(in: .whitespacesAndNewlines)
                let code = try #require(line.split(separator: "#code=").last.map(String.init))
                #expect(line.hasPrefix("\(server.http)/#code="), "\(line)")
                let login = try await server.request("POST", "/console/login", body: #"{"code":"\#(code)"}"#)
                try #require(login.status == 200, "\(login.text)")
                let cookie = try login.headers["set-cookie"].orThrow()
                #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Path=/"))
                #expect(try login.json()["data"]["role"].string == "ops")
            }
        }
    }
}
