import Listening
package import Media
package import NIOCore
import RTMP
import Relay
import ServerConfiguration
import Streaming
import Support
import Trace

/// Turns the socket's bytes into messages, and passes media to its stream.
extension RTMPConnection {
    /// Messages handled for one connection before the loop serves other connections. A message may be as short as one byte.
    private static let messagesPerTurn = 256
    /// Most messages in one aggregate message, which is handled in one turn.
    private static let messagesPerAggregate = 4_096

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.isEnding else { return }
        var bytes = self.unwrapInboundIn(data)
        self.bytesReceived &+= UInt64(bytes.readableBytes)
        do throws(RTMPError) {
            if self.handshake != nil { try self.shakeHands(&bytes) }
            guard self.handshake == nil, bytes.readableBytes > 0, self.mayHold(bytes.readableBytes) else { return }
            self.decoder.append(bytes)
            if !self.input.isYielding { try self.readMessages() }
        } catch {
            self.fail(error)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        self.publishBatch()
        self.writer?.flush()
        self.acknowledgeAtOnce()
        context.fireChannelReadComplete()
    }

    /// Makes the kernel acknowledge a pushing client's data at once. After any output to that client, the kernel holds its acknowledgements back, up
    /// to 40 ms, to send them with more output. The client then holds its next small frame as long (Nagle's algorithm, RFC 896), so that each frame
    /// of a voice was delayed by that time.
    private func acknowledgeAtOnce() {
        guard self.hasSpoken || !self.plays.isEmpty, !self.publishings.isEmpty else { return }
        self.hasSpoken = false
        // Linux applies this once. Without the option, everything works but later.
        try? self.context?.channel.syncOptions?.setOption(.tcpOption(.tcpQuickAcknowledgement), value: 1)
    }

    private func shakeHands(_ bytes: inout ByteBuffer) throws(RTMPError) {
        let answer = try self.handshake?.value.receive(&bytes) { HandshakeRandom.bytes($0) }
        if var answer { self.writer?.writeControl { $0.writeBuffer(&answer) } }
        guard self.handshake?.value.isDone == true else { return }
        self.handshake = nil
        self.handshakeDoneMs = self.loop.relay.punctualMs
        self.services.connections.admission.stepped(self.id)
    }

    private func readMessages() throws(RTMPError) {
        if let recorder = self.mediaTrace { recorder.begin(nowMs: self.nowMs) }
        var left = Self.messagesPerTurn
        while left > 0, !self.input.isDeciding, !self.isEnding, let message = try self.decoder.nextMessage() {
            left -= 1
            do throws(RTMPError) { try self.receive(message) } catch { try self.skip(error) }
        }
        if left == 0 { self.yieldTurn() }
        self.weighInput()
        self.session.bytesReceived(self.decoder.receivedBytes)
        self.runRequests()
    }

    /// Ends a pending decision and reads the input that waited for it.
    func decided() {
        self.input.isDeciding = false
        if !self.input.isYielding { self.readOn() }
    }

    private func readOn() {
        do throws(RTMPError) {
            try self.readMessages()
        } catch {
            self.fail(error)
        }
        self.publishBatch()
        self.writer?.flush()
        self.acknowledgeAtOnce()
    }

    /// Stops reading until the loop's other connections have had their turn.
    private func yieldTurn() {
        self.input.isYielding = true
        self.updateReading()
        self.loop.turns.next {
            self.input.isYielding = false
            self.readOn()
            if self.input.isYielding { return }
            if self.isGone { self.end() } else { self.updateReading() }
        }
    }

