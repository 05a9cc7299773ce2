import EarshotServer
import PortlessTestSupport
import Relay
import ServerConfiguration
import ServerTestSupport
import Streaming
import Support
import TestSupport
import Testing

@testable import HTTPServer

/// What HTTP's clients make the server hold is charged, bounded per address and given back.
@Suite struct HTTPHoldingTests {
    private static let mebibyte = 1 << 20

    // MARK: - The shares

    @Test func oneAddressHasItsShare() {
        let ledger = MemoryLedger(limit: 256 * Self.mebibyte)
        let holdings = HTTPHoldings(ledger)
        let (one, same, other) = (holdings.account(of: "a"), holdings.account(of: "a"), holdings.account(of: "b"))
        #expect(one === same)
        let held = HTTPHolding(one)
        held.add(64 * Self.mebibyte)
        #expect(one.hasSpace && one.mayAnswer() && ledger.used == 64 * Self.mebibyte)
        held.add(1)
        #expect(!one.hasSpace && one.mayAnswer() && other.hasSpace)
        held.set(96 * Self.mebibyte + 1)
        #expect(!one.mayAnswer() && other.hasSpace && other.mayAnswer())
        #expect(one.mayAnswer(100) && !one.mayAnswer(100_000), "short answers always go out")
        held.set(0)
        #expect(one.hasSpace && ledger.used == 0)
    }

    /// Many addresses together leave half of the memory to media; API callers get in all the same.
    @Test func allTogetherHaveTheirs() {
        let holdings = HTTPHoldings(MemoryLedger(limit: 256 * Self.mebibyte))
        let crowd = (0..<4).map { HTTPHolding(holdings.account(of: "\($0)")) }
        for holding in crowd { holding.add(32 * Self.mebibyte) }
        let (stranger, proxy) = (holdings.account(of: "s"), holdings.account(of: nil))
        let caller = holdings.account(of: "o", mayUseReserve: true)
        #expect(stranger.hasSpace && proxy.hasSpace)
        let last = HTTPHolding(proxy)
        last.add(1)
        #expect(!stranger.hasSpace && stranger.mayAnswer() && !proxy.hasSpace && caller.hasSpace)
        last.add(64 * Self.mebibyte)
        #expect(!stranger.mayAnswer() && caller.mayAnswer())
    }

    /// An account ends with its last holder, and one of the same address begins anew.
    @Test func nothingStays() {
        let ledger = MemoryLedger(limit: 256 * Self.mebibyte)
        let holdings = HTTPHoldings(ledger)
        for _ in 0..<3 {
            let holding = HTTPHolding(holdings.account(of: "a"))
            holding.add(100 * Self.mebibyte)
            #expect(!holding.account.hasSpace)
        }
        #expect(ledger.used == 0 && holdings.held == 0 && holdings.account(of: "a").hasSpace)
    }

    // MARK: - Over HTTP/2

    /// Error codes (RFC 9113 §7).
    private enum Code {
        static let refusedStream = 7
        static let enhanceYourCalm = 11
    }

    private static func configure(_ config: inout ServerConfig) {
        config.limits.memoryBytes = 64 * mebibyte
        config.access.trustedProxies = CIDR.loopback
        config.access.playFrom = CIDR.any
        config.http.firstWaitMs = 600_000
    }

    private static func from(_ address: String) -> [(String, String)] { [("x-forwarded-for", address)] }

    /// Heads of requests that wait: the address is refused past its share, others are served, and all is given back.
    @Test func headsOfWaitingRequests() async throws {
        try await PortlessServer.runSecure(Self.configure) { server in
            _ = try await server.call("POST", "rooms", #"{"roomId":"cam1"}"#)
            let ledger = server.parts.memory.ledger
            let before = ledger.used
            let long = (0..<7).map { ("x-\($0)", String(repeating: "a", count: 4_000)) }
            var clients: [HTTP2Client] = []
            var peak = 0
            for _ in 0..<8 {
                // Not before its turn: a connection without a request is closed after some seconds.
                let client = try await HTTP2Client.open(server.secure)
                clients.append(client)
                for stream in stride(from: 1, to: 200, by: 2) {
                    try await client.send(HTTP2Client.request("/live/cam1.flv", on: stream, Self.from("203.0.113.9") + long))
                    peak = max(peak, ledger.used - before)
                }
            }
            try await eventually("refusals") {
                peak = max(peak, ledger.used - before)
                return clients.contains { client in
                    stride(from: 1, to: 200, by: 2).contains { client.soFar($0).reset == Code.refusedStream }
                }
            }
            let share = 16 * Self.mebibyte
            // Each loop may have read the hundred heads of one connection more.
            #expect(peak > share && peak <= share + 8 * Self.mebibyte, "\(peak)")
            let same = try await HTTP2Client.open(server.secure)
            try await same.get("/healthz", on: 1, Self.from("203.0.113.9"))
            #expect(try await same.answer(1).text == "ok\n", "a health check is answered all the same")
            await same.close()
            let other = try await HTTP2Client.open(server.secure)
            try await other.get("/healthz", on: 1, Self.from("203.0.113.10"))
            #expect(try await other.answer(1).status == 200)
            try await other.get("/api/v1/openapi.json", on: 3, Self.from("203.0.113.10"))
            #expect(try await other.answer(3).status != nil)
            for client in clients + [other] { await client.close() }
            try await eventually("what was held is given back") { ledger.used <= before + share / 64 }
        }
    }

    /// Answers that nobody reads: they end past the share, and the address is served again once it has let go.
    @Test func answersThatNobodyReads() async throws {
        try await PortlessServer.runSecure({ $0.limits.memoryBytes = 64 * Self.mebibyte }) { server in
            let ledger = server.parts.memory.ledger
            let before = ledger.used
            let client = try await HTTP2Client.open(server.secure, window: 0)
            // In one record: all of them have begun before the first answer counts.
            let streams = Array(stride(from: 1, to: 199, by: 2))
            let plain = [("accept-encoding", "identity")]
            try await client.send(streams.flatMap { HTTP2Client.request("/api/v1/openapi.json", on: $0, plain) })
            try await eventually("ends") { streams.contains { client.soFar($0).reset == Code.enhanceYourCalm } }
            // Three eighths, with what API callers may have.
            #expect(ledger.used - before <= 26 * Self.mebibyte, "\(ledger.used) \(before)")
            await client.close()
            try await eventually("what was held is given back") { ledger.used <= before + Self.mebibyte }
            let again = try await HTTP2Client.open(server.secure)
            try await again.get("/api/v1/openapi.json", on: 1)
            #expect(try await again.answer(1).status == 200)
            await again.close()
        }
    }
}
