import NIOCore
import NIOPosix
import Synchronization

/// A port for a server that starts late or comes back to it. Below the range that the system takes clients' ports from, so that none of the
/// other tests' connections gets it meanwhile.
enum FreePort {
    private static let next = Atomic<Int>(Int.random(in: 15_000..<25_000))

    /// Nobody listens there. It is not tried by listening: a child that is started at that moment would have the socket too, until it
    /// runs its program.
    static func take() async throws -> Int {
        for _ in 0..<200 {
            let port = Self.next.add(1, ordering: .relaxed).newValue
            do {
                try await ClientBootstrap(group: RawClient.group).connect(host: "127.0.0.1", port: port).get().close()
            } catch {
                return port
            }
        }
        throw TimedOut(description: "no free port")
    }
}
