import Apps
import Listening
import Logging
import ServerConfiguration
import Support
import Synchronization

/// Sends one of the server's own requests, under the address rules for these. Throws an error whose text may be logged.
package typealias OutboundPost =
    @Sendable (
        _ url: String, _ headers: [(name: String, value: String)], _ body: [UInt8], _ timeout: Duration
    ) async throws -> (status: Int, body: [UInt8])

/// Connects classes with native apps through RongCloud's server API (``RongCloudCall``). Made only when configured. Any thread.
///
/// Tokens are requested before a member joins. All other calls follow from stored changes. They wait in one queue per class and are sent in the order
/// of the changes, so a member is in the group before it gets any message, and gets none after it leaves.
final class RongCloudBridge: Sendable {
    private struct Job {
        let call: RongCloudCall
        let receipt: FollowUpReceipt?
        /// Whether a success of this call resolves the receipt, too.
        let isLast: Bool
        let since: ContinuousClock.Instant
    }

    /// Exists only while its calls are being sent.
    private struct Queue {
        var jobs: [Job] = []
        /// Dropped calls since the last log line about them.
        var dropped = 0
        var told = ContinuousClock.now
    }

    private struct State {
        var queues: [String: Queue] = [:]
        /// Bytes of all bodies in queues.
        var bytes = 0
        /// The classes' ids by their members' ids.
        var classes: [String: String] = [:]
        var connections: UInt64 = 0
        /// Requests for tokens that are under way.
        var tokens = 0
    }

    private let calls: ServiceCalls
    private let appKey: String
    let secret: String
    /// How long the caller that changes a class waits for RongCloud. The class changes in any case.
    private let callWait: Duration
    private let counters: AppCounters
    private let log: Logger
    private let floods = LogRateLimiters(perMs: 10_000)
    private let state = Mutex(State())

    /// Pauses before the second and the third attempt.
    private static let pauses = [Duration.milliseconds(200), .seconds(1)]
    /// How long a joining member waits for the group.
    private static let joinWait = Duration.seconds(10)
    private static let mostMessages = 1_000
    /// Pending calls of a class that change its group. A lost one could leave a departed member listening.
    private static let mostCalls = 4_000
    private static let mostBytes = 32 << 20
    /// A message that waits longer is useless.
    private static let longestWait = Duration.seconds(60)
    private static let mostTokens = 256
    private static let linesApart = Duration.seconds(10)

    /// Nil when no cloud is configured.
    init?(_ config: ServerConfig.RongCloud, post: @escaping OutboundPost, counters: AppCounters, log: Logger) {
        guard let host = config.host, let appKey = config.appKey, let secret = config.secret else { return nil }
        self.calls = ServiceCalls(
            "RongCloud", host: host, failure: "A call of RongCloud has failed", post: post, log: log,
            whenFailed: { counters.update { $0.rongCloudFailed += 1 } })
        self.appKey = appKey
        self.secret = secret
        self.callWait = .milliseconds(config.callWaitMs)
        self.counters = counters
        self.log = log
    }

    // MARK: - Waiting callers

    /// The token with which a client connects to RongCloud. Throws code 10.
    func token(_ user: String, name: String) async throws(GatheringRefusal) -> String {
        let isTaken = self.state.withLock { state in
            guard state.tokens < Self.mostTokens else { return false }
            state.tokens += 1
            return true
        }
        guard isTaken else { throw ClassroomCode.imToken.refusal("There are too many at once. Try again.") }
        defer { self.state.withLock { $0.tokens -= 1 } }
        let token = try await self.once(.token(userID: user, name: name))
        guard let token, !token.isEmpty else { throw ClassroomCode.imToken.refusal("RongCloud's answer has no token.") }
        return token
    }

    /// Waits until a member that has joined is in the group. `receipt`: the joining command's. A member that was already in the class joins the group
    /// again. Throws code 11.
    func joined(_ user: String, _ id: String, _ receipt: FollowUpReceipt) async throws(GatheringRefusal) {
        if !receipt.isExpected {
            let group = Self.group(id)
            self.enqueue([.joinGroup(userIDs: [user], groupID: group, name: group)], id, receipt)
        }
        guard let outcome = await receipt.outcome(within: Self.joinWait) else {
            throw ClassroomCode.createRoom.refusal("RongCloud takes too long.")
        }
        try outcome.get()
    }

    /// Waits for the messages and the group's change that follow a call, but not for long: on timeout they continue without the caller. Throws codes
    /// 13 and 22.
    func followed(_ receipt: FollowUpReceipt) async throws(GatheringRefusal) {
        guard case .failure(let refusal)? = await receipt.outcome(within: self.callWait) else { return }
        throw ClassroomCode(refusal).refusal("It is done here, but not in RongCloud: \(refusal.description)")
    }

    // MARK: - Presence

    /// Logs a callback without a valid signature.
    func noteCallback(from address: String?) {
        guard let held = self.floods.pass("callback", nowMs: LoopSweeper.nowMs) else { return }
        let metadata: Logger.Metadata = ["remote": "\(address ?? "unknown")"]
        self.log.write("A callback without RongCloud's signature was refused", metadata, at: .warning, heldBack: held)
    }

    /// The class of a member.
    func classID(of user: String) -> String? { self.state.withLock { $0.classes[user] } }

