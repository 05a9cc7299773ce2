@testable import EarshotServer
import Foundation
import Testing

/// The served document against the served API, by a tool that knows nothing else of either.
@Suite struct APISchemathesisTests {
    static let checks = [
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
        "response_headers_conformance",
        "negative_data_rejection", "unsupported_method", "allow_header_conformance",
    ]

    @Test func theDocumentIsWhatTheRoutesDo() async throws {
        // As many calls as it likes: here the calls are looked at, not how many there may be.
        try await TestServer.run({ $0.api.rateLimit = 100_000 }) { server in
            // The id that the tool tries first names a room, however often it ends one: beyond "not found" is where the calls differ.
            let keeper = Task {
                while !Task.isCancelled {
                    _ = try await server.call("POST", "rooms", #"{"roomId":"0","slots":2,"deviceUid":"0","policy":{"retention":0}}"#)
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
            defer { keeper.cancel() }
            let outcome = try await Schemathesis.run(
                "\(server.http)/api/v1/openapi.json", token: server.token,
                [
                    "--checks", Self.checks.joined(separator: ","), "--phases", "coverage,fuzzing", "--max-examples", "12", "--seed", "1",
                    // CPython 3.11 loses count of its parser's depth when two threads parse.
                    "--workers", "1", "--no-shrink", "--request-timeout", "10",
                    // It would revoke its own token, and then learn no more.
                    "--exclude-operation-id", "revokeToken",
                ], within: 400)
            let said = outcome.text + outcome.errors
            #expect(outcome.status == 0, "\(said.suffix(6_000))")
            // Every operation of the document but the one that is left out.
            let selected = try #require(said.firstMatch(of: /Selected: (\d+)\/(\d+)/))
            let (some, all) = (try Int(selected.1).orThrow(), try Int(selected.2).orThrow())
            #expect(some == all - 1 && some >= 40 && said.contains("Tested: \(some)"), "\(said.suffix(1_500))")
            #expect(!said.contains("Authentication failed") && !said.contains("Rate limited"), "\(said.suffix(3_000))")
            // The server is as it should be after all that.
            let check = try await server.api("selfcheck")
            #expect(check["ok"].bool == true, "\(check)")
            #expect(!server.lines.all.contains { $0.contains("An API call failed") || $0.contains("The store failed") })
        }
    }
}
