import ServerTestSupport
import TestSupport
import Testing

/// Real clients of the HTTP port that speak HTTP/1.0. Others are in HTTPServerTests.
@Suite struct HTTPBusyTests {
    /// ApacheBench speaks HTTP/1.0 and waits for the connection's end; so does curl with `-0`.
    @Test(.timeLimit(.minutes(3))) func realOldClients() async throws {
        try await TestServer.run { server in
            for keepAlive in [[], ["-k"]] {
                let bench = try await ClientProcess.run(
                    ["ab", "-q", "-n", "200", "-c", "10"] + keepAlive + ["\(server.http)/healthz"])
                #expect(bench.status == 0 && bench.text.contains("Complete requests:      200"), "\(bench.text) \(bench.errors)")
                #expect(bench.text.contains("Failed requests:        0") && !bench.text.contains("Non-2xx"), "\(bench.text)")
            }
            let curl = try await ClientProcess.run(["curl", "-sS", "-0", "-i", "\(server.http)/healthz"])
            #expect(curl.status == 0 && curl.text.hasSuffix("ok\n"), "\(curl.text) \(curl.errors)")
        }
    }
}
