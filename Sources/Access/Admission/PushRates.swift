internal import NIOCore
import RTMP
package import ServerConfiguration
import Support
internal import Synchronization

/// Limits how often pushes begin and create rooms, by address and by credential if any. Any thread.
///
/// Each push leaves a row in the store, and each room more: unlimited, one credential could fill the disk. Two hundred devices behind one address
/// that reconnect together stay below the limits, and so does a device that reconnects each second.
package final class PushRates: Sendable {
    /// The burst, as a multiple of the rate per second.
    private static let attemptBurst = 10
    private static let roomBurst = 20

    private struct State {
        var attempts: RateTable
        var rooms: RateTable
    }

    private let state: Mutex<State>
    package init(_ limits: ServerConfig.Limits) {
        self.state = Mutex(
            State(
                attempts: RateTable(limits.publishesPerAddress, limits.publishesPerCredential, burst: Self.attemptBurst),
                rooms: RateTable(limits.roomsPerAddress, limits.roomsPerCredential, burst: Self.roomBurst)))
    }

    package func set(_ limits: ServerConfig.Limits) {
        self.state.withLock {
            $0.attempts.set(limits.publishesPerAddress, limits.publishesPerCredential)
            $0.rooms.set(limits.roomsPerAddress, limits.roomsPerCredential)
        }
    }

    package static var nowNs: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// Counts an attempt. Returns nil when it is allowed.
    package func refusal(of request: AdmissionRequest, _ pass: AdmissionPass, nowNs: UInt64 = PushRates.nowNs) -> AdmissionRefusal? {
        let (address, credential) = Self.keys(request, pass)
        guard let wait = self.state.withLock({ $0.attempts.acquire(address, credential, nowNs: nowNs) }) else { return nil }
        let seconds = max(1, Int(wait.rounded(.up)))
        return AdmissionRefusal(
            reason: .rateLimited,
            message:
                "Too many pushes from this address or with this credential (limits.publishesPerAddress, limits.publishesPerCredential)."
                + " Try again in \(seconds) s.",
            retrySeconds: seconds)
    }

    /// Counts a new room. Returns nil when it is allowed, otherwise the seconds until it is.
    package func admitRoom(_ request: AdmissionRequest, _ pass: AdmissionPass, nowNs: UInt64 = PushRates.nowNs) -> Double? {
        let (address, credential) = Self.keys(request, pass)
        return self.state.withLock { $0.rooms.acquire(address, credential, nowNs: nowNs) }
    }

    /// The keys of the limits. Without a checked credential only the address counts, because a client could change its identity each time.
    private static func keys(_ request: AdmissionRequest, _ pass: AdmissionPass) -> (HostKey, String?) {
        (HostKey.of(request.remote), pass.isVerified ? pass.identity : nil)
    }
}

/// Token buckets in use, by address and by credential. A value; `nowNs` is monotonic.
///
/// Buckets are in two generations of a bounded size. A bucket that is unused while a whole generation fills is dropped, and later starts full again.
struct RateTable {
    private enum Key: Hashable {
        case host(HostKey)
        case credential(String)
    }

    private var buckets: [Key: TokenBucket] = [:]
    private var older: [Key: TokenBucket] = [:]
    private var addressRate: Int
    private var credentialRate: Int
    private let burst: Int
    private let most: Int

    /// Rates are per second. `most` limits the buckets of a generation.
    init(_ addressRate: Int, _ credentialRate: Int, burst: Int, most: Int = 10_000) {
        self.addressRate = addressRate
        self.credentialRate = credentialRate
        self.burst = burst
        self.most = most
    }

    /// Applies new rates. If either rate changes, all buckets are dropped, so that addresses and credentials start again.
    mutating func set(_ addressRate: Int, _ credentialRate: Int) {
        guard addressRate != self.addressRate || credentialRate != self.credentialRate else { return }
        (self.addressRate, self.credentialRate) = (addressRate, credentialRate)
        self.buckets = [:]
        self.older = [:]
    }

    var count: Int { self.buckets.count + self.older.count }

    /// Takes a token from both buckets and returns nil; if one is empty, takes none and returns the seconds until neither is.
    mutating func acquire(_ host: HostKey, _ credential: String?, nowNs: UInt64) -> Double? {
        let keys = [(Key.host(host), self.addressRate)] + (credential.map { [(Key.credential($0), self.credentialRate)] } ?? [])
        var found = keys.map { key, rate in
            self.buckets[key] ?? self.older[key] ?? TokenBucket(rate: Double(rate), burst: Double(rate * self.burst), nowNs: nowNs)
        }
        var wait = 0.0
        for index in found.indices {
            let outcome = found[index].peek(nowNs: nowNs)
            if !outcome.isAllowed { wait = max(wait, outcome.waitSeconds) }
        }
        if wait == 0 { for index in found.indices { _ = found[index].acquire(nowNs: nowNs) } }
        if self.buckets.count + found.count > self.most {
            self.older = self.buckets
            self.buckets = [:]
        }
        for (index, bucket) in found.enumerated() { self.buckets[keys[index].0] = bucket }
        return wait > 0 ? wait : nil
    }
}
