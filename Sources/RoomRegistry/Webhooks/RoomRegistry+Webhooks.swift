package import Rooms
import Store
import Support
import Synchronization

/// Webhooks made by the API.
extension RoomRegistry {
    package nonisolated func webhooks() async throws(RegistryError) -> [StoredWebhook] { try await self.store.read { try $0.webhooks() } }

    package nonisolated func webhook(_ id: Int64) async throws(RegistryError) -> StoredWebhook? {
        try await self.store.read { try $0.webhook(id) }
    }

    /// How many deliveries wait for the target.
    package nonisolated func pendingDeliveries(of target: WebhookTarget) async throws(RegistryError) -> Int {
        try await self.store.read { try $0.pendingDeliveries(of: target) }
    }

    /// The targets for which deliveries wait, and how many. Empty where another node sends.
    package nonisolated func pendingDeliveries() async throws(RegistryError) -> [(target: WebhookTarget, count: Int)] {
        guard self.isKeeper else { return [] }
        return try await self.store.read { try $0.pendingDeliveries() }
    }

    /// Gives up the target's oldest waiting deliveries, at most this many and a batch. Returns their number.
    package nonisolated func giveUpOldest(_ count: Int, of target: WebhookTarget) async throws(RegistryError) -> Int {
        try await self.result { work in
            try work.store.giveUpOldest(min(count, Self.batch), of: target, now: work.now)
        }.asRegistryResult.get()
    }

    /// The target answers again: what its failure had put off is due within `spreadMs`. Returns how many deliveries were brought forward, a batch at
    /// most; 0 when none is left.
    package nonisolated func hastenAfterOutage(of target: WebhookTarget, spreadMs: Int64) async throws(RegistryError) -> Int {
        try await self.result { work in
            try work.store.hastenAfterOutage(of: target, spreadMs: spreadMs, limit: Self.batch, now: work.now)
        }.asRegistryResult.get()
    }

    /// Stores a new target; the returned one has its id and time.
    package nonisolated func create(
        _ hook: StoredWebhook, keeping: KeptAnswer<StoredWebhook>? = nil
    ) async throws(RegistryError) -> StoredWebhook {
        try await self.call(keeping: keeping, stored: { [weak self] _ in self?.hookCount.add(1, ordering: .relaxed) }) { work in
            let made = try work.store.insert(hook)
            work.change.webhook(from: nil, to: made)
            return made
        }
    }

    /// Nil if there is no target with this id.
    package nonisolated func change(
        _ id: Int64, _ patch: WebhookPatch, keeping: KeptAnswer<StoredWebhook?>? = nil
    ) async throws(RegistryError) -> StoredWebhook? {
        try await self.call(keeping: keeping) { work in
            guard let old = try work.store.webhook(id) else { return nil }
            var hook = old
            if let name = patch.name { hook.name = name }
            if let url = patch.url { hook.url = url }
            if let kinds = patch.kinds { hook.kinds = kinds }
            if let rooms = patch.rooms { hook.rooms = rooms }
            if let isPaused = patch.isPaused { hook.isPaused = isPaused }
            work.change.webhook(from: old, to: hook)
            if hook != old { try work.store.update(hook) }
            return hook
        }
    }

    /// Deletes a target and its waiting deliveries. Returns their number; nil if there is no such target.
    package nonisolated func deleteWebhook(_ id: Int64) async throws(RegistryError) -> Int? {
        let deleted = try await self.call { work -> (target: WebhookTarget, dropped: Int)? in
            guard let hook = try work.store.webhook(id) else { return nil }
            work.change.webhook(from: hook, to: nil)
            try work.store.deleteWebhook(id)
            return (hook.target, try work.store.dropDeliveries(of: hook.target, limit: Self.batch))
        }
        guard let (target, first) = deleted else { return nil }
        self.hookCount.subtract(1, ordering: .relaxed)
        var (dropped, last) = (first, first)
        // In steps, so that other changes run in between. If the server is killed meanwhile, the remaining deliveries have no target and are given up.
        while last >= Self.batch {
            last = try await self.call(isChange: false) { try $0.store.dropDeliveries(of: target, limit: Self.batch) }
            dropped += last
        }
        return dropped
    }

    /// Queues copies of the targets' failed deliveries. Returns their number.
    package nonisolated func redeliver(
        to targets: [WebhookTarget], _ query: RedeliveryQuery, keeping: KeptAnswer<Int>? = nil
    ) async throws(RegistryError) -> Int {
        try await self.call(keeping: keeping) { work in
            if targets.count == 1 { work.change.object = "webhook/\(targets[0].hookID.map(String.init) ?? targets[0].id)" }
            let count = try targets.reduce(0) { count, target in
                var rest = query
                rest.limit -= count
                return rest.limit > 0 ? count + (try work.store.redeliverFailed(to: target, rest, now: work.now)) : count
            }
            work.change.add("queued", from: nil, to: .integer(Int64(count)))
            return count
        }
    }

    /// Whether the API has created targets, or another node may have; targets in the settings do not count. Any thread.
    package nonisolated var hasWebhooks: Bool { self.isShared || self.hookCount.load(ordering: .relaxed) > 0 }
}
