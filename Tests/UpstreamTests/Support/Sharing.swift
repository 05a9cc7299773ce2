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

    static func take(host: String = "127.0.0.1") async throws -> Int {
        for _ in 0..<200 {
            let port = Self.next.add(1, ordering: .relaxed).newValue
            do {
                try await ServerBootstrap(group: Loops.group).bind(host: host, port: port).get().close()
                return port
            } catch is IOError {
                continue
            }
        }
        throw TimedOut(description: "no free port")
    }
}
