import Foundation
import NIOCore
import RTMP
import ServerConfiguration
import ServerTestSupport
import Testing

@testable import Access
@testable import Support

/// Rates of new pushes, and of the rooms that they make.
@Suite struct PushRateTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func ofAnAddressAndOfACredential() {
        var table = RateTable(2, 1, burst: 3)
        // At once: 6 of the address, 3 of the credential.
        for _ in 0..<3 { #expect(table.acquire("a", "x", nowNs: 0) == nil) }
        #expect(table.acquire("a", "x", nowNs: 0) == 1)
        for _ in 0..<3 { #expect(table.acquire("a", nil, nowNs: 0) == nil) }
        #expect(table.acquire("a", "y", nowNs: 0) == 0.5)
        #expect(table.acquire("b", "y", nowNs: 0) == nil)
        // A refusal uses up neither.
        #expect(table.acquire("b", "x", nowNs: 0) == 1)
        for _ in 0..<5 { #expect(table.acquire("b", nil, nowNs: 0) == nil) }
        #expect(table.acquire("b", nil, nowNs: 0) == 0.5)
        #expect(table.acquire("a", "x", nowNs: Self.second) == nil)
    }

    /// Memory is bounded, and a throttled address stays so while others fill the table.
    @Test func tablesAreBounded() {
        var table = RateTable(1, 1, burst: 1, most: 100)
        #expect(table.acquire("busy", nil, nowNs: 0) == nil)
        for index in 0..<5_000 {
            #expect(table.acquire("a\(index)", "c\(index)", nowNs: 0) == nil)
            #expect(table.acquire("busy", nil, nowNs: 0) == 1)
            #expect(table.count <= 204)
        }
    }

    /// Allowed by the defaults: a device that returns each second, and two hundred behind one address that arrive together.
    @Test func honestDevicesAreFine() throws {
        let rates = PushRates(ServerConfig.Limits())
        let remote = try SocketAddress(ipAddress: "203.0.113.5", port: 1)
        func device(_ index: Int) throws -> (AdmissionRequest, AdmissionPass) {
            let address = try StreamAddress(app: "live", name: "d\(index)")
            return (
                AdmissionRequest(.rtmpPublish, action: .publish, address: address, remote: remote, session: 1),
                AdmissionPass(identity: "signed d\(index)", user: nil, isVerified: true, parameters: "")
            )
        }
        for round in 0..<2 as Range<UInt64> {
            for index in 0..<200 {
                let (request, pass) = try device(index)
                #expect(rates.refusal(of: request, pass, nowNs: round * Self.second) == nil)
                if round == 0 { #expect(rates.admitRoom(request, pass, nowNs: 0) == nil) }
            }
        }
        let (request, pass) = try device(1)
        for turn in 10..<600 as Range<UInt64> { #expect(rates.refusal(of: request, pass, nowNs: turn * Self.second) == nil) }
    }
}
