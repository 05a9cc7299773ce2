package import NIOCore
package import Support
import Synchronization

/// Puts a new connection on the least busy event loop. Among the least late loops it takes one with the fewest connections, at random if there are
/// several. Any thread.
///
/// NIO deals connections out in turn. Publishers and viewers that arrive alternately would then be separated, one kind per loop, and imbalance that
/// closed connections leave would stay. NIO's listeners use only their own group and ask it for the next loop as they accept; so each accept here
/// moves the group's turn for the next connection. If somebody else takes that turn, or connections close in between, one connection is misplaced,
/// and the counts correct that with later ones.
package final class Placement: Sendable {
    private let group: any EventLoopGroup
    /// In the order of the group's turns.
    private let loops: [any EventLoop]
    /// The lateness of each loop.
    private let pressures: [LoopPressure]
    /// The open connections of each loop.
    private let counts: Mutex<[Int]>

    /// `pressures` are those of the group's loops, in their order.
    package init(_ group: any EventLoopGroup, _ pressures: [LoopPressure] = []) {
        self.group = group
        self.loops = Array(group.makeIterator())
        self.pressures = pressures.count == self.loops.count ? pressures : self.loops.map { _ in LoopPressure() }
        self.counts = Mutex(Array(repeating: 0, count: self.loops.count))
    }

    /// Add at the front of a listening channel's pipeline.
    package func handler() -> any ChannelInboundHandler & Sendable { Handler(placement: self) }

    private func accepted(_ connection: any Channel) {
        guard self.loops.count > 1, let index = self.loops.firstIndex(where: { $0 === connection.eventLoop }) else { return }
        let target = self.counts.withLock { counts in
            counts[index] += 1
            let levels = self.pressures.map(\.level)
            let calmest = levels.min() ?? .calm
            let able = counts.indices.filter { levels[$0] == calmest }
            let fewest = able.map { counts[$0] }.min() ?? 0
            return able.filter { counts[$0] == fewest }.randomElement() ?? 0
        }
        connection.closeFuture.whenComplete { _ in self.counts.withLock { $0[index] -= 1 } }
        let before = self.loops[(target + self.loops.count - 1) % self.loops.count]
        for _ in self.loops where self.group.next() === before { break }
    }

    private final class Handler: ChannelInboundHandler, Sendable {
        typealias InboundIn = any Channel

        private let placement: Placement

        init(placement: Placement) { self.placement = placement }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.placement.accepted(self.unwrapInboundIn(data))
            context.fireChannelRead(data)
        }
    }
}
