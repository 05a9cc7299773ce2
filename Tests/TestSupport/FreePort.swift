import NIOCore
import NIOPosix
import Synchronization

/// A port for a server that starts late or restarts on it.
/// Stays below the system's ephemeral range, so that no connection of another test gets the port meanwhile.
package enum FreePort {
    private static let next = Atomic<Int>(Int.random(in: 15_000..<25_000))

    /// A port on which nobody listens. Probes by connecting: a listening socket would be inherited by a child spawned at that moment, until
    /// it execs.
    package static func reserve() async throws -> Int {
        for _ in 0..<200 {
            let port = Self.next.add(1, ordering: .relaxed).newValue
            do {
                try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(host: "127.0.0.1", port: port).get().close()
            } catch {
                return port
            }
        }
        throw TimedOut(description: "no free port")
    }
}