    private func receive(_ message: Message) throws(RTMPError) {
        switch message.type {
        case .audio, .video:
            if let publishing = self.publishings.first(where: { $0.streamID == message.streamID && $0.token != nil })
                ?? self.publishing(on: message.streamID)
            {
                self.receive(message.type == .audio ? .audio : .video, message.timestamp, message.payload, from: publishing)
            } else {
                self.trace(message, .received)
                try self.session.receive(message)
            }
        case .aggregate:
            self.trace(message, .received)
            var aggregate = Aggregate(message)
            var count = 0
            while let inner = try aggregate.next() {
                count += 1
                // An aggregate inside an aggregate has no meaning, and could nest without end; thousands of messages in one are malformed too.
                guard inner.type != .aggregate, count <= Self.messagesPerAggregate else { throw .malformedAggregate }
                try self.receive(inner)
            }
        case .dataAMF0, .dataAMF3:
            self.trace(message, .received)
            if let bytes = self.decoder.popDropped() {
                self.services.connections.counters.limits.hit(.dataMessage)
                let limit = self.services.config.limits.dataMessageBytes
                return self.skip("data of \(bytes) bytes; the limit is \(limit) (limits.dataMessage)")
            }
            var addressed = message
            if let publishing = self.publishing(on: message.streamID) { addressed.streamID = publishing.streamID }
            try self.session.receive(addressed)
            self.runRequests()
        default:
            self.trace(message, .received)
            try self.session.receive(message)
            if self.session.consumeUnknownCommand(), !self.publishings.isEmpty { self.skip("a command that this server does not know") }
            self.runRequests()
        }
    }

    /// The connection's only push, for media on message stream 0: some encoders send it there although createStream gave another id.
    private func publishing(on streamID: UInt32) -> Publishing? {
        guard streamID == 0, self.publishings.count == 1, let only = self.publishings.first, only.token != nil else { return nil }
        return only
    }

    /// Skips a message that broke the protocol, if a push runs and the bytes behind it can be read.
    private func skip(_ error: RTMPError) throws(RTMPError) {
        guard error.concernsOneMessage, self.publishings.contains(where: { $0.token != nil }) else { throw error }
        self.skip("\(error)")
    }

    /// Counts and records a skipped message: a good push is not ended by one bad message.
    private func skip(_ what: String) {
        self.services.connections.counters.update { $0.messagesSkipped += 1 }
        if self.skipped.add() { self.traceState("messageSkipped", "\(what); \(self.skipped.count) skipped so far") }
    }

    // MARK: Media

    package func receive(_ kind: Frame.Kind, _ timestamp: UInt32, _ payload: ByteBuffer, from publishing: Publishing) {
        if self.batchFor !== publishing { self.publishBatch() }
        do throws(MediaError) {
            let frame = try Frame(kind: kind, timestamp: publishing.unwrapper.peek(timestamp), payload: payload)
            let flags = TracedHeader.Flags(tag: frame.tag.flags.rawValue)
            self.traceMedia(kind, timestamp, payload.readableBytes, publishing.streamID, flags)
            if frame.tag.flags.contains(.coded) { _ = publishing.unwrapper.unwrap(timestamp) }
            // Empty messages are keep-alives, not media.
            if !publishing.hasMedia, kind != .data, payload.readableBytes > 0 {
                publishing.hasMedia = true
                self.traceState("firstMedia", publishing.stream.path)
            }
            guard publishing.isWelcome(frame) else { return }
            publishing.bytes &+= UInt64(payload.readableBytes)
            self.batchFor = publishing
            self.batch.append(frame)
        } catch {
            self.traceMedia(kind, timestamp, payload.readableBytes, publishing.streamID, .unreadable)
            self.skip("\(kind) of \(payload.readableBytes) bytes: \(error)")
            guard self.skipped.isRunTooLong(with: payload.readableBytes, acceptedBytes: publishing.bytes) else { return }
            self.close(.malformedMedia, detail: "\(SkippedMessages.longestRun) unreadable messages in a row; the last: \(error)")
        }
    }

    /// Passes the turn's frames to their stream in one call, with one hop at most.
    func publishBatch() {
        guard let publishing = self.batchFor, let token = publishing.token, !self.batch.isEmpty else { return }
        if self.batch.count == 1 {
            let frame = self.batch.removeLast()
            self.batchFor = nil
            return RelayLoop.publish(frame, to: publishing.stream, token: token)
        }
        RelayLoop.publish(self.batch, to: publishing.stream, token: token)
        self.batch.removeAll(keepingCapacity: true)
        self.batchFor = nil
    }
}
