import NIOCore
import RTMP
import Relay

/// What a connection may make the server hold, and when its socket is left unread.
///
/// Until a publish is accepted the peer may be anybody: `limits.bytesBeforePublish` is all it gets. While a decision is awaited (a hook may take
/// seconds) nothing is decoded, and past that bound nothing is read either: TCP holds the sender back, and the publisher that sends its first
/// pictures with `publish` loses none.
extension RTMPConnection {
    /// What a read turn may add before ``updateReading()`` takes effect: `maxMessagesPerRead` buffers of ``RTMPListener/smallReads``.
    private static let turnBytes = 4 * RTMPListener.smallReadBytes
    /// Steps in which held bytes are charged: less than that is not worth an atomic operation. Strangers may be many, with little each.
    private static let publisherChargeStep = 64 << 10
    private static let strangerChargeStep = 4 << 10

    private var bytesBeforePublish: Int { self.core.config.limits.bytesBeforePublish }

    /// Whether these bytes may be taken. Reading stops long before the bound; only the end of a connection makes the channel hand on all that
    /// the kernel still has, whatever autoRead says.
    func mayHold(_ count: Int) -> Bool {
        if self.isPublisher || self.decoder.waitingBytes + count <= self.bytesBeforePublish + Self.turnBytes { return true }
        self.close(
            .inboundFlood,
            detail: "ended with more than \(self.bytesBeforePublish) bytes that wait for a decision (limits.bytesBeforePublish)")
        return false
    }

    /// After each read: stops reading when enough waits, and charges what is held.
    func weighInput() {
        let held = self.decoder.heldBytes
        let isFull = self.isDeciding && held > self.bytesBeforePublish - min(Self.turnBytes, self.bytesBeforePublish / 2)
        if isFull != self.isFull {
            self.isFull = isFull
            self.updateReading()
        }
        guard abs(held - self.chargedBytes) >= (self.isPublisher ? Self.publisherChargeStep : Self.strangerChargeStep) else { return }
        let grows = held > self.chargedBytes
        self.charge(held)
        // Nobody in particular is not to take what is short.
        if grows, !self.isPublisher, self.core.memory.ledger.isOver { self.close(.memoryLimit, detail: self.core.memory.refusal.message) }
    }

    /// What the connection holds now, on the process's account.
    func charge(_ bytes: Int) {
        guard bytes != self.chargedBytes else { return }
        self.core.memory.ledger.charge(bytes - self.chargedBytes)
        self.chargedBytes = bytes
    }

    /// Reads the socket unless the connection's turn is over or enough waits for a decision.
    func updateReading() {
        let reads = !self.isYielding && !self.isFull
        guard reads != self.isReading else { return }
        self.isReading = reads
        do {
            try self.context?.channel.syncOptions?.setOption(.autoRead, value: reads)
        } catch {
            // The channel is closed: it reads no more anyhow.
        }
    }

    /// The client's publish, or its voice's, was accepted: the limits of media hold from now on, and reads are as large as a stream needs.
    func publishAccepted() {
        guard !self.isPublisher else { return }
        self.isPublisher = true
        self.decoder.publishAccepted()
        do {
            try self.context?.channel.syncOptions?.setOption(.recvAllocator, value: RTMPListener.largeReads)
        } catch {
            // The channel is closed.
        }
    }
}
