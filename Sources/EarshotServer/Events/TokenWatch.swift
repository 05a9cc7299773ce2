import NIOCore
import Rooms
import Synchronization

/// Knows which tokens were revoked, by asking the store twice a minute while somebody wants to know: tokens are revoked by other
/// processes too. Any thread.
final class TokenWatch: Sendable {
    private struct State {
        var valid: Set<Int64>?
        var askedAt: NIODeadline?
    }

    static let interval = TimeAmount.seconds(30)

    private let rooms: RoomRegistry
    private let state = Mutex(State())

    init(_ rooms: RoomRegistry) { self.rooms = rooms }

    /// By what the store said last; does not wait.
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
                // The store's trouble is no reason to end anybody's feed; asked again at the next interval.
            }
        }
    }
}
