package import Rooms
import Store

extension RoomRegistry {
    /// Rooms by state and waiting deliveries, for metrics. Reads counters, and an index up to a bound.
    package nonisolated func figures() async throws(RegistryError) -> StoreFigures { try await self.store.read { try $0.figures() } }

    /// Counts every room: for the self-check, too slow for regular calls.
    package nonisolated func counts() async throws(RegistryError) -> RoomCounts { try await self.store.read { try $0.counts() } }
}

/// Counts of the store's rows, for metrics. A value.
package struct StoreFigures: Sendable, Equatable {
    package let rooms: [RoomState: Int]
    /// Deliveries that wait for their target; ``mostCounted`` stands for more.
    package let waitingDeliveries: Int
    /// Event time of the oldest waiting delivery, by the rooms' clock in milliseconds since 1970; nil without waiting deliveries.
    package let oldestDeliveryAt: Int64?

    package static let mostCounted = 100_000
}
