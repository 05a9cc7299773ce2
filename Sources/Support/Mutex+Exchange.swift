package import Synchronization

extension Mutex where Value: Sendable {
    /// Stores a value and returns the former one, as `Atomic.exchange` does. For values that must be ended exactly once, outside the lock.
    package func exchange(_ value: Value) -> Value {
        self.withLock { stored in
            defer { stored = value }
            return stored
        }
    }
}
