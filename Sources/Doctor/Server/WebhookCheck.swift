import CommandSupport
import Support

/// Checks whether events leave the server: its webhooks, and a temporary one of the doctor.
struct WebhookCheck: Sendable {
    let api: APIClient

    /// Targets whose last attempt failed.
    func targets() async -> DoctorResult {
        let name = "webhooks"
        do {
            let list = try await self.api.get(["webhooks", "targets"])["list"].list
            let failing = list.filter { $0["isFailing"].bool == true }
            guard let first = failing.first else {
                return .pass(name, list.isEmpty ? "none" : "\(list.count), none is failing")
            }
            let words = "\(first["url"].string ?? "?"): \(first["lastError"].string ?? "the last attempt failed")"
            return .fail(
                name, "\(failing.count) of \(list.count) failing; \(words)",
                "look at the target's log, and at earshot webhooks deliveries list --state pending")
        } catch {
            return .skip(name, MediaChecks.words(error))
        }
    }

    /// A target on this machine for the room's events, while it lives.
    struct Target: Sendable {
        let listener: WebhookListener
        let id: Int64
    }

    enum Opened: Sendable {
        case target(Target)
        case result(DoctorResult)
    }

    private static let name = "webhook"

    func open(room: String) async -> Opened {
        guard self.api.server.isLoopback else {
            return .result(.skip(Self.name, "the server is another machine, which cannot call this one's listener: run the doctor there"))
        }
        let listener: WebhookListener
        do { listener = try await WebhookListener.open() } catch {
            return .result(.skip(Self.name, "no port to listen on: \(ConnectFailure.words(error))"))
        }
        do {
            let made = try await self.api.post(
                ["webhooks"],
                [
                    "name": "earshot doctor", "url": .string("http://127.0.0.1:\(listener.port)/"), "rooms": .array([.string(room)]),
                    "kinds": [],
                ])
            guard let id = made["webhookId"].integer else { throw CommandFailure(.failed, "the server names no webhookId") }
            let target = Target(listener: listener, id: id)
            // The server may have created a target whose address the network's rules forbid.
            let tried = try await self.api.post(["webhooks", "\(id)", "test"])
            guard let error = tried["error"].string else { return .target(target) }
            await self.close(target)
            return .result(Self.refused(error))
        } catch {
            listener.close()
            return .result(Self.refused(MediaChecks.words(error)))
        }
    }

    private static func refused(_ error: String) -> DoctorResult {
        guard error.contains("allowPrivate") else {
            return .fail(self.name, "no target for this machine: \(DisplayText.escaped(error))", "see the server's log")
        }
        return .skip(
            self.name, "the server may not call this machine (outbound.allowPrivate), as is usual",
            "earshot webhooks test calls a target of yours; to try this one too, add 127.0.0.1/32 to outbound.allowPrivate")
    }

    func verdict(_ target: Target, room: String) async -> DoctorResult {
        guard
            let call = await target.listener.first(
                within: 5, { $0.body["roomId"].string == room || $0.body["data"]["roomId"].string == room })
        else {
            return .fail(Self.name, "no event of the room came within 5 s", "see earshot webhooks deliveries list, and the server's log")
        }
        let kind = call.body["kind"].string ?? "an event"
        guard call.isSigned else { return .fail(Self.name, "\(kind) came without a signature", "please report it, with --json") }
        return .pass(Self.name, "\(kind) came, signed")
    }

    func close(_ target: Target) async {
        target.listener.close()
        let api = self.api
        // Runs after an interruption too: an unstructured task is not cancelled.
        await Task { _ = try? await api.delete(["webhooks", "\(target.id)"]) }.value
    }
}
