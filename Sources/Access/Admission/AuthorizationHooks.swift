internal import Logging
internal import NIOCore
import Outbound
import ServerConfiguration
import Support
internal import Synchronization

/// Asks another server whether to admit publishers and players, and notifies it when they end. Any thread.
///
/// Both are HTTP POSTs with JSON, as in SRS's http_hooks. A question:
/// ```
/// {"action":"on_publish","app":"live","name":"cam1","stream":"cam1","param":"?a=1","ip":"192.0.2.7","session":"42","client_id":"42",
///  "user":"alice","room":"cam1","verified":true,"time":"2026-11-21T10:00:00Z"}
/// ```
/// It is signed as ``OutboundSignature`` describes. `param` is the query without this server's own credentials, which are already checked;
/// the application's other parameters are passed on whole.
///
/// HTTP 200 with `{"code":0}` or a bare `0` allows; `"id"` beside it is the identity for takeovers, `"user"` the user. Another code, or
/// HTTP 4xx, denies with the hook's `"message"`. No answer in time, no connection, HTTP 3xx or 5xx and any other form deny, too: both
/// publish and play fail closed, since a hook is set to keep people out.
///
/// on_unpublish and on_stop are sent once, without waiting and in no order with questions; `session` names the connection. At most
/// ``maxReports`` are queued; more are dropped and counted.
final class AuthorizationHooks: Sendable {
    typealias Action = AdmissionRequest.Action

    /// Most pending questions of one kind. They share fewer connections: see ``OutboundClient``.
    static let maxOpenQuestions = 4_096
    /// Most reports in the queue.
    static let maxReports = 1_000
    private static let reportsAtATime = 8

    private struct State {
        var open: [Action: Int] = [:]
        var reports = CircularBuffer<Report>()
        var senders = 0
        var dropped = 0
        var failed = 0
    }

    private struct Report {
        let action: String
        let url: String
        let request: AdmissionRequest
        let pass: AdmissionPass
        let reason: CloseReason
    }

    private let state = Mutex(State())
    private let settings: Live<ServerConfig>
    private let keys: Live<KeyRing>
    private let outbound: OutboundClient
    private let log: Logger
    private let flood = LogRateLimiter()

    init(_ settings: Live<ServerConfig>, _ keys: Live<KeyRing>, outbound: OutboundClient, log: Logger) {
        self.settings = settings
        self.keys = keys
        self.outbound = outbound
        self.log = log
    }

    private var config: ServerConfig.Hooks { self.settings.hooks }
    private var parameters: CredentialParameters { CredentialParameters(self.settings.credentials) }

    /// Reports that were dropped because the queue was full, and those that failed.
    var lost: (dropped: Int, failed: Int) { self.state.withLock { ($0.dropped, $0.failed) } }

    func url(_ action: Action) -> String? {
        switch action {
        case .publish: self.config.onPublish
        case .play: self.config.onPlay
        }
    }

    // MARK: Questions

    func ask(_ request: AdmissionRequest, _ pass: AdmissionPass) async -> Result<AdmissionPass, AdmissionRefusal> {
        guard let url = self.url(request.action) else {
            return pass.needsHook
                ? .failure(Self.unavailable("The authorisation hook was taken out of the settings meanwhile; try again.")) : .success(pass)
        }
        let mayAsk = self.state.withLock { state in
            guard state.open[request.action, default: 0] < Self.maxOpenQuestions else { return false }
            state.open[request.action, default: 0] += 1
            return true
        }
        guard mayAsk else { return .failure(Self.unavailable("The authorisation hook has too many open requests; try again.")) }
        defer { self.state.withLock { $0.open[request.action, default: 1] -= 1 } }
        let action = "on_\(request.action.rawValue)"
        let answer = await self.post(url, HookQuestion(action, request, pass, hiding: self.parameters), pool: action)
        let verdict: Result<AdmissionPass, AdmissionRefusal>
        var why: String?
        switch answer {
        case .failure(let error):
            why = error.description
            verdict = .failure(Self.unavailable("The authorisation hook gave no answer; try again later."))
        case .success(let answer):
            do throws(HookAnswer.Problem) {
                verdict = try HookAnswer(answer).verdict(on: pass)
            } catch {
                why = error.description
                verdict = .failure(Self.unavailable("The authorisation hook's answer could not be read; try again later."))
            }
        }
        if let why { self.warn("An authorisation hook failed; the client is refused", action, why) }
        return verdict
    }

    private static func unavailable(_ message: String) -> AdmissionRefusal {
        AdmissionRefusal(reason: .hookUnavailable, message: message)
    }

    // MARK: Reports

    func notifyEnded(_ request: AdmissionRequest, _ pass: AdmissionPass, _ reason: CloseReason) {
        let (action, url) =
            switch request.action {
            case .publish: ("on_unpublish", self.config.onUnpublish)
            case .play: ("on_stop", self.config.onStop)
            }
        guard let url else { return }
        let report = Report(action: action, url: url, request: request, pass: pass, reason: reason)
        enum Step { case send, wait, drop(Int) }
        let step: Step = self.state.withLock { state in
            if state.senders < Self.reportsAtATime {
                state.senders += 1
                return .send
            }
            guard state.reports.count < Self.maxReports else {
                state.dropped += 1
                return .drop(state.dropped)
            }
            state.reports.append(report)
            return .wait
        }
        switch step {
        case .wait: break
        case .drop(let all): self.warn("A hook's report was dropped: too many are pending", action, "\(all) since the start")
        case .send: Task { await self.send(from: report) }
        }
    }

    /// Sends this report, then the queued ones until the queue is empty.
    private func send(from first: Report) async {
        var next: Report? = first
        while let report = next {
            let question = HookQuestion(
                report.action, report.request, report.pass, hiding: self.parameters, reason: report.reason)
            let answer = await self.post(report.url, question, pool: report.action)
            let problem: String? =
                switch answer {
                case .success(let answer): answer.status / 100 == 2 ? nil : "HTTP \(answer.status)"
                case .failure(let error): error.description
                }
            if let problem { self.warn("A hook could not be notified", report.action, problem) }
            next = self.state.withLock { state in
                if problem != nil { state.failed += 1 }
                if let waiting = state.reports.popFirst() { return waiting }
                state.senders -= 1
                return nil
            }
        }
    }

    /// Waits until all reports are sent, for `limit` at most. For the server's end, when all its connections have just ended.
    func finishReports(within limit: Duration) async {
        let end = ContinuousClock.now + limit
        while self.state.withLock({ $0.senders > 0 }), ContinuousClock.now < end {
            do {
                try await Task.sleep(for: .milliseconds(10))
            } catch {
                return
            }
        }
    }

    // MARK: Requests

    private func post(_ url: String, _ question: HookQuestion, pool: String) async -> Result<OutboundAnswer, OutboundError> {
        let body = question.body
        let signature = OutboundSignature.headers(key: self.keys.webhookKey, body: body, atSeconds: WallClock.seconds)
        return await self.outbound.post(
            url: url, headers: [("Content-Type", "application/json")] + signature, body: body,
            timeout: .milliseconds(self.config.timeoutMs), pool: pool)
    }

    private func warn(_ line: Logger.Message, _ action: String, _ why: String) {
        guard let held = self.flood.pass(nowMs: Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000)) else { return }
        let metadata: Logger.Metadata = ["hook": "\(action)", "error": "\(why)"]
        self.log.write(line, metadata, at: .warning, heldBack: held)
    }
}
