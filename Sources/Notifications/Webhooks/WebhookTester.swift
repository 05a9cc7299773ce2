package import Outbound
package import Rooms
package import ServerConfiguration
package import Support

/// A target's answer to a test call.
package struct WebhookTestResult: Sendable, Equatable {
    /// Nil without an answer.
    package let status: Int?
    package let problem: String?
    package let durationMs: Int64
    /// The beginning of the answer's body, at most ``WebhookTester/longestAnswer`` bytes.
    package let answer: String

    package var isDelivered: Bool { WebhookDelivery.isDelivered(self.status) }
}

/// Sends signed test calls to webhooks. They are no deliveries: nothing is stored or retried. Any thread.
package final class WebhookTester: Sendable {
    package static let longestAnswer = 1_024

    private let config: Live<ServerConfig>
    private let sender: @Sendable () -> WebhookSender
    private let outbound: OutboundClient

    package init(_ config: Live<ServerConfig>, sender: @escaping @Sendable () -> WebhookSender, outbound: OutboundClient) {
        self.config = config
        self.sender = sender
        self.outbound = outbound
    }

    /// Why the server could not call a URL; nil if it could. Does not repeat the URL, which may hold a secret.
    package func problem(ofURL url: String) -> String? {
        do throws(OutboundError) {
            try OutboundTarget.check(url, TargetRules(allowPrivate: self.config.outbound.allowPrivate))
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// `atMs` is milliseconds since 1970.
    package func test(_ hook: StoredWebhook, atMs: Int64) async -> WebhookTestResult {
        let request: WebhookRequest
        do throws(WebhookBodyError) {
            request = try WebhookRequest(testing: hook, sender: self.sender().signing(with: hook.secret), atMs: atMs)
        } catch {
            return WebhookTestResult(status: nil, problem: error.description, durationMs: 0, answer: "")
        }
        let begin = ContinuousClock.now
        let outcome = await self.outbound.post(
            url: hook.url, headers: request.headers.map { ($0.name, $0.value) }, body: Array(request.body.utf8),
            timeout: .milliseconds(self.config.webhooks.timeoutMs), pool: hook.target.id)
        let durationMs = Int64((ContinuousClock.now - begin) / .milliseconds(1))
        switch outcome {
        case .success(let answer):
            let problem = WebhookDelivery.isDelivered(answer.status) ? nil : "HTTP status \(answer.status); expected 2xx"
            return WebhookTestResult(
                status: answer.status, problem: problem, durationMs: durationMs,
                answer: String(decoding: answer.body.prefix(Self.longestAnswer), as: UTF8.self))
        case .failure(let error):
            return WebhookTestResult(status: nil, problem: error.description, durationMs: durationMs, answer: "")
        }
    }
}

extension WebhookRequest {
    /// The kind of a test call, which no event has.
    package static let testKind = "webhook.test"

    /// A test call in the target's format. It has no room and a kind that no event has, so that no receiver mistakes it for an event.
    init(testing hook: StoredWebhook, sender: WebhookSender, atMs: Int64) throws(WebhookBodyError) {
        let (key, seconds) = ("test-\(atMs)", atMs / 1_000)
        let body: JSONValue
        switch hook.format {
        case .earshot:
            body = [
                "idempotencyKey": .string(key), "id": 0, "number": 0, "kind": .string(Self.testKind), "roomId": nil, "instance": 0,
                "at": .string(Instant.text(atMs)), "data": ["webhookId": .integer(hook.id), "name": .string(hook.name)], "attempt": 1,
            ]
        case .tencent:
            let t = seconds + TencentPushCallback.lifetimeSeconds
            body = [
                "appid": 0, "app": .string(sender.domain), "appname": "", "stream_id": "", "channel_id": "", "event_type": -1,
                "t": .integer(t), "sign": .string(TencentPushCallback.sign(key: sender.key, t: t)),
            ]
        case let other: throw .unknown(other)
        }
        self.init(kind: Self.testKind, key: key, body: body.text, sender: sender, atSeconds: seconds)
    }
}
