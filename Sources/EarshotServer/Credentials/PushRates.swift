internal import NIOCore
internal import Synchronization

/// How often pushes may begin, and make rooms: by address, and by credential where there is one. Any thread.
///
/// Each push leaves something in the store, and each room more: without this one credential fills the disk. Two hundred devices behind one
/// address that come back together, and one that comes back each second, stay below it.
final class PushRates: Sendable {
    /// Takes at once, as a multiple of what there is in a second.
    private static let attemptBurst = 10
    private static let roomBurst = 20

    private struct State {
        var attempts: RateTable
        var rooms: RateTable
    }

    private let state: Mutex<State>
    private let limits: ServerConfig.Limits

    init(_ limits: ServerConfig.Limits) {
        self.limits = limits
        self.state = Mutex(
            State(
                attempts: RateTable(limits.publishesPerAddress, limits.publishesPerCredential, burst: Self.attemptBurst),
                rooms: RateTable(limits.roomsPerAddress, limits.roomsPerCredential, burst: Self.roomBurst)))
    }

    static var nowNs: UInt64 { NIODeadline.now().uptimeNanoseconds }

    /// Counts an attempt. Nil when it may go on.
    func refusal(of request: AdmissionRequest, _ pass: AdmissionPass, nowNs: UInt64 = PushRates.nowNs) -> AdmissionRefusal? {
        let (address, credential) = Self.keys(request, pass)
        guard let wait = self.state.withLock({ $0.attempts.take(address, credential, nowNs: nowNs) }) else { return nil }
        let seconds = max(1, Int(wait.rounded(.up)))
        return AdmissionRefusal(
            reason: .rateLimited,
            message:
                "Too many pushes of this address or credential (limits.publishesPerAddress, limits.publishesPerCredential). Try again in"
                + " \(seconds) s.",
            retrySeconds: seconds)
    }

    /// Counts a room that is to be made. Nil when it may be, otherwise after how many seconds.
    func takeRoom(_ request: AdmissionRequest, _ pass: AdmissionPass, nowNs: UInt64 = PushRates.nowNs) -> Double? {
        let (address, credential) = Self.keys(request, pass)
        return self.state.withLock { $0.rooms.take(address, credential, nowNs: nowNs) }
    }

    /// Who needs no credential could have another name each time.
    private static func keys(_ request: AdmissionRequest, _ pass: AdmissionPass) -> (String, String?) {
        (Authentication.key(of: request.remote), pass.isVerified ? pass.identity : nil)
    }
}

/// Token buckets by address and by credential, as many as are in use. A value; `nowNs` is monotonic.
///
/// In two generations of a bounded size: a bucket that is not asked for while a whole generation fills is full again, as far as anybody can
/// still tell.
struct RateTable {
    private enum Key: Hashable {
        case address(String)
        case credential(String)
    }

    private var buckets: [Key: TokenBucket] = [:]
    private var older: [Key: TokenBucket] = [:]
    private let addressRate: Int
    private let credentialRate: Int
    private let burst: Int
    private let most: Int

    /// Per second. `most`: buckets of a generation.
    init(_ addressRate: Int, _ credentialRate: Int, burst: Int, most: Int = 10_000) {
        self.addressRate = addressRate
        self.credentialRate = credentialRate
        self.burst = burst
        self.most = most
    }

    var count: Int { self.buckets.count + self.older.count }

    /// Takes one of each, if both have one; nil then, otherwise the seconds until both do.
    mutating func take(_ address: String, _ credential: String?, nowNs: UInt64) -> Double? {
        let keys = [(Key.address(address), self.addressRate)] + (credential.map { [(Key.credential($0), self.credentialRate)] } ?? [])
        var found = keys.map { key, rate in
            self.buckets[key] ?? self.older[key] ?? TokenBucket(rate: Double(rate), burst: Double(rate * self.burst), nowNs: nowNs)
        }
        var wait = 0.0
        for index in found.indices {
            let outcome = found[index].look(nowNs: nowNs)
            if !outcome.isAllowed { wait = max(wait, outcome.waitSeconds) }
        }
        if wait == 0 { for index in found.indices { _ = found[index].take(nowNs: nowNs) } }
        if self.buckets.count + found.count > self.most {
            self.older = self.buckets
            self.buckets = [:]
        }
        for (index, bucket) in found.enumerated() { self.buckets[keys[index].0] = bucket }
        return wait > 0 ? wait : nil
    }
}
