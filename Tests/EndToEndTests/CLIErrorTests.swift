import EarshotServer
import Foundation
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import ServerConfiguration

/// Failing commands: an exit status for scripts, and one or two lines for people.
@Suite struct CLIErrorTests {
    private static func error(_ status: Int, _ message: String) -> CannedServer.Answer {
        .json(status, #"{"code":\#(status),"message":"\#(message)","requestId":"req-7","error":{"type":"x"}}"#)
    }

    /// Common to every failure: no standard output, one or two lines of standard error, no token in either.
    private static func expectFailure(_ outcome: ClientProcess.Outcome, _ status: Int32, _ parts: String...) {
        #expect(outcome.status == status, "\(outcome.errors)")
        #expect(outcome.text.isEmpty, "\(outcome.text)")
        #expect((1...2).contains(outcome.errorLines.count), "\(outcome.errors)")
        #expect(outcome.errors.hasPrefix("earshot: "))
        for part in parts { #expect(outcome.errors.contains(part), "\(part) in \(outcome.errors)") }
        #expect(!outcome.errors.contains(Self.secret))
    }

    private static let secret = "earshot_0123456789abcdefghijABCDEFGHIJ01"

    private static func withToken<Result>(_ body: (String, URL) async throws -> Result) async throws -> Result {
        try await Fixture.withDirectory { try await body(try CLI.tokenFile(Self.secret, in: $0), $0) }
    }

    @Test(
        arguments: [
            (400, 1), (401, 5), (403, 5), (404, 3), (405, 1), (409, 4), (413, 1), (415, 1), (422, 1), (429, 1), (500, 1), (503, 1),
        ] as [(Int, Int32)])
    func refusals(_ status: Int, _ exit: Int32) async throws {
        try await Self.withToken { token, _ in
            try await CannedServer.run({ _ in Self.error(status, #"Room r1 is closed\u001b[2J; forbid is possible when it is live."#) }) {
                server, url in
                let outcome = try await CLI(server: url, token: token)("rooms", "forbid", "r1")
                Self.expectFailure(outcome, exit, #"Room r1 is closed\u{1b}[2J; forbid is possible when it is live"#)
                if status == 401 { #expect(outcome.errors.contains(token) && outcome.errors.contains("--token-file")) }
                if status >= 500 { #expect(outcome.errors.contains("req-7")) }
                let request = try #require(server.requests.first)
                #expect(server.requests.count == 1)
                #expect(request.method == "POST" && request.uri == "/api/v1/rooms/r1/forbid")
                #expect(request.headers["authorization"] == "Bearer \(Self.secret)")
            }
        }
    }

    /// A refusal without a message still shows its status.
    @Test func refusalsWithoutMessage() async throws {
        try await Self.withToken { token, _ in
            try await CannedServer.run({ _ in .json(409, #"{"error":{"allowed":["live","created"]}}"#) }) { _, url in
                Self.expectFailure(try await CLI(server: url, token: token)("rooms", "close", "r1"), 4, "409 Conflict", "live, created")
            }
        }
    }

    @Test(
        arguments: [
            (.text(200, "<html>hello</html>", [:]), 1, "not as an Earshot server does"),
            (.json(200, "[1,2]"), 1, "not as an Earshot server does"),
            (.text(302, "", ["Location": "http://127.0.0.1:1/elsewhere"]), 1, "302"),
            (.json(200, "{\"data\":\"" + String(repeating: "x", count: 17 << 20) + "\"}"), 1, "16 MiB"),
            (.close, 6, "closed without an answer"),
            (.raw("SSH-2.0-OpenSSH_9.9\r\n"), 6, "does not speak HTTP"), (.silence, 6, "no answer within 700ms"),
        ] as [(CannedServer.Answer, Int32, String)])
    func oddAnswers(_ answer: CannedServer.Answer, _ exit: Int32, _ words: String) async throws {
        try await Self.withToken { token, _ in
            try await CannedServer.run({ _ in answer }) { server, url in
                let timeout = words.contains("700ms") ? "700ms" : "20s"
                Self.expectFailure(try await CLI(server: url, token: token)("streams", "list", "--timeout", timeout), exit, words)
                try await eventually("the request") { server.requests.count == 1 }
            }
        }
    }

    @Test func unreachableServers() async throws {
        try await Self.withToken { token, _ in
            // A port that was free a moment ago.
            let gone = try await CannedServer.run({ _ in .close }) { _, url in url }
            for arguments in [["rooms", "list"], ["selfcheck"], ["events", "follow"]] {
                let outcome = try await ClientProcess.run(try CLI(server: gone, token: token).line(arguments))
                Self.expectFailure(outcome, 6, "cannot reach \(gone): connection refused", "earshot serve", "--server")
            }
            Self.expectFailure(try await CLI(server: "http://nobody.invalid", token: token)("rooms"), 6, "no such host")
        }
    }

    /// An untrusted certificate: neither calls nor the feed send their token to its server.
    @Test func untrustedCertificates() async throws {
        try await Self.withToken { token, directory in
            let certificate = try await Certificate.make("localhost", in: directory)
            try await TestServer.run({ config in
                config.rtmps.listen = HostPort(host: "127.0.0.1", port: 0)
                (config.rtmps.certificate, config.rtmps.key) = (certificate.certificate, certificate.key)
            }) { server in
                let cli = CLI(server: "https://localhost:\(server.addresses.rtmps?.port ?? 0)", token: token)
                for command in [["rooms", "list"], ["events", "follow"]] {
                    let outcome = try await ClientProcess.run(try cli.line(command))
                    Self.expectFailure(outcome, 6, "cannot reach https://localhost", "certificate is not one that this machine trusts")
                }
            }
        }
    }

    @Test func plainServersByHTTPS() async throws {
        try await CannedServer.run({ _ in .close }) { _, url in
            let cli = CLI(server: url.replacingOccurrences(of: "http://", with: "https://"))
            for command in [["rooms", "list"], ["events", "follow"]] {
                Self.expectFailure(try await ClientProcess.run(try cli.line(command)), 6, "does not speak TLS")
            }
        }
    }

    // MARK: - Tokens

    @Test func tokensAreLookedForInOrder() async throws {
        try await Self.withToken { token, directory in
            try await CannedServer.run({ _ in .json(200, #"{"code":0,"data":{"list":[],"total":0}}"#) }) { server, url in
                func shown() -> String? { server.requests.last?.headers["authorization"] }
                let data = directory.appendingPathComponent("data")
                try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
                var cli = CLI(server: url)
                _ = try await cli("rooms", "list", "--data", data.path)
                #expect(server.requests.count == 1 && shown() == nil)
                try "earshot_data \n".write(to: data.appendingPathComponent("admin-token"), atomically: true, encoding: .utf8)
                _ = try await cli("rooms", "list", "--data", data.path)
                #expect(shown() == "Bearer earshot_data")
                cli.variables["EARSHOT_DATA_DIRECTORY"] = data.path
                _ = try await cli("rooms", "list")
                #expect(shown() == "Bearer earshot_data")
                cli.variables["EARSHOT_TOKEN"] = "earshot_variable"
                _ = try await cli("rooms", "list", "--data", data.path)
                #expect(shown() == "Bearer earshot_variable")
                cli.token = token
                _ = try await cli("rooms", "list", "--data", data.path)
                #expect(shown() == "Bearer \(Self.secret)")
                #expect(server.requests.count == 5)
            }
        }
    }

    /// The local data directory's token never goes to another machine given by --server.
    @Test func theDirectorysTokenStaysHere() async throws {
        try await Fixture.withDirectory { directory in
            try "earshot_data".write(to: directory.appendingPathComponent("admin-token"), atomically: true, encoding: .utf8)
            try await CannedServer.run({ _ in .json(401, #"{"message":"Who are you?"}"#) }) { server, url in
                // An address of this machine that does not read as loopback.
                let other = url.replacingOccurrences(of: "127.0.0.1", with: "0.0.0.0")
                let cli = CLI(server: other, variables: ["EARSHOT_DATA_DIRECTORY": directory.path])
                Self.expectFailure(try await cli("rooms", "list"), 5, "no token", "--token-file")
                #expect(server.requests.count == 1 && server.requests.last?.headers["authorization"] == nil)
            }
        }
    }

    @Test(arguments: ["", "two words", "line\nbreak", "für", String(repeating: "x", count: 2_000)])
    func oddTokensAreNotSent(_ text: String) async throws {
        try await Fixture.withDirectory { directory in
            try await CannedServer.run({ _ in .close }) { server, url in
                let file = try CLI.tokenFile(text, in: directory)
                Self.expectFailure(try await CLI(server: url, token: file)("rooms"), 5, file, "holds no token")
                let none = try await CLI(server: url, token: "\(file).none")("rooms")
                Self.expectFailure(none, 5, "there is no token file \(file).none")
                #expect(server.requests.isEmpty)
            }
        }
    }

    // MARK: - Mistakes in the command line

    @Test func aWrongAddressIsUsage() async throws {
        let flag = try await CLI(server: "127.0.0.1:8080")("rooms")
        #expect(flag.status == 64 && flag.errors.contains("--server is \"127.0.0.1:8080\"; expected http://"), "\(flag.errors)")
        let line = ["-u", "EARSHOT_TOKEN", "EARSHOT_SERVER=nowhere", try EarshotProcess.binary(), "rooms", "list"]
        let variable = try await ClientProcess.run(line)
        #expect(variable.status == 64 && variable.errors.contains("EARSHOT_SERVER is \"nowhere\""), "\(variable.errors)")
    }

    /// The command line's own variables are no mistakes in the server's settings.
    @Test func theServerToleratesTheCommandsVariables() async throws {
        let line = ["EARSHOT_SERVER=http://127.0.0.1:1", "EARSHOT_TOKEN=earshot_x", try EarshotProcess.binary(), "config", "check"]
        let outcome = try await ClientProcess.run(line)
        #expect(outcome.status == 0, "\(outcome.errors)")
    }
}
