import NIOCore
import Relay
import Synchronization

/// Which event loop a new connection goes to: of those that are least late, the one with the fewest connections, of those that are equal any.
/// Any thread.
///
/// In turn, as NIO deals connections out, publishers and viewers that come one after the other would be parted, all of the one kind on
/// one loop, and what the ends of connections leave uneven would stay so. NIO's listeners take no group of loops but its own and ask that
/// for the next loop as they accept; so each connection's coming decides whose turn the next one's is. Where somebody else takes that turn,
/// or connections end in between, one connection is misplaced, and the counts make up for it with those that follow.
final class Placement: Sendable {
    private let group: any EventLoopGroup
    /// In the group's order of turns.
    private let loops: [any EventLoop]
    /// Of each loop: how late it is.
    private let pressures: [LoopPressure]
    /// Of each loop: connections that are open.
    private let counts: Mutex<[Int]>

    /// `pressures`: of the group's loops, in their order.
    init(_ group: any EventLoopGroup, _ pressures: [LoopPressure] = []) {
        self.group = group
        self.loops = Array(group.makeIterator())
        self.pressures = pressures.count == self.loops.count ? pressures : self.loops.map { _ in LoopPressure() }
        self.counts = Mutex(Array(repeating: 0, count: self.loops.count))
    }

    /// For the front of a listening channel's pipeline.
    func handler() -> any ChannelInboundHandler & Sendable { Handler(placement: self) }

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