    /// A new connection for a member connected by RongCloud.
    func connection() -> ConnectionID {
        .remote(
            self.state.withLock { state in
                state.connections += 1
                return state.connections
            })
    }

    /// Resumes a class from the store. `sinceMs`: members away since then were connected when it was stored. Their connections to RongCloud outlive
    /// this server.
    func resume(_ runner: GatheringRunner, sinceMs: Int64) {
        let members = runner.gathering.members
        self.state.withLock { state in
            for member in members { state.classes[member.id] = runner.id }
        }
        for member in members where member.awaySinceMs == sinceMs { runner.submit(.connecting(member.id, self.connection())) }
    }

    // MARK: - Calls that follow changes

    /// Queues the calls that follow from a gathering's change.
    func applied(_ change: GatheringRunner.AppliedChange) {
        guard change.kind == GatheringKinds.classroom else { return }
        self.state.withLock { state in
            for effect in change.effects {
                switch effect {
                case .joined(let member): state.classes[member.id] = change.id
                case .left(let member, _): state.classes[member.id] = nil
                default: break
                }
            }
        }
        let calls = RongCloudCall.calls(change.effects, former: change.former.gathering, groupID: Self.group(change.id))
        if !calls.isEmpty { self.enqueue(calls, change.id, change.receipt) }
    }

    /// A class's id as its members know it.
    private static func group(_ id: String) -> String { String(id.dropFirst(Classes.prefix.count)) }

    /// `receipt` waits for all calls, or for the first that is no message.
    private func enqueue(_ calls: [RongCloudCall], _ id: String, _ receipt: FollowUpReceipt?) {
        var refused: RongCloudCall?
        let (begins, dropped) = self.state.withLock { state in
            let known = state.queues.removeValue(forKey: id)
            var (queue, receipt, dropped) = (known ?? Queue(), receipt, 0)
            for (index, call) in calls.enumerated() {
                let isHeard = receipt?.isForAll == true || !call.isMessage
                let size = call.body.utf8.count
                let hasSpace =
                    call.isMessage
                    ? queue.jobs.count < Self.mostMessages && state.bytes + size <= Self.mostBytes : queue.jobs.count < Self.mostCalls
                guard hasSpace else {
                    dropped += 1
                    if isHeard, receipt != nil { refused = call }
                    continue
                }
                let isLast = receipt?.isForAll != true || index == calls.count - 1
                queue.jobs.append(Job(call: call, receipt: isHeard ? receipt : nil, isLast: isLast, since: .now))
                if isHeard {
                    receipt?.expect()
                    if isLast { receipt = nil }
                }
                state.bytes += size
            }
            queue.dropped += dropped
            state.queues[id] = queue
            return (known == nil, dropped)
        }
        if let refused { receipt?.resolve(.failure(refused.failure.refusal("Too many calls of RongCloud wait."))) }
        if dropped > 0 { self.counters.update { $0.rongCloudDropped += UInt64(dropped) } }
        if begins { Task { await self.work(id) } }
    }

    private func work(_ id: String) async {
        while let job = self.next(id) {
            do throws(GatheringRefusal) {
                try await self.call(job.call)
                if job.isLast { job.receipt?.resolve(.success(())) }
            } catch {
                job.receipt?.resolve(.failure(error))
            }
        }
    }

    /// Takes the next job; nil ends the class's queue.
    private func next(_ id: String) -> Job? {
        let now = ContinuousClock.now
        let (job, old, dropped): (Job?, Int, Int) = self.state.withLock { state in
            guard var queue = state.queues.removeValue(forKey: id) else { return (nil, 0, 0) }
            let old = queue.jobs.prefix { $0.call.isMessage && now - $0.since > Self.longestWait }.count
            let job = queue.jobs.dropFirst(old).first
            let taken = old + (job == nil ? 0 : 1)
            state.bytes -= queue.jobs.prefix(taken).reduce(0) { $0 + $1.call.body.utf8.count }
            queue.jobs.removeFirst(taken)
            queue.dropped += old
            // One line for all recently dropped calls.
            let told = job == nil || now - queue.told > Self.linesApart ? queue.dropped : 0
            if told > 0 { (queue.dropped, queue.told) = (0, now) }
            if job != nil { state.queues[id] = queue }
            return (job, old, told)
        }
        if old > 0 { self.counters.update { $0.rongCloudDropped += UInt64(old) } }
        if dropped > 0 {
            self.log.warning(
                "Calls of RongCloud were given up because too many waited", metadata: ["class": "\(id)", "calls": "\(dropped)"])
        }
        return job
    }

    // MARK: - One call

    private func call(_ call: RongCloudCall) async throws(GatheringRefusal) {
        try await ServiceCalls.again(after: Self.pauses) { () async throws(GatheringRefusal) in _ = try await self.once(call) }
    }

    private func once(_ call: RongCloudCall) async throws(GatheringRefusal) -> String? {
        let headers =
            RongCloudCall.headers(appKey: self.appKey, secret: self.secret, nonce: Classes.newID(), atSeconds: WallClock.seconds)
            + [("Content-Type", RongCloudCall.contentType)]
        return try await self.calls.call(
            call.path, headers, call.body, refusal: { call.failure.refusal($0) },
            read: { (text) throws(GatheringRefusal) in try call.read(text) })
    }
}
