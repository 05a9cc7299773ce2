import NIOCore
package import Relay

extension ServerCore {
    /// Runs `body` on the stream's home loop; returns nil if there is no such stream.
    package func onHome<Value: Sendable>(
        of path: String, _ body: @escaping @Sendable (RelayLoop, Relay.Stream) -> Value
    ) async -> Value? {
        guard let stream = self.registry.find(path) else { return nil }
        return await withCheckedContinuation { done in
            stream.home.run { done.resume(returning: body($0, stream)) }
        }
    }
}
