import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// A list that several threads add to.
final class SharedList<Element: Sendable>: Sendable {
    private let items = Mutex<[Element]>([])
    var all: [Element] { self.items.withLock { $0 } }
    func append(_ item: Element) { self.items.withLock { $0.append(item) } }
}

enum Loops {
    static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
}

/// A port for a server of another program. Below the range that the system takes clients' ports from, so that no connection gets it
/// meanwhile.
enum FreePort {
    private static let next = Atomic<Int>(Int.random(in: 25_000..<32_000))

    /// Nobody listens there. It is not tried by listening: a child that is started at that moment would have the socket too, until it
    /// runs its program.
    static func take(host: String = "127.0.0.1") async throws -> Int {
        for _ in 0..<200 {
            let port = Self.next.add(1, ordering: .relaxed).newValue
            do {
                try await ClientBootstrap(group: Loops.group).connect(host: host, port: port).get().close()
            } catch {
                return port
            }
        }
        throw TimedOut(description: "no free port")
    }
}
