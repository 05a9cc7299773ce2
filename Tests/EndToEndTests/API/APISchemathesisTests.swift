import Foundation
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer
@testable import ServerConfiguration

/// Checks the served API against the served document. The tool knows nothing else.
@Suite struct APISchemathesisTests {
    static let checks = [
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
        "response_headers_conformance",
        "negative_data_rejection", "unsupported_method", "allow_header_conformance",
    ]

    @Test func theDocumentIsWhatTheRoutesDo() async throws {
        // No rate limit here: the test is about the calls.
        try await TestServer.run({ $0.api.rateLimit = 100_000 }) { server in
            // Keeps a room under the id that the tool tries first. The tool may end it at any time, and would then get mostly "not found".
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
                    "--checks", Self.checks.joined(separator: ","), "--phases", "coverage,fuzzing", "--max-examples", "4", "--seed", "1",
                    // CPython 3.11 miscounts its parser's depth when two threads parse.
                    "--workers", "1", "--no-shrink", "--request-timeout", "10",
                    // The tool would revoke its own token, and then get only 401.
                    "--exclude-operation-id", "revokeToken",
                    // A server that drains refuses pushes and plays from then on.
                    "--exclude-operation-id", "drainServer",
                ], within: 900)
            let said = outcome.text + outcome.errors
            #expect(outcome.status == 0, "\(said.suffix(6_000))")
            // Every operation but the excluded ones was tested.
            let selected = try #require(said.firstMatch(of: /Selected: (\d+)\/(\d+)/))
            let (some, all) = (try Int(selected.1).orThrow(), try Int(selected.2).orThrow())
            #expect(some == all - 2 && some >= 40 && said.contains("Tested: \(some)"), "\(said.suffix(1_500))")
            // It fills in the signatures of links to files, and cannot make right ones: two downloads.
            let refused = said.replacing("Authentication failed: 2 operations returned only", with: "")
            #expect(!refused.contains("Authentication failed") && !said.contains("Rate limited"), "\(said.suffix(3_000))")
            // The server is still consistent.
            let check = try await server.api("selfcheck")
            #expect(check["ok"].bool == true, "\(check)")
            #expect(!server.lines.all.contains { $0.contains("An API call failed") || $0.contains("The store failed") })
        }
    }
}
