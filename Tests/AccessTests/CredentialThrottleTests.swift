import Foundation
import RTMP
import ServerTestSupport
import Support
import Testing

@testable import Access
@testable import ServerConfiguration

/// Addresses that repeatedly send wrong credentials.
@Suite struct CredentialThrottleTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func twentyAreFreeThenOneInFiveSeconds() {
        let throttle = CredentialThrottle()
        let guess = CredentialThrottle.digest("a guess")
        let start = 1_000 * Self.second
        for _ in 0..<20 {
            #expect(throttle.wait("a", guess, nowNs: start) == nil)
            throttle.failed("a", nowNs: start)
        }
        #expect(throttle.wait("a", guess, nowNs: start) == 5)
        #expect(throttle.wait("b", guess, nowNs: start) == nil, "another address is another one's")
        #expect(throttle.wait("a", guess, nowNs: start + 4 * Self.second) != nil)
        #expect(throttle.wait("a", guess, nowNs: start + 5 * Self.second) == nil)
        throttle.failed("a", nowNs: start + 5 * Self.second)
        #expect(throttle.wait("a", guess, nowNs: start + 5 * Self.second) != nil)
        #expect(throttle.wait("a", guess, nowNs: start + 200 * Self.second) == nil)
    }

    @Test func whatWasRightOnceIsLookedAtStill() {
        let throttle = CredentialThrottle()
        let (good, bad) = (CredentialThrottle.digest("good"), CredentialThrottle.digest("bad"))
        throttle.succeeded(good)
        for _ in 0..<100 { throttle.failed("a", nowNs: Self.second) }
        #expect(throttle.wait("a", good, nowNs: Self.second) == nil)
        #expect(throttle.wait("a", bad, nowNs: Self.second) != nil)
        // Older ones are forgotten; the newest ten thousand stay.
        for index in 0..<9_999 { throttle.succeeded(CredentialThrottle.digest("\(index)")) }
        #expect(throttle.wait("a", good, nowNs: Self.second) == nil)
        for index in 10_000..<25_000 { throttle.succeeded(CredentialThrottle.digest("\(index)")) }
        #expect(throttle.wait("a", good, nowNs: Self.second) != nil)
        #expect(throttle.wait("a", CredentialThrottle.digest("24999"), nowNs: Self.second) == nil)
    }

    /// A search from many addresses uses no more memory than ten thousand of them.
    @Test func memoryIsBounded() {
        var buckets = FailureBuckets()
        for index in 0..<50_000 {
            buckets.failed("\(index)", nowNs: Self.second)
            if index % 1_000 == 0 { #expect(buckets.count <= 10_000) }
        }
        #expect(buckets.count <= 10_000)
    }

    /// Failures by the rules of admission: guesses count, missing and expired credentials do not.
    @Test func whatCountsAsAFailure() throws {
        for query in ["", TestCredential.signed(txTime: "5C271099"), "token=\(TestCredential.token(#"{"room":"test","exp":1}"#))"] {
            let door = Doorkeeper(freeFailures: 3)
            for _ in 0..<10 { #expect(try door.ask(query).refusal != .credentialThrottled, "\(query)") }
        }
        let door = Doorkeeper(freeFailures: 3)
        #expect(try door.ask(TestCredential.signed()).pass != nil)
        for query in ["token=x", "txSecret=9992881f06990a8449c77a1a3e2a5e2c&txTime=7FFFFFFF", TestCredential.signed("other")] {
            #expect(try door.ask(query).refusal == .credentialWrong)
        }
        let held = try door.ask("token=y")
        #expect(held.refusal == .credentialThrottled && held.message.contains("wrong credentials"), "\(held.message)")
        // A new credential is refused unchecked, right or wrong; one that was accepted before still works.
        #expect(try door.ask(TestCredential.signed("test", txTime: "7FFFFFFE")).refusal == .credentialThrottled)
        #expect(try door.ask(TestCredential.signed()).pass != nil)
        #expect(try door.ask(TestCredential.signed("test", txTime: "7FFFFFFE"), from: "203.0.113.10").pass != nil)
        // A whole /64 of IPv6 counts as one address.
        for _ in 0..<3 { _ = try door.ask("token=x", from: "2001:db8::1") }
        #expect(try door.ask("token=x", from: "2001:db8::ffff:1").refusal == .credentialThrottled)
        #expect(try door.ask("token=x", from: "2001:db8:0:1::1").refusal == .credentialWrong)
    }
}
