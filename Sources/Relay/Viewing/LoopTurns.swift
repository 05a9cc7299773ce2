import LibC
package import NIOCore
import NIOPosix

/// Defers tasks to a loop's next turn by writing to a pipe. The loop reads the byte in the same poll as its other sockets.
///
/// `@unchecked Sendable`: every stored `var` is touched on `eventLoop` only.
package final class LoopTurns: TurnTaking, @unchecked Sendable {
    private let eventLoop: any EventLoop
    private var waiting: [() -> Void] = []
    /// `channel` reads the pipe; `writeEnd` is negative while there is no pipe.
    private var channel: (any Channel)?
    private var writeEnd: CInt = -1
    private var isOpen = false

    /// Delay without a pipe: usually long enough for everything else that is due.
    private static let pause = TimeAmount.milliseconds(1)

    package init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    /// Opens the pipe. Until it is open, or if the process is out of descriptors, a timer defers the tasks. On the loop.
    package func open() {
        guard !self.isOpen else { return }
        var ends: (read: CInt, write: CInt) = (-1, -1)
        guard withUnsafeMutableBytes(of: &ends, { pipe($0.bindMemory(to: CInt.self).baseAddress) == 0 }) else { return }
        self.isOpen = true
        let (readEnd, writeEnd) = ends
        _ = fcntl(readEnd, F_SETFD, FD_CLOEXEC)
        _ = fcntl(writeEnd, F_SETFD, FD_CLOEXEC)
        _ = fcntl(writeEnd, F_SETFL, O_NONBLOCK)
        NIOPipeBootstrap(group: self.eventLoop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Handler(turns: self)) }
            }
            .takingOwnershipOfDescriptor(input: readEnd)
            .hop(to: self.eventLoop).assumeIsolated().whenComplete { result in
                switch result {
                case .success(let channel):
                    self.channel = channel
                    self.writeEnd = writeEnd
                case .failure:
                    // The read end belongs to the channel, which has failed.
                    closeDescriptors(writeEnd)
                }
            }
    }

    /// Closes the pipe; waiting tasks still run. On the loop.
    package func close() {
        self.channel?.close(promise: nil)
        self.pipeEnded()
    }

    private func pipeEnded() {
        guard self.channel != nil else { return }
        self.channel = nil
        closeDescriptors(self.writeEnd)
        self.writeEnd = -1
        self.isOpen = false
        self.eventLoop.execute { self.run() }
    }

    package func next(_ task: @escaping () -> Void) {
        self.waiting.append(task)
        // The first task wakes the loop; tasks added until then run with it.
        guard self.waiting.count == 1 else { return }
        var byte: UInt8 = 0
        if self.writeEnd >= 0, write(self.writeEnd, &byte, 1) == 1 { return }
        self.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { self.run() }
    }

    private func run() {
        let due = self.waiting
        self.waiting = []
        for task in due { task() }
    }

    private final class Handler: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        private let turns: LoopTurns

        init(turns: LoopTurns) { self.turns = turns }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { self.turns.run() }

        func channelInactive(context: ChannelHandlerContext) { self.turns.pipeEnded() }
    }
}

/// Calls the system's `close`, which a type's own `close` method would hide.
private func closeDescriptors(_ descriptors: CInt...) {
    for descriptor in descriptors { _ = close(descriptor) }
}
