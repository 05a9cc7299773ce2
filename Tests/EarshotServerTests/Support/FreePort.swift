import NIOCore
import NIOPosix
import Synchronization

/// A port for a server that starts late or comes back to it. Below the range that the system takes clients' ports from, so that none of the
/// other tests' connections gets it meanwhile.
enum FreePort {
    private static let next = Atomic<Int>(Int.random(in: 15_000..<25_000))

    static func take() async throws -> Int {
        for _ in 0..<200 {
            let port = Self.next.add(1, ordering: .relaxed).newValue
            do {
                try await ServerBootstrap(group: RawClient.group).bind(host: "127.0.0.1", port: port).get().close()
                return port
            } catch is IOError {
                continue
            }
        }
        throw TimedOut(description: "no free port")
    }
}
