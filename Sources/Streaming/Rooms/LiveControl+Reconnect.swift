import NIOCore
import Relay
import Support

extension LiveControl {
    /// Asks one connection's client to connect again, to `tcURL` or to the same address. Nil if there is no such connection.
    package func askToReconnect(_ id: UInt64, to tcURL: String?) async -> ReconnectOutcome? {
        let outcome = await self.ask(to: tcURL) { $0.id == id }
        return outcome == ReconnectOutcome() ? nil : outcome
    }

    /// Asks all viewers of the stream.
    package func askViewersToReconnect(of path: String, to tcURL: String?) async -> ReconnectOutcome {
        await self.ask(to: tcURL) { connection in connection.snapshot().viewers.contains { $0.path.exact == path.exact } }
    }

    private func ask(to tcURL: String?, where matches: @escaping @Sendable (any LiveConnection) -> Bool) async -> ReconnectOutcome {
        var sum = ReconnectOutcome()
        for loop in self.streams.allLoops {
            // A loop that is gone has no connections.
            guard let one = try? await loop.relay.eventLoop.submit({ loop.ask(to: tcURL, where: matches) }).get() else { continue }
            sum.asked += one.asked
            sum.unable += one.unable
        }
        return sum
    }
}
