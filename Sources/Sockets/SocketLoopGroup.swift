package import Dispatch
package import NIOCore
import Synchronization

/// The loops of a server's connections. Any thread.
package final class SocketLoopGroup: EventLoopGroup {
    package let loops: [SocketLoop]
    private let turn = Atomic<Int>(0)

    /// Throws if the system has no descriptor or thread for a loop.
    package init(loops count: Int) throws(IOError) {
        var loops: [SocketLoop] = []
        for number in 0..<max(1, count) { loops.append(try SocketLoop(name: "earshot-loop-\(number)")) }
        self.loops = loops
    }

    /// The group that all servers of a process share, as many loops as NIO's own group would have.
    package static let singleton: SocketLoopGroup = {
        do throws(IOError) {
            return try SocketLoopGroup(loops: NIOSingletons.groupLoopCountSuggestion)
        } catch {
            // At a process's first step; without a thread there is no server.
            preconditionFailure("no event loop can be made: \(error)")
        }
    }()

    package func next() -> any EventLoop {
        self.loops[abs(self.turn.wrappingAdd(1, ordering: .relaxed).oldValue % self.loops.count)]
    }

    package func any() -> any EventLoop { self.next() }

    package func makeIterator() -> EventLoopIterator { EventLoopIterator(self.loops) }

    package func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        for loop in self.loops { loop.end() }
        queue.async { callback(nil) }
    }
}
