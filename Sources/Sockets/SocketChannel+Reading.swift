import LibC
import NIOCore

/// Input, in turns: a socket that always has more does not keep the loop from the others.
extension SocketChannel {
    private enum Outcome { case some, nothing, end }
    /// More than a kernel's buffer holds; a peer that still sends must not hold the loop up.
    private static let mostLastRounds = 64

    package func read0() {
        guard self.isOpen, !self.isInputClosed else { return }
        self.isReadAsked = true
        if self.isActive { self.watch(.read) }
    }

    /// Asks the handlers for a read if the channel reads by itself; some hold it back until they have room.
    func askToRead() {
        guard self.isActive, !self.isReadAsked, self.readsByItself else { return }
        if self.lendsInput { self.read0() } else { self.pipeline.syncOperations.read() }
    }

    /// One turn. Returns whether there may be more.
    func readTurn() -> Bool {
        let outcome = self.readPieces()
        guard outcome != .end else { return false }
        if outcome == .some, self.isActive { self.pipeline.syncOperations.fireChannelReadComplete() }
        self.askToRead()
        if self.isOpen, !self.isReadAsked { self.ignore(.read) }
        return outcome == .some && self.isOpen
    }

    /// The peer has sent its last: all of it is read now, wanted or not, for no event tells of it again.
    func readToTheEnd() {
        self.ignore(.hangUp)
        while self.isActive, !self.isInputClosed, self.readTurn() {}
        // If the end is still to come, it is readable.
        if self.isOpen, !self.isInputClosed { self.watch(.read) }
    }

    /// Before the channel closes because of an error.
    func readWhatIsLeft() {
        var hasRead = false
        var rounds = 0
        while self.isActive, !self.isInputClosed, rounds < Self.mostLastRounds, self.readPieces(isLast: true) == .some {
            hasRead = true
            rounds += 1
        }
        if hasRead, self.isActive { self.pipeline.syncOperations.fireChannelReadComplete() }
    }

    /// `isLast`: the channel closes after this, so an end or an error means nothing.
    private func readPieces(isLast: Bool = false) -> Outcome {
        var outcome = Outcome.nothing
        var reads = 0
        while reads < self.mostReads, self.isOpen, !self.isInputClosed {
            let most = min(self.mostBytesPerRead, SocketLoop.scratchBytes)
            let count = recv(self.descriptor, self.loop.scratch.baseAddress, most, 0)
            if count > 0 {
                reads += 1
                outcome = .some
                self.isReadAsked = false
                self.pipeline.syncOperations.fireChannelRead(NIOAny(self.loop.buffer(count, lends: self.lendsInput)))
                // A piece that is not full was the last.
                if count < most { break }
            } else if count == 0 {
                if !isLast { self.reachedTheEnd() }
                return .end
            } else if errno == EAGAIN || errno == EWOULDBLOCK {
                break
            } else if errno != EINTR {
                if !isLast { self.readFailed(IOError(errnoCode: errno, reason: "read")) }
                return .end
            }
        }
        return outcome
    }

    private func reachedTheEnd() {
        self.isReadAsked = false
        self.pipeline.syncOperations.fireChannelReadComplete()
        guard self.isOpen else { return }
        if self.allowsHalfClosure {
            self.closeInput(nil)
        } else {
            self.close0(error: ChannelError.eof, mode: .all, promise: nil)
        }
    }

    private func readFailed(_ error: IOError) {
        self.pipeline.syncOperations.fireErrorCaught(error)
        if self.isOpen { self.close0(error: error, mode: .all, promise: nil) }
    }
}
