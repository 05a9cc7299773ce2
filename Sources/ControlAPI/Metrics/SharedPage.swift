import Synchronization

/// A page that is made on demand, and shared by all requests within a short time. Any thread.
///
/// For any number of requests, at most one page is being made at a time, and only few a second.
final class SharedPage: Sendable {
    private struct State {
        var page: [UInt8] = []
        var madeAt: ContinuousClock.Instant?
        var making: Task<[UInt8], any Error>?
    }

    private let lifetime: Duration
    private let state = Mutex(State())

    init(lifetime: Duration = .milliseconds(250)) { self.lifetime = lifetime }

    /// The page, at most `lifetime` old; `make` creates a new one.
    func bytes(_ make: @escaping @Sendable () async throws -> [UInt8]) async throws -> [UInt8] {
        let (page, task) = self.state.withLock { state -> ([UInt8]?, Task<[UInt8], any Error>?) in
            if let madeAt = state.madeAt, ContinuousClock.now - madeAt < self.lifetime { return (state.page, nil) }
            if let making = state.making { return (nil, making) }
            let task = Task { try await self.make(make) }
            state.making = task
            return (nil, task)
        }
        if let page { return page }
        return try await task?.value ?? []
    }

    private func make(_ make: @Sendable () async throws -> [UInt8]) async throws -> [UInt8] {
        do {
            let page = try await make()
            self.state.withLock { state in
                state.page = page
                state.madeAt = ContinuousClock.now
                state.making = nil
            }
            return page
        } catch {
            self.state.withLock { $0.making = nil }
            throw error
        }
    }
}
