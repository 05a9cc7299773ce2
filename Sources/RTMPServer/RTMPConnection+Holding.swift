import Access
import NIOCore
import RTMP
import Relay
import ServerConfiguration
import Streaming
import Support

/// Bounds the input that a connection buffers, by pausing its reads.
///
/// Until a publish is accepted the peer may be anybody, and at most `limits.bytesBeforePublish` are buffered. While a decision is pending (a hook may
/// take seconds) nothing is decoded, and beyond that bound nothing is read either. TCP then holds the sender back, so a publisher that sends its
/// first pictures with `publish` loses none.
extension RTMPConnection {
    /// Bytes that a read turn may add before ``updateReading()`` takes effect: `maxMessagesPerRead` buffers of ``RTMPListener/smallReads``.
    private static let turnBytes = 4 * RTMPListener.smallReadBytes
    /// Steps in which buffered bytes are charged; smaller ones are not worth an atomic operation. The step of strangers is smaller because they may
    /// be many, each with few bytes.
    private static let publisherChargeStep = 64 << 10
    private static let strangerChargeStep = 4 << 10

    private var bytesBeforePublish: Int { self.services.config.limits.bytesBeforePublish }

    /// Returns whether these bytes may be buffered; closes the connection if not. Reading stops long before the bound. Only at the end of a
    /// connection does the channel deliver all that the kernel still has, whatever autoRead says.
    func mayHold(_ count: Int) -> Bool {
        if self.isPublisher || self.decoder.waitingBytes + count <= self.bytesBeforePublish + Self.turnBytes { return true }
        self.close(
            .inboundFlood,
            detail: "the connection ended with more than \(self.bytesBeforePublish) bytes still waiting for an admission decision"
                + " (limits.bytesBeforePublish)")
        return false
    }

    /// Stops reading if enough input waits, and charges the buffered bytes. Runs after each read.
    func weighInput() {
        let held = self.decoder.heldBytes()
        let isFull = self.input.isDeciding && held > self.bytesBeforePublish - min(Self.turnBytes, self.bytesBeforePublish / 2)
        if isFull != self.input.isFull {
            self.input.isFull = isFull
            self.updateReading()
        }
        guard abs(held - self.chargedBytes) >= (self.isPublisher ? Self.publisherChargeStep : Self.strangerChargeStep) else { return }
        let grows = held > self.chargedBytes
        self.charge(held)
        // A stranger must not use more memory when it is short.
        if grows, !self.isPublisher, self.services.memory.ledger.isOver {
            self.close(.memoryLimit, detail: self.services.memory.refusal.message)
        }
    }

    /// Charges the connection's buffered bytes to the process's ledger.
    package func charge(_ bytes: Int) {
        guard bytes != self.chargedBytes else { return }
        self.services.memory.ledger.charge(bytes - self.chargedBytes)
        self.chargedBytes = bytes
    }

    /// Turns autoRead off while the connection's turn is over or enough input waits for a decision.
    func updateReading() {
        guard let reads = self.input.changeOfReading() else { return }
        do {
            try self.context?.channel.syncOptions?.setOption(.autoRead, value: reads)
        } catch {
            // The channel is closed and reads no more.
        }
    }

    /// Applies the limits for media, and reads in larger pieces. Runs when a publish, of a stream or a voice, was accepted.
    func publishAccepted() {
        guard !self.isPublisher else { return }
        self.isPublisher = true
        self.decoder.publishAccepted()
        self.tracePublisher()
        do {
            try self.context?.channel.syncOptions?.setOption(.recvAllocator, value: RTMPListener.largeReads)
        } catch {
            // The channel is closed.
        }
    }
}
