package import NIOCore
package import RoomRegistry
import Rooms
import Synchronization

/// Tracks revoked tokens by polling the store, on demand and at most twice a minute, because other processes revoke tokens too. Any thread.
package final class TokenWatch: Sendable {
    private struct State {
        var valid: Set<Int64>?
        var askedAt: NIODeadline?
    }

    package static let interval = TimeAmount.seconds(30)

    private let rooms: RoomRegistry
    private let state = Mutex(State())

    package init(_ rooms: RoomRegistry) { self.rooms = rooms }

    /// Answers from the last poll; does not wait.
    func isRevoked(_ id: Int64) -> Bool {
        let (isDue, isRevoked) = self.state.withLock { state in
            let now = NIODeadline.now()
            let isDue = state.askedAt.map { now - $0 >= Self.interval } ?? true
            if isDue { state.askedAt = now }
            return (isDue, state.valid.map { !$0.contains(id) } ?? false)
        }
        if isDue { self.ask() }
        return isRevoked
    }

    private func ask() {
        Task {
            do {
                let valid = Set(try await self.rooms.tokens().filter { $0.revokedAt == nil }.map(\.id))
                self.state.withLock { $0.valid = valid }
            } catch {
                // A store error must not end a feed; the next interval asks again.
            }
        }
    }
}
