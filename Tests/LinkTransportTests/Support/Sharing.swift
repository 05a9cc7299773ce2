import Foundation
import NIOCore
import NIOPosix
import Synchronization
import TestSupport

/// A list to which several threads append.
final class SharedList<Element: Sendable>: Sendable {
    private let items = Mutex<[Element]>([])
    var all: [Element] { self.items.withLock { $0 } }
    func append(_ item: Element) { self.items.withLock { $0.append(item) } }
}

enum Loops {
    static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
}

/// Ports for servers of other programs. They lie below the range of the system's client ports, so that no connection gets one meanwhile.
enum FreePort {
    private static let next = Atomic<Int>(Int.random(in: 25_000..<32_000))

    /// A port on which nobody listens. It is not tested by listening: a child started at that moment would hold the socket too, until it
    /// runs its program.
    static func reserve(host: String = "127.0.0.1") async throws -> Int {
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
